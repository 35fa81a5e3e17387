"""What disputes post, and the end of their incidents (docs/decisions.md, "Disputes")."""

from guichet.clock import Instant
from guichet.db.engine import Transaction
from guichet.domain import posting_rules
from guichet.domain.disputes import Dispute
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import Movement, Posting
from guichet.incidents import repository as incidents
from guichet.ledger import postings


async def post_taken(tx: Transaction, dispute: Dispute, now: Instant) -> None:
    entries = posting_rules.dispute_opened(_float(dispute), dispute.amount)
    await post(tx, dispute, posting_rules.DISPUTE_OPENED, entries, now)


async def post_returned(tx: Transaction, dispute: Dispute, payment: Payment | None, now: Instant) -> None:
    """The provider returned what it had taken back."""
    entries = posting_rules.dispute_won(_float(dispute), dispute.amount)
    await post(tx, dispute, posting_rules.DISPUTE_WON, entries, now)
    await close_incidents(tx, dispute, payment, now)


async def close_incidents(tx: Transaction, dispute: Dispute, payment: Payment | None, now: Instant) -> None:
    about = dispute.reference if payment is None else payment.reference
    await incidents.close_all(tx, dispute.merchant_id, about, now)


def _float(dispute: Dispute) -> str:
    """The wallet that is debited. An account whose payers can contest a payment has only one."""
    return posting_rules.float_account(dispute.provider_account, "", dispute.currency)


async def post(tx: Transaction, dispute: Dispute, cause: str, entries: list[Posting], now: Instant) -> None:
    wallet = dispute.merchant_id, dispute.env, dispute.currency
    await postings.post(tx, [Movement(*wallet, cause, dispute.id, entries, now)])
