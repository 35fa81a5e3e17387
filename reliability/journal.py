"""What the merchants and customers of a trial were told: the book that Guichet's own is compared with."""

from collections import Counter
from dataclasses import dataclass, field

from reliability.orders import Order


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A payment that was answered 201 with `reference`, or 402 or 500 as failed (`reference` is then None)."""

    order: Order
    reference: str | None
    status: str


@dataclass(frozen=True, slots=True)
class LinkPayment:
    """A form that a customer sent. `nonce`: the part of its token by which its payment is found."""

    merchant: int
    link_id: int
    nonce: str


@dataclass
class Journal:
    """`unanswered`: orders that nobody answered for minutes, or that were refused; they may exist or not."""

    acknowledged: dict[str, Acknowledged] = field(default_factory=dict)
    unanswered: dict[str, Order] = field(default_factory=dict)
    #: Refund reference by payment reference; "" where the first answer was lost and a repeat found the refund there.
    refunds: dict[str, str] = field(default_factory=dict)
    #: Payments whose refund a merchant's program asked for, whatever became of it.
    refunds_asked: set[str] = field(default_factory=set)
    link_payments: list[LinkPayment] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    #: What must never happen, in words.
    faults: list[str] = field(default_factory=list)

    @property
    def payments(self) -> int:
        """Acknowledged so far."""
        return len(self.acknowledged) + len(self.link_payments)
