"""Endpoints of the catalogue of payment modes, and of the balance."""

from typing import Final

from guichet.api import catalogue
from guichet.api.endpoints.endpoint import Endpoint, Parameter
from guichet.domain.catalogue import MODE_TYPES
from guichet.domain.errors import InvalidRequest
from guichet.domain.money import CURRENCIES, DEFAULT_CURRENCY
from guichet.schemas.fee_quote import FeeBody, FeeQuoteObject
from guichet.schemas.payment_mode import PaymentModeObject
from guichet.schemas.wallet import BalanceObject

CATALOGUE: Final = "Catalogue"
WALLET: Final = "Solde"

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/payment-modes",
        catalogue.list_modes,
        CATALOGUE,
        "Lister les moyens de paiement",
        "Les moyens ouverts à votre compte, avec vos frais. Ce catalogue seul fait foi. Il n'est pas paginé ; les deux "
        "filtres se combinent.",
        PaymentModeObject,
        shape="array",
        parameters=(
            Parameter("country", {"type": "string"}, "Code ISO-2, sans égard à la casse.", sample="bj"),
            Parameter(
                "type",
                {"type": "string", "enum": [kind for kind in MODE_TYPES if kind != "other"]},
                "Famille du moyen de paiement.",
                sample="mobile_money",
            ),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "POST",
        "/payment-modes/fees",
        catalogue.quote_fees,
        CATALOGUE,
        "Simuler les frais",
        "Ne crée rien.",
        FeeQuoteObject,
        body=FeeBody,
        errors=(InvalidRequest,),
        requests={
            "Par opérateur": {"amount": 5000, "operator": "mtn"},
            "Par identifiant": {"amount": 5000, "payment_mode_id": 1},
        },
    ),
    Endpoint(
        "GET",
        "/balance",
        catalogue.read_balance,
        WALLET,
        "Lire le solde",
        "Avec une clé de test, la somme des encaissements de test, et non le solde réel.",
        BalanceObject,
        parameters=(
            Parameter(
                "currency",
                {"type": "string", "default": DEFAULT_CURRENCY, "examples": list(CURRENCIES)},
                f"Devise, sans égard à la casse : {', '.join(f'`{code}`' for code in CURRENCIES)}.",
                sample=DEFAULT_CURRENCY,
            ),
        ),
        errors=(InvalidRequest,),
    ),
)
