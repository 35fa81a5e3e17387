"""An act of a person, as the audit log keeps it: who did what, why, and what was changed (docs/admin-guide.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from guichet.domain.ids import ApprovalId, MerchantId


@dataclass(frozen=True, slots=True)
class Actor:
    """`name`: what the person typed, or the address of their account. `os_user`: the operating-system user who ran the
    command, or `console`. `approval`: for an act that this person asked for and another one approves with it."""

    name: str
    os_user: str
    approval: "Approval | None" = None


@dataclass(frozen=True, slots=True)
class Approval:
    """The second person, who approves a request (`domain/approvals.py`), and why."""

    request_id: ApprovalId
    approver: Actor
    reason: str


#: Why an act is refused, for pages in the reader's language. `other`: only commands say it.
RefusalKind = Literal[
    "being_asked",
    "cannot_pay_back",
    "changed_meanwhile",
    "choice_missing",
    "endpoint_disabled",
    "final_already",
    "live_only",
    "nobody_else",
    "not_allowed",
    "not_waiting",
    "other",
    "own_request",
    "payee_invalid",
    "payee_known",
    "provider_contradicts",
    "still_tried",
    "too_new",
    "unknown_subject",
    "waits_already",
    "wallet_not_active",
    "wallet_too_low",
]
REFUSAL_KINDS: Final[tuple[RefusalKind, ...]] = get_args(RefusalKind)


class ActRefused(Exception):
    """A person's act is not allowed, or does not fit the state; the message is one sentence for that person, in English
    as commands say it."""

    def __init__(self, message: str, kind: RefusalKind = "other") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Act:
    """What a person did to one subject.

    `action`: a stable name such as `payment.settled`. `subject`: the reference or id of what was changed;
    `subject_type` says of what. `before` and `after`: the facts that changed, as JSON values. `reason`: the evidence
    that was given.
    """

    actor: Actor
    action: str
    subject_type: str
    subject: str
    merchant_id: MerchantId | None = None
    reason: str = ""
    before: Mapping[str, object] = field(default_factory=dict)
    after: Mapping[str, object] = field(default_factory=dict)
