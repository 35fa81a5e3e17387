"""Disputes: the holder of a card contests a payment with the bank (docs/providers/stripe.md, "Disputes").

The provider takes the amount back at once, and returns it if the bank decides for the merchant. The payment's status
stays. A lost dispute waits for a person, who says who bears it.
"""

from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain.ids import DisputeId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record

DisputeStatus = Literal["open", "won", "lost"]
DISPUTE_STATUSES: Final[tuple[DisputeStatus, ...]] = get_args(DisputeStatus)
#: Who bears a lost dispute.
Bearer = Literal["merchant", "service"]
BEARERS: Final[tuple[Bearer, ...]] = get_args(Bearer)


class Dispute(Record, frozen=True):
    """A row of `disputes`, in the order of its columns. `amount`: what the provider took back, in hundredths."""

    id: DisputeId
    merchant_id: MerchantId
    env: Environment
    currency: Currency
    payment_id: PaymentId
    payment_reference: str
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
