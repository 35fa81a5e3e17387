"""The columns of each kind of export: their titles in both languages, and how their cells are written."""

from typing import Final, Literal

from guichet.domain.accounts import Language
from guichet.domain.exports import ExportKind
from guichet.domain.records import Record

#: What a cell holds: text; hundredths of a currency; an instant; a whole number; a telephone number as digits.
CellType = Literal["text", "amount", "moment", "number", "phone"]


class Column(Record, frozen=True):
    french: str
    english: str
    type: CellType = "text"

    def title(self, language: Language, time_zone: str) -> str:
        """That of a date names its time zone."""
        title = self.french if language == "fr" else self.english
        return f"{title} ({time_zone})" if self.type == "moment" else title


COLUMNS: Final[dict[ExportKind, tuple[Column, ...]]] = {
    "payments": (
        Column("Date", "Date", "moment"),
        Column("Numéro", "Number", "number"),
        Column("Référence", "Reference"),
        Column("Référence marchand", "Merchant reference"),
        Column("État", "Status"),
        Column("Devise", "Currency"),
        Column("Montant", "Amount", "amount"),
        Column("Frais", "Fee", "amount"),
        Column("Total", "Total", "amount"),
        Column("Opérateur", "Operator"),
        Column("Téléphone", "Telephone", "phone"),
        Column("Prénom", "First name"),
        Column("Nom", "Last name"),
        Column("E-mail", "E-mail"),
        Column("Libellé", "Description"),
        Column("Motif d’échec", "Failure"),
        Column("Dernier changement", "Last change", "moment"),
    ),
    "refunds": (
        Column("Date", "Date", "moment"),
        Column("Référence", "Reference"),
        Column("Référence du paiement", "Payment reference"),
        Column("État", "Status"),
        Column("Devise", "Currency"),
        Column("Montant", "Amount", "amount"),
        Column("Motif", "Reason"),
        Column("Motif d’échec", "Failure"),
        Column("Traité le", "Processed", "moment"),
    ),
    "movements": (
        Column("Date", "Date", "moment"),
        Column("Nature", "Movement"),
        Column("Référence du paiement", "Payment reference"),
        Column("Référence du remboursement", "Refund reference"),
        Column("Référence marchand", "Merchant reference"),
        Column("Débit", "Debit", "amount"),
        Column("Crédit", "Credit", "amount"),
        Column("Solde", "Balance", "amount"),
        Column("Écriture", "Posting", "number"),
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
