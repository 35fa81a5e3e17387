"""An act of a person, as the audit log keeps it: who did what, why, and what was changed (docs/admin-guide.md)."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import field

from guichet.domain.ids import ApprovalId, MerchantId
from guichet.domain.messages import Message
from guichet.domain.records import Record

#: The `os_user` of an act in the console, whose actor is an address of `users`.
CONSOLE: Final = "console"
_SUDO: Final = " (sudo: "


class Actor(Record, frozen=True):
    """`name`: what the person typed, or the address of their account. `os_user`: the operating-system user who ran the
    command (`command_os_user`), or `console`. `approval`: for an act that this person asked for and another one
    approves with it. `is_typed`: a command was told the name, which must then be nobody's who has an account."""

    name: str
    os_user: str
    approval: "Approval | None" = None
    is_typed: bool = False


def command_os_user(real: str, claimed: str) -> str:
    """The operating-system user of a command as entries keep it: the user of its process, and behind it what
    `SUDO_USER` says, which whoever runs the command can set."""
    claimed = "".join(char for char in claimed if char.isprintable())[:32]
    return real if claimed in ("", real) else f"{real}{_SUDO}{claimed})"


def real_os_user(os_user: str) -> str:
    """The user of the process, in small letters, without what `command_os_user` adds to it."""
    return os_user.casefold().partition(_SUDO)[0]


def os_user_names(os_user: str) -> set[str]:
    """Whom `command_os_user` names, in small letters."""
    claimed = os_user.casefold().partition(_SUDO)[2].removesuffix(")")
    return {real_os_user(os_user), claimed} - {""}


class Approval(Record, frozen=True):
    """The second person, who approves a request (`domain/approvals.py`), and why."""

    request_id: ApprovalId
    approver: Actor
    reason: str


class ActRefused(Exception):
    """A person's act is not allowed, or does not fit the state; `message` says why to that person (`refusals.py`)."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message = message


#: What an act may be about.
ActSubject = Literal[
    "approval",
    "delivery",
    "dispute",
    "document",
    "export",
    "incident",
    "key",
    "ledger",
    "merchant",
    "mode",
    "payment",
    "payment_link",
    "receipt",
    "refund",
    "staff_job",
    "statement",
    "treasury",
    "user",
    "wallet",
    "webhook_endpoint",
]
#: The names of the facts that entries keep. Commands print them; pages have a text for each.
FactName = Literal[
    "account",
    "act",
    "active",
    "amount",
    "announced",
    "approval",
    "approved_by",
    "attempts",
    "borne_by",
    "callbacks",
    "cash_desk",
    "count",
    "currency",
    "daily_limit",
    "decided",
    "decision",
    "deliveries",
    "delivered_at",
    "delivery",
    "disputes",
    "env",
    "expires_at",
    "fee_fixed",
    "fee_percent",
    "fingerprint",
    "first_id",
    "format",
    "from",
    "incidents",
    "kind",
    "last_id",
    "late",
    "max_uses",
    "media_type",
    "merchant_part",
    "month",
    "name",
    "networks",
    "note",
    "override",
    "payee_number",
    "payment",
    "payment_limit",
    "payments",
    "phone",
    "preview",
    "provider_says",
    "rate_limit",
    "refunds",
    "request",
    "response_code",
    "revoked_at",
    "role",
    "scopes",
    "seconds",
    "sha256",
    "since",
    "size",
    "stage",
    "status",
    "succeeded",
    "time_zone",
    "to",
    "unmatched_callbacks",
    "url",
    "users",
    "waiting",
]
Facts = Mapping[FactName, object]


class Act(Record, frozen=True):
    """What a person did to one subject.

    `action`: a stable name such as `payment.settled`. `subject`: the reference or id of what was changed;
    `subject_type` says of what. `before` and `after`: the facts that changed, as JSON values. `reason`: the evidence
    that was given.
    """

    actor: Actor
    action: str
    subject_type: ActSubject
    subject: str
    merchant_id: MerchantId | None = None
    reason: str = ""
    before: Facts = field(default_factory=dict)
    after: Facts = field(default_factory=dict)
