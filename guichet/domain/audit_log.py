"""An act of a person, as the audit log keeps it: who did what, why, and what was changed (docs/admin-guide.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from guichet.domain.ids import MerchantId


@dataclass(frozen=True, slots=True)
class Actor:
    """`name`: what the person typed. `os_user`: the operating-system user who ran the command."""

    name: str
    os_user: str


class ActRefused(Exception):
    """A person's act is not allowed, or does not fit the state; the message is one sentence for that person."""


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
