"""A short slice of `make chaos`: live money through the separate simulator, everything killed, three books compared."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import update

from guichet.bootstrap import service
from guichet.clock import MINUTE
from guichet.db.tables import payments, refunds, webhook_deliveries
from guichet.settings import Settings
from reliability.books import rendered
from reliability.chaos.services import Services
from reliability.chaos.trial import Plan, Trial
from reliability.installation import Installation
from reliability.orders import DEBIT_SCENARIOS
from tests.ports import free_port

_DUE = (
    payments.c.next_poll_at,
    payments.c.lease_expires_at,
    refunds.c.next_poll_at,
    refunds.c.lease_expires_at,
    webhook_deliveries.c.next_attempt_at,
)
#: An answer after 25 seconds.
_SLOW = "18"


@dataclass
class ShortTrial(Trial):
    """Leases and pauses between webhooks pass at once."""

    settings: Settings | None = None

    async def before_each_look(self) -> None:
        assert self.settings is not None
        async with service(self.settings) as opened, opened.ctx.db.transaction() as tx:
            for due in _DUE:
                await tx.write(update(due.table).where(due.table.c.status == "pending").values({due: due - MINUTE}))


async def test_the_books_of_providers_guichet_and_merchants_agree_after_kills(
    settings: Settings, tmp_path: Path
) -> None:
    several = not settings.embedded
    first, second = free_port(), free_port()
    installation = Installation(
        tmp_path / "trial", first, [first + 1, second][: 1 + several], database_url=settings.database_url
    )
    plan = Plan(
        "postgresql" if several else "sqlite",
        seed=60,
        payments=150,
        kills=3,
        interval=0.8,
        rate=60,
        settle=12,
        folder=installation.folder,
        first_port=first,
        look=1.0,
        proof_expected=False,
        scenarios={digits: share for digits, share in DEBIT_SCENARIOS.items() if digits != _SLOW},
    )
    trial = ShortTrial(plan, settings=settings)
    services = Services(installation, first + 2, several=several)
    try:
        await trial.run_on(services)
    finally:
        await services.kill()
    assert trial.kills >= plan.kills
    assert trial.journal.payments >= plan.payments
    assert not trial.comparison.difference_count, "\n".join(rendered(trial.comparison))
