"""The balance of a wallet (docs/contract.md, "Resources")."""

from typing import Annotated

from typing_extensions import TypedDict

from guichet.clock import iso
from guichet.domain.money import number
from guichet.domain.posting_rules import WALLET_STATUSES, Wallet, WalletStatus
from guichet.schemas.object_fields import SETTLED_AT, CurrencyCode, Number, Timestamp, example, text_schema


class BalanceObject(TypedDict):
    """Le solde d'un portefeuille."""

    currency: Annotated[CurrencyCode, example("XOF")]
    """Devise du portefeuille."""
    balance: Annotated[Number, example(12500)]
    """Solde dans l'unité principale : la valeur à afficher."""
    balance_minor: Annotated[int, example(1250000)]
    """Le même solde multiplié par 100 dans toutes les devises, XOF compris. Ne pas afficher."""
    status: Annotated[WalletStatus, text_schema(enum=list(WALLET_STATUSES)), example("Actif")]
    """Hors de `Actif`, aucun mouvement n'est accepté."""
    updated_at: Annotated[Timestamp, example(SETTLED_AT)]
    """Date du dernier mouvement."""


def balance_object(wallet: Wallet) -> BalanceObject:
    """`balance_minor` is in hundredths, our own unit, in every currency."""
    return {
        "currency": wallet.currency,
        "balance": number(wallet.balance),
        "balance_minor": wallet.balance,
        "status": wallet.status,
        "updated_at": iso(wallet.updated_at),
    }
