"""What must be true of a wallet before a person's act moves its money."""

from guichet.clock import Instant
from guichet.db.engine import Transaction
from guichet.domain.audit_log import ActRefused
from guichet.domain.money import Hundredths, plain
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import ACTIVE
from guichet.ledger import wallets


async def require_wallet(tx: Transaction, payment: Payment, covers: Hundredths, now: Instant) -> None:
    """Locks the wallet of the payment's merchant until the transaction ends. Raises ActRefused unless it is `Actif` and
    holds at least `covers`."""
    wallet = await wallets.lock(tx, payment.merchant_id, payment.env, payment.currency, now)
    if wallet.status != ACTIVE:
        raise ActRefused("The merchant's wallet is not Actif: open it first.", "wallet_not_active")
    if wallet.balance < covers:
        raise ActRefused(
            f"The wallet holds {plain(wallet.balance)}, which does not cover {plain(covers)}.", "wallet_too_low"
        )
