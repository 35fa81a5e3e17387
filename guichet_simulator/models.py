"""What the simulated providers store: transactions, and callbacks to send."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct

from guichet.clock import Instant

Kind = Literal["debit", "credit"]
State = Literal["pending", "succeeded", "failed", "expired"]
FinalState = Literal["succeeded", "failed", "expired"]
#: A call that a scenario can concern.
Call = Literal["debit", "credit", "status", "token"]
#: What a callback says happened, which may be untrue.
Claim = Literal["succeeded", "failed", "expired", "attempt_failed", "processing", "created", "disputed"]

#: What a provider charges its client: percent of the amount.
Fees = Mapping[Kind, int]

Word = TypeVar("Word")

PENDING: Final = "pending"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
EXPIRED: Final = "expired"


def by_state(*, pending: Word, succeeded: Word, failed: Word, expired: Word) -> dict[str, Word]:
    """A provider's word for each state, or for what a callback claims."""
    return {PENDING: pending, SUCCEEDED: succeeded, FAILED: failed, EXPIRED: expired}


class Transaction(Struct, frozen=True):
    """One request as a provider stores it. Amounts are hundredths of the main unit, times are Instants.

    `ref` is the provider's identifier, `client_ref` the client's (None where the API has no such field). `resource` is
    the provider's name for this kind of request where it has several, whose identifiers are apart from each other
    ("refund", "transfer", "payout"); else empty.
    `stated_amount` and `stated_currency` are what responses and callbacks say, which a scenario may falsify. The
    transaction becomes `planned_state` at `due_at` unless it is decided before; without `due_at` it stays pending.
    `detail` holds what only this provider needs.
    """

    id: int
    provider: str
    kind: Kind
    resource: str
    operator: str
    ref: str
    client_ref: str | None
    phone: str | None
    amount: int
    currency: str
    stated_amount: int | None
    stated_currency: str | None
    state: State
    reason: str | None
    parent: str | None
    scenario: str
    planned_state: FinalState | None
    planned_reason: str | None
    due_at: Instant | None
    created_at: Instant
    decided_at: Instant | None
    callback_url: str | None
    #: The client's account that made it; see `Dashboard.company`.
    company: str
    detail: dict[str, Any]

    def fee(self, fees: Fees) -> int:
        """Hundredths, rounded to whole units of the currency; nothing for a transaction that did not succeed."""
        percent = fees.get(self.kind, 0) if self.state == SUCCEEDED else 0
        return (self.amount * percent // 100 + 50) // 100 * 100

    def balance_change(self, fees: Fees) -> int:
        """Hundredths that it added to the client's balance."""
        return (self.amount if self.kind == "debit" else -self.amount) - self.fee(fees)


@dataclass(frozen=True, slots=True)
class QueuedCallback:
    """A callback to send at `due_at`. `claim` is what it says happened; `forged` makes its signature wrong.

    `answered` is the HTTP status of the last attempt, `error` why it had none.
    """

    id: int
    transaction_id: int
    event_id: str
    claim: Claim
    forged: bool
    due_at: Instant | None
    attempts: int
    url: str | None
    answered: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class CallbackRequest:
    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
