"""A refund that a program proposed and that only a person makes (docs/contract.md, "Proposed refunds")."""

from typing import Final, Literal, get_args

from guichet.clock import DAY, Instant
from guichet.domain.ids import ApiKeyId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.records import Record

StoredProposalStatus = Literal["open", "confirmed", "declined"]
STORED_PROPOSAL_STATUSES: Final[tuple[StoredProposalStatus, ...]] = get_args(StoredProposalStatus)
ProposalStatus = Literal["open", "confirmed", "declined", "expired"]
PROPOSAL_STATUSES: Final[tuple[ProposalStatus, ...]] = get_args(ProposalStatus)
#: How long a person has to decide. Until then a repeated proposal, also of a payment for which one was declined,
#: answers the one that there is.
LASTS: Final = 7 * DAY


class RefundProposal(Record, frozen=True):
    """The fields are in the column order of the table. `confirmed`: the payment was refunded, here or elsewhere, while
    it was open."""

    payment_id: PaymentId
    merchant_id: MerchantId
    env: Environment
    key_id: ApiKeyId
    status: StoredProposalStatus
    reason: str | None
    created_at: Instant
    expires_at: Instant

    def status_at(self, now: Instant) -> ProposalStatus:
        return "expired" if self.status == "open" and self.expires_at <= now else self.status

    def stands_at(self, now: Instant) -> bool:
        """Whether no other one takes its place."""
        return self.status == "confirmed" or now < self.expires_at
