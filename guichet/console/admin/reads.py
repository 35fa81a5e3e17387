"""Every read of personal data by the staff is an entry of the audit log."""

from typing import Final

from guichet.audit_log import entries as audit_log
from guichet.console.page_request import StaffRequest
from guichet.domain.audit_log import Act, ActSubject, Facts
from guichet.domain.ids import MerchantId

#: Characters of an id that was mistyped that its field shows again.
MOST_TYPED: Final = 40


async def record_read(
    request: StaffRequest,
    action: str,
    subject_type: ActSubject,
    subject: object,
    merchant_id: MerchantId | None = None,
    facts: Facts | None = None,
) -> None:
    """`facts`: for a list, what was on it, as ids, references and counts: nothing of what a person typed."""
    ctx = request.ctx
    act = Act(request.actor, action, subject_type, str(subject), merchant_id, after=facts or {})
    async with ctx.db.transaction() as tx:
        await audit_log.record(tx, act, ctx.clock.now())
