"""A person freezes, closes or reopens a merchant's live wallet (D24)."""

from guichet.audit_log import entries as audit_log
from guichet.clock import Clock
from guichet.db.engine import Database
from guichet.domain.audit_log import Act, Actor
from guichet.domain.ids import MerchantId
from guichet.domain.money import Currency
from guichet.domain.posting_rules import WalletStatus
from guichet.ledger import wallets


async def change_status(
    db: Database,
    clock: Clock,
    merchant_id: MerchantId,
    currency: Currency,
    status: WalletStatus,
    actor: Actor,
    reason: str,
) -> None:
    """In one transaction with the entry of the audit log; nothing is done if the wallet has this status already, so
    that a form that is sent again is one act. What was suspended is posted by the worker once the wallet is `Actif`
    again (`ledger/suspense.py`)."""
    now = clock.now()
    async with db.transaction() as tx:
        before = (await wallets.lock(tx, merchant_id, "live", currency, now)).status
        if before == status:
            return
        await wallets.set_wallet_status(tx, merchant_id, "live", currency, status, now)
        act = Act(
            actor=actor,
            action="wallet.status_changed",
            subject_type="wallet",
            subject=currency,
            merchant_id=merchant_id,
            reason=reason,
            before={"status": before},
            after={"status": status},
        )
        await audit_log.record(tx, act, now)
