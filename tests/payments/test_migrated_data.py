"""What a migration does to the rows that it finds."""

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text

from guichet.db import migrate
from guichet.ledger import suspense
from tests.fakes.scripted_provider import done, taken
from tests.payments.conftest import LivePayments
from tests.payments.test_payee import ASKED, paid, row
from tests.payments.test_refunds import refund_of


async def migrated(one: LivePayments, statement: str, before: str) -> None:
    """Runs `before`, which makes the rows as they were, then a statement of the migration."""
    script = ScriptDirectory.from_config(migrate.alembic_config()).get_revision("v0006")
    async with one.ctx.db.transaction() as tx:
        await tx.all(text(before))
        await tx.all(text(getattr(script.module, statement)))


@pytest.mark.parametrize("own_refunds", [True, False])
async def test_a_payout_that_was_sent_before_keeps_the_number_of_its_request(
    live: LivePayments, monkeypatch: pytest.MonkeyPatch, own_refunds: bool
) -> None:
    live.first.own_refunds = own_refunds
    if not own_refunds:
        monkeypatch.setattr(live.first, "can_refund", lambda *_, **__: False)
    live.first.script("refund", taken)
    live.second.script("refund", taken)
    refund = await refund_of(live, await paid(live, ASKED, page=True))
    await live.service.run_worker()
    await migrated(live, "_SENT_PAYEES", "UPDATE refunds SET payee_number = NULL")
    assert (await row(live, refund)).payee_number == (None if own_refunds else ASKED)


async def test_a_wallet_that_was_reopened_before_is_still_released(live: LivePayments) -> None:
    live.first.script("status", done)
    await live.merchant.pay()
    await live.set_wallet("Gelé")
    await live.service.run_worker(5)
    await live.set_wallet("Actif")
    await migrated(live, "_REOPENED", "UPDATE wallets SET release_pending = FALSE")
    assert await suspense.release_next(live.ctx.db, live.ctx.clock.now(), 10) == 1
    assert await live.balance() == 5000
