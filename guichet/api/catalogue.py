"""GET /payment-modes, POST /payment-modes/fees, GET /balance (docs/contract.md, "Endpoints", "Resources")."""

from starlette.responses import Response

from guichet.api.http import Call, success_response
from guichet.domain.availability import UP
from guichet.domain.catalogue import FILTER_TYPES, quote
from guichet.domain.money import CURRENCIES, DEFAULT_CURRENCY, Hundredths
from guichet.domain.posting_rules import ACTIVE, Wallet
from guichet.ledger import wallets
from guichet.schemas.fee_quote import FeeBody, fee_quote_object
from guichet.schemas.payment_mode import payment_mode_object
from guichet.schemas.validation import invalid_request
from guichet.schemas.wallet import balance_object


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
    return success_response([payment_mode_object(mode, states.get(mode.operator, UP)) for mode in modes])


async def quote_fees(call: Call) -> Response:
    body = await call.parse_body(FeeBody)
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    return success_response(fee_quote_object(quote(catalogue.choose(body.operator, body.payment_mode_id), body.amount)))


async def read_balance(call: Call) -> Response:
    """A currency that never moved is shown as an open wallet with 0, created with the merchant (D26)."""
    currency = call.query.get("currency", DEFAULT_CURRENCY).upper()
    if currency not in CURRENCIES:
        raise invalid_request({"currency": [f"Valeurs acceptées : {', '.join(CURRENCIES)}."]})
    merchant = call.caller.merchant
    stored = await wallets.wallet(call.ctx.db, merchant.id, call.env, currency)
    wallet = stored or Wallet(merchant.id, call.env, currency, ACTIVE, Hundredths(0), merchant.created_at)
    return success_response(balance_object(wallet))
