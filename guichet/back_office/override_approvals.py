"""Overrides of a provider's answer in development: one name proposes, another one approves within a day (D85).

The proposal and the approval are entries of the audit log; nothing else is stored. In production, and in the console,
two accounts decide by a request instead (`accounts/approvals.py`).
"""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from guichet.audit_log import entries as audit_log
from guichet.audit_log.entries import Entry
from guichet.clock import DAY
from guichet.context import AppContext
from guichet.domain.audit_log import Act, Actor, ActRefused
from guichet.domain.payments import Payment, Refund
from guichet.domain.refusals import Refusal

#: How long a proposed override may wait for its approval.
APPROVAL_WITHIN: Final = DAY
#: The action of a proposal in the audit log.
PROPOSED: Final = "settlement.proposed"


@dataclass(frozen=True, slots=True)
class Decision:
    """`override`: settle even against the provider's answer; `approver` is then the second person, once there is
    one."""

    succeeded: bool
    evidence: str
    actor: Actor | None
    override: bool = False
    approver: Actor | None = None

    @property
    def is_approved(self) -> bool:
        """Whether a second person approves it by a request (`domain/approvals.py`)."""
        return self.actor is not None and self.actor.approval is not None


async def propose(ctx: AppContext, act: Act) -> None:
    async with ctx.db.transaction() as tx:
        await audit_log.record(tx, act, ctx.clock.now())


async def approved(ctx: AppContext, subject: Payment | Refund, decision: Decision) -> Decision | None:
    """The decision as the first person proposed it, now that `decision.approver` approves it; None when it must be
    proposed first. Raises ActRefused when the approval does not count.
    """
    approver = decision.approver
    if approver is None:
        return None
    proposal = await _latest_proposal(ctx, subject)
    if proposal is not None:
        _refuse_another_outcome(proposal, decision)
        decision = replace(decision, actor=Actor(proposal.actor, proposal.os_user), evidence=proposal.reason)
    first = decision.actor
    if first is None:
        raise ActRefused(Refusal.NOT_PROPOSED(reference=subject.reference))
    if first.name.strip().casefold() == approver.name.strip().casefold():
        raise ActRefused(Refusal.SAME_PERSON())
    return decision


async def _latest_proposal(ctx: AppContext, subject: Payment | Refund) -> Entry | None:
    latest = await audit_log.about(ctx.db, subject.reference, most=1)
    waits = latest and latest[0].action == PROPOSED and ctx.clock.now() - latest[0].at <= APPROVAL_WITHIN
    return latest[0] if waits else None


def _refuse_another_outcome(proposal: Entry, decision: Decision) -> None:
    wanted = "succeeded" if decision.succeeded else "failed"
    if msgspec.json.decode(proposal.after)["status"] != wanted:
        raise ActRefused(Refusal.OTHER_OUTCOME(email=proposal.actor, status=wanted))
