"""What a refund takes from its merchant's wallet: the merchant's part waits in the hold account until the provider paid
it or refused (D22, D23)."""

from typing import Final

from guichet.clock import Instant
from guichet.db.engine import Transaction
from guichet.disputes import repository as disputes
from guichet.domain import posting_rules
from guichet.domain.disputes import RefundBarrier, refund_barrier
from guichet.domain.errors import Conflict
from guichet.domain.ids import RefundId
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import ACTIVE, HELD, Movement, Wallet
from guichet.ledger import postings, suspense, wallets

#: At most so many suspended credits are released before the balance is compared with a refund.
_RELEASED_AT_ONCE: Final = 500
#: What is said about a payment whose money a bank has.
_CONTESTED: Final[dict[RefundBarrier, str]] = {
    "dispute_open": "Le client conteste ce paiement auprès de sa banque, qui a repris l'argent : répondez au litige. "
    "Un remboursement paierait le client deux fois.",
    "dispute_lost": "La banque a déjà rendu l'argent au client : un remboursement le paierait deux fois.",
}


async def lock_wallet(tx: Transaction, payment: Payment, now: Instant) -> Wallet:
    """The wallet of the payment, locked until the transaction ends. Raises Conflict when it is not `Actif`, or when the
    payment has a dispute that was not won."""
    wallet = (payment.merchant_id, payment.env, payment.currency)
    locked = await wallets.lock(tx, *wallet, now)
    if payment.env == "live" and locked.status != ACTIVE:
        raise Conflict("Le portefeuille n'accepte pas de mouvement pour le moment.", reason="wallet_not_active")
    if locked.release_pending:
        # It was reopened just now: its suspended credits must be in the balance before it is checked.
        await suspense.release(tx, *wallet, now, _RELEASED_AT_ONCE)
        locked = await wallets.lock(tx, *wallet, now)
    # A dispute is recorded under the wallet's lock too.
    if barrier := refund_barrier(await disputes.of_payment(tx, payment.id)):
        raise Conflict(_CONTESTED[barrier], reason=barrier)
    return locked


async def post_hold(tx: Transaction, payment: Payment, refund_id: RefundId, now: Instant) -> None:
    """After `lock_wallet`, of a balance that covers it."""
    wallet = (payment.merchant_id, payment.env, payment.currency)
    movement = Movement(*wallet, HELD, refund_id, posting_rules.refund_hold(payment.amount), now)
    await postings.post(tx, [movement])
