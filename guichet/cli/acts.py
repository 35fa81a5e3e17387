"""How a command writes what it did to the audit log, in the transaction of the act."""

from collections.abc import Mapping

from guichet.audit_log import entries
from guichet.cli.arguments import actor
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.audit_log import Act
from guichet.domain.ids import MerchantId


async def record_act(
    ctx: AppContext,
    tx: Transaction,
    by: str | None,
    action: str,
    subject_type: str,
    subject: object,
    merchant_id: MerchantId | None = None,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """`by`: who decided, as typed; None for the operating-system user alone."""
    act = Act(
        actor=actor(by),
        action=action,
        subject_type=subject_type,
        subject=str(subject),
        merchant_id=merchant_id,
        before=before or {},
        after=after or {},
    )
    await entries.record(tx, act, ctx.clock.now())
