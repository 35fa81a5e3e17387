"""The movements of a merchant's wallet and its monthly statements, as the merchant's own console shows them."""

from typing import Final

from starlette.responses import Response

from guichet.console.admin.merchants.of_merchant import merchant_of
from guichet.console.admin.reads import record_read
from guichet.console.balance.documents import month_document
from guichet.console.balance.movements import month_options, movements_view
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.audit_log import Facts
from guichet.domain.merchants import ENVS, Environment
from guichet.domain.money import CURRENCIES
from guichet.ledger.balance_checkpoints import WalletKey


async def show(request: StaffRequest) -> Response:
    """Of the wallet that `?env=` and `?currency=` name, or of the live one of the account's currency; with `?month=`
    the PDF document of that month. Days are those of the merchant's time zone, so that both read the same figures."""
    query = request.query
    merchant = await merchant_of(request)
    request.belongs_to(merchant)
    env: Environment = next((each for each in ENVS if each == query.get("env")), "live")
    currency = next((each for each in CURRENCIES if each == query.get("currency")), merchant.currency)
    wallet = WalletKey(merchant.id, env, currency)
    named = {"env": env, "currency": currency}
    read: Facts = {"env": env, "currency": currency}
    if "month" in query:
        month, document = await month_document(request, merchant, wallet)
        await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id, {**read, "month": month})
        return document

    def at(**more: str | None) -> str:
        return request.at_admin(f"/wallets/{merchant.id}/statement", **named, **more)

    await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id, read)
    shown = await movements_view(request, wallet, merchant.created_at, at)
    view = {
        **shown,
        "merchant": merchant,
        "kept": named,
        "currencies": (),  # Each wallet has its own link.
        "months": month_options(request, merchant.created_at),
    }
    return request.show("admin/operations/wallet_statement.html", 422 if shown["fault"] else 200, **view)


PAGES: Final = (StaffPage("/wallets/{merchant:row}/statement", "wallets.view", show),)
