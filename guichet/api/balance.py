"""GET /balance (docs/contract.md, "Resources")."""

from starlette.responses import Response

from guichet.api.http import Call, success_response
from guichet.domain.money import CURRENCIES, DEFAULT_CURRENCY, Hundredths
from guichet.domain.posting_rules import ACTIVE, Wallet
from guichet.ledger import wallets
from guichet.schemas.validation import invalid_request
from guichet.schemas.wallet import balance_object


async def read_balance(call: Call) -> Response:
    """A currency that never moved is shown as an open wallet with 0, created with the merchant (D26)."""
    currency = call.query.get("currency", DEFAULT_CURRENCY).upper()
    if currency not in CURRENCIES:
        raise invalid_request({"currency": [f"Valeurs acceptées : {', '.join(CURRENCIES)}."]})
    merchant = call.caller.merchant
    stored = await wallets.wallet(call.ctx.db, merchant.id, call.env, currency)
    wallet = stored or Wallet(merchant.id, call.env, currency, ACTIVE, Hundredths(0), merchant.created_at)
    return success_response(balance_object(wallet))
