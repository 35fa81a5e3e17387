"""The columns of each kind of export: their titles in both languages, and how their cells are written."""

from typing import Final, Literal

from guichet.domain.accounts import Language
from guichet.domain.exports import ExportKind
from guichet.domain.records import Record

#: What a cell holds: text; hundredths of a currency; an instant; a whole number; a telephone number as digits.
CellType = Literal["text", "amount", "moment", "number", "phone"]


class Column(Record, frozen=True):
    """`width`: in characters, for a workbook."""

    french: str
    english: str
    type: CellType = "text"
    width: int = 18

    def title(self, language: Language, time_zone: str) -> str:
        """That of a date names its time zone."""
        title = self.french if language == "fr" else self.english
        return f"{title} ({time_zone})" if self.type == "moment" else title


COLUMNS: Final[dict[ExportKind, tuple[Column, ...]]] = {
    "payments": (
        Column("Date", "Date", "moment", 28),
        Column("Numéro", "Number", "number", 12),
        Column("Référence", "Reference", width=38),
        Column("Référence marchand", "Merchant reference", width=24),
        Column("État", "Status", width=12),
        Column("Devise", "Currency", width=9),
        Column("Montant", "Amount", "amount", 14),
        Column("Frais", "Fee", "amount", 12),
        Column("Total", "Total", "amount", 14),
        Column("Arrondi", "Rounding", "amount", 11),
        Column("Débité au client", "Debited to the customer", "amount", 20),
        Column("Opérateur", "Operator", width=26),
        Column("Téléphone", "Telephone", "phone", 17),
        Column("Prénom", "First name"),
        Column("Nom", "Last name"),
        Column("E-mail", "E-mail", width=28),
        Column("Libellé", "Description", width=32),
        Column("Motif d’échec", "Failure", width=22),
        Column("Dernier changement", "Last change", "moment", 36),
    ),
    "refunds": (
        Column("Date", "Date", "moment", 28),
        Column("Référence", "Reference", width=38),
        Column("Référence du paiement", "Payment reference", width=38),
        Column("Référence marchand", "Merchant reference", width=24),
        Column("État", "Status", width=12),
        Column("Devise", "Currency", width=9),
        Column("Montant", "Amount", "amount", 14),
        Column("Opérateur", "Operator", width=26),
        Column("Téléphone", "Telephone", "phone", 17),
        Column("Prénom", "First name"),
        Column("Nom", "Last name"),
        Column("Motif", "Reason", width=32),
        Column("Motif d’échec", "Failure", width=22),
        Column("Traité le", "Processed", "moment", 28),
    ),
    "movements": (
        Column("Date", "Date", "moment", 28),
        Column("Nature", "Movement", width=26),
        Column("Référence du paiement", "Payment reference", width=38),
        Column("Référence du remboursement", "Refund reference", width=38),
        Column("Référence marchand", "Merchant reference", width=24),
        Column("Débit", "Debit", "amount", 14),
        Column("Crédit", "Credit", "amount", 14),
        Column("Solde", "Balance", "amount", 16),
        Column("Écriture", "Posting", "number", 12),
    ),
}

#: The statuses of payments and refunds as they stand in a file.
STATUSES: Final[dict[Language, dict[str, str]]] = {
    "fr": {"pending": "en attente", "succeeded": "réussi", "failed": "échoué", "refunded": "remboursé"},
    "en": {"pending": "pending", "succeeded": "succeeded", "failed": "failed", "refunded": "refunded"},
}
#: The name of a kind, for the sheet and for the file.
KIND_NAMES: Final[dict[ExportKind, tuple[str, str]]] = {
    "payments": ("Paiements", "Payments"),
    "refunds": ("Remboursements", "Refunds"),
    "movements": ("Mouvements", "Movements"),
}
