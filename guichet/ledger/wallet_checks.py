"""What must be true of a wallet before a person's act moves its money."""

from guichet.clock import Instant
from guichet.db.engine import Transaction
from guichet.domain.audit_log import ActRefused
from guichet.domain.messages import Amount
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import ACTIVE
from guichet.domain.refusals import Refusal
from guichet.ledger import wallets


async def require_wallet(tx: Transaction, payment: Payment, covers: Hundredths, now: Instant) -> None:
    """Locks the wallet of the payment's merchant until the transaction ends. Raises ActRefused unless it is `Actif` and
    holds at least `covers`."""
    wallet = await wallets.lock(tx, payment.merchant_id, payment.env, payment.currency, now)
    if wallet.status != ACTIVE:
        raise ActRefused(Refusal.WALLET_NOT_ACTIVE())
    if wallet.balance < covers:
        raise ActRefused(Refusal.WALLET_TOO_LOW(balance=Amount(wallet.balance), wanted=Amount(covers)))
