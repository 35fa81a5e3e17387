"""Nothing of a demonstration is put beside real money."""

import pytest

from guichet.db import demonstration
from guichet.settings import SettingsError
from tests.payments.conftest import (
    LivePayments,
    live,  # noqa: F401 - the fixture
)


@pytest.mark.both_databases
async def test_a_database_with_live_payments_is_not_made_a_demonstration(live: LivePayments) -> None:  # noqa: F811
    db = live.service.ctx.db
    await live.merchant.pay()

    with pytest.raises(SettingsError, match="is no demonstration's"):
        await demonstration.mark(db)
    await demonstration.refuse_in_production(db)


@pytest.mark.both_databases
async def test_a_demonstration_stays_one_once_it_has_live_payments(live: LivePayments) -> None:  # noqa: F811
    db = live.service.ctx.db
    await demonstration.mark(db)
    await live.merchant.pay()
    await demonstration.mark(db)

    with pytest.raises(SettingsError, match="that of a demonstration"):
        await demonstration.refuse_in_production(db)
