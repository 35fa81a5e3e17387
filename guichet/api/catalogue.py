"""GET /payment-modes, POST /payment-modes/fees, GET /balance (docs/contract.md, "Endpoints", "Resources")."""

from typing import Final

from starlette.responses import Response

from guichet.api.endpoint import Endpoint, Parameter
from guichet.api.http import Call, SuccessResponse
from guichet.domain.availability import UP
from guichet.domain.catalogue import FILTER_TYPES, MODE_TYPES, quote
from guichet.domain.errors import InvalidRequest
from guichet.domain.money import CURRENCIES, DEFAULT_CURRENCY, Hundredths
from guichet.domain.posting_rules import ACTIVE, Wallet
from guichet.ledger import wallets
from guichet.schemas.payment_mode import (
    FeeBody,
    FeeQuoteObject,
    PaymentModeObject,
    fee_quote_object,
    payment_mode_object,
)
from guichet.schemas.validation import invalid_request
from guichet.schemas.wallet import BalanceObject, balance_object


async def list_modes(call: Call) -> Response:
    """Open modes with this merchant's fees. An unknown country has none, an unknown type is an error (D12)."""
    query = call.query
    country, mode_type = query.get("country"), query.get("type")
    if mode_type is not None and mode_type not in FILTER_TYPES:
        raise invalid_request({"type": [f"Valeurs acceptées : {', '.join(FILTER_TYPES)}."]})
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    modes = [
        mode
        for mode in catalogue.active()
        if (country is None or (mode.country_code or "").casefold() == country.casefold())
        and (mode_type is None or mode.type == mode_type)
    ]
    states = await call.ctx.availability.states() if call.env == "live" else {}
    return SuccessResponse([payment_mode_object(mode, states.get(mode.operator, UP)) for mode in modes])


async def quote_fees(call: Call) -> Response:
    body = await call.parse_body(FeeBody)
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    return SuccessResponse(fee_quote_object(quote(catalogue.choose(body.operator, body.payment_mode_id), body.amount)))


async def read_balance(call: Call) -> Response:
    """A currency that never moved is shown as an open wallet with 0, created with the merchant (D26)."""
    currency = call.query.get("currency", DEFAULT_CURRENCY).upper()
    if currency not in CURRENCIES:
        raise invalid_request({"currency": [f"Valeurs acceptées : {', '.join(CURRENCIES)}."]})
    merchant = call.caller.merchant
    stored = await wallets.wallet(call.ctx.db, merchant.id, call.env, currency)
    wallet = stored or Wallet(merchant.id, call.env, currency, ACTIVE, Hundredths(0), merchant.created_at)
    return SuccessResponse(balance_object(wallet))


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/payment-modes",
        list_modes,
        "Lister les moyens de paiement",
        "Les moyens ouverts à votre compte, avec vos frais. Ce catalogue seul fait foi. Il n'est pas paginé ; les deux "
        "filtres se combinent.",
        PaymentModeObject,
        shape="array",
        parameters=(
            Parameter("country", "Code ISO-2, sans égard à la casse.", sample="bj"),
            Parameter(
                "type",
                "Famille du moyen de paiement.",
                {"type": "string", "enum": [kind for kind in MODE_TYPES if kind != "other"]},
                sample="mobile_money",
            ),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "POST",
        "/payment-modes/fees",
        quote_fees,
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
)

WALLET_ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/balance",
        read_balance,
        "Lire le solde",
        "Avec une clé de test, la somme des encaissements de test, et non le solde réel.",
        BalanceObject,
        parameters=(
            Parameter(
                "currency",
                f"Devise, sans égard à la casse : {', '.join(f'`{code}`' for code in CURRENCIES)}.",
                {"type": "string", "default": DEFAULT_CURRENCY, "examples": list(CURRENCIES)},
                sample=DEFAULT_CURRENCY,
            ),
        ),
        errors=(InvalidRequest,),
    ),
)
