"""What a movement of a wallet is called, by the cause of its posting: in English and in French."""

from typing import Final

from guichet.domain import posting_rules as ledger

MOVEMENT_NAMES: Final = {
    ledger.COLLECTED: ("collection", "Encaissement"),
    ledger.UNSUSPENDED: ("collection, after suspension", "Encaissement (après suspens)"),
    ledger.HELD: ("refund", "Remboursement"),
    ledger.RELEASED: ("refund cancelled", "Remboursement annulé"),
    ledger.LATE_CREDITED: ("collection, paid late", "Encaissement tardif"),
    ledger.RECEIVABLE_PAID: ("refund, paid late", "Remboursement tardif"),
    ledger.REFUND_LATE_CREDITED: ("refund that came back", "Remboursement revenu"),
    ledger.DISPUTE_CHARGED: ("disputed payment", "Paiement contesté"),
}


def movement_name(cause: str, language: str) -> str:
    """With a capital letter; an unknown cause is shown as it is stored."""
    english, french = MOVEMENT_NAMES.get(cause, (cause, cause))
    return french if language == "fr" else english[:1].upper() + english[1:]
