"""Disputes: the holder of a card contests a payment with the bank (docs/providers/stripe.md, "Disputes").

The provider takes the amount back at once, and returns it if the bank decides for the merchant. The payment's status
stays. A lost dispute waits for a person, who says who bears it. So does a prevented one, of which nobody says whether
the holder of the card was paid back. A dispute may be about no payment of ours: then it belongs to the service itself.
"""

from collections.abc import Iterable
from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain.ids import DisputeId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record

#: Those that merchants are told.
ToldStatus = Literal["open", "won", "lost"]
TOLD_STATUSES: Final[tuple[ToldStatus, ...]] = get_args(ToldStatus)
DisputeStatus = Literal["open", "won", "lost", "prevented"]
DISPUTE_STATUSES: Final[tuple[DisputeStatus, ...]] = get_args(DisputeStatus)
#: Why a contested payment is not refunded.
RefundBarrier = Literal["dispute_open", "dispute_lost"]
#: Who bears a lost dispute. `nobody`: nothing was taken in the end; only of a prevented one.
Bearer = Literal["merchant", "service", "nobody"]
BEARERS: Final[tuple[Bearer, ...]] = get_args(Bearer)


class Dispute(Record, frozen=True):
    """A row of `disputes`, in the order of its columns. `amount`: what the provider took back, in hundredths."""

    id: DisputeId
    merchant_id: MerchantId
    env: Environment
    currency: Currency
    #: Both None when it matches no payment of ours.
    payment_id: PaymentId | None
    payment_reference: str | None
    reference: str
    provider_account: str
    provider_reference: str
    status: DisputeStatus
    amount: Hundredths
    #: The provider's word, such as `fraudulent`.
    reason: str
    opened_at: Instant
    evidence_due_at: Instant | None
    closed_at: Instant | None
    borne_by: Bearer | None
    #: The amount is posted as taken back.
    taken: bool = True

    @property
    def bearers(self) -> tuple[Bearer, ...]:
        """What a person may decide now."""
        if self.borne_by is not None or self.status not in ("lost", "prevented"):
            return ()
        possible: tuple[Bearer, ...] = ("service",) if self.payment_id is None else ("merchant", "service")
        return (*possible, "nobody") if self.status == "prevented" else possible

    @property
    def refund_barrier(self) -> RefundBarrier | None:
        """Why its payment must not be refunded: the holder of the card would have the money twice. None when the bank
        returned it, or a person decided that it was never taken."""
        if self.status == "won":
            return None
        return "dispute_lost" if self.status == "lost" else "dispute_open"


def refund_barrier(disputes: Iterable[Dispute]) -> RefundBarrier | None:
    """That of a payment with these disputes. One that is lost says more than one that is open."""
    barriers = {dispute.refund_barrier for dispute in disputes}
    return "dispute_lost" if "dispute_lost" in barriers else "dispute_open" if "dispute_open" in barriers else None
