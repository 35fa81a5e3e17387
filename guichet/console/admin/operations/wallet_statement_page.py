"""The movements of a merchant's wallet and its monthly statements, as the merchant's own console shows them."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.responses import Response

from guichet.console.admin.merchants.of_merchant import merchant_of
from guichet.console.admin.reads import record_read
from guichet.console.balance.balance_page import MovementsView, WalletQuery, movements_view
from guichet.console.balance.documents import month_document
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.audit_log import Facts
from guichet.domain.merchants import Environment, Merchant
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.pages.fields import Lenient


class StatementQuery(WalletQuery):
    """`month`: the PDF document of that one."""

    env: Lenient[Environment] = None
    month: str | None = None


@dataclass(frozen=True, slots=True)
class StatementView:
    """`kept`: what the forms send again of the address."""

    merchant: Merchant
    movements: MovementsView
    kept: dict[str, str]


async def show(request: StaffRequest) -> Response:
    """Of the live wallet of the account's currency unless the address names another. Days are those of the merchant's
    time zone, so that both read the same figures."""
    query, merchant = StatementQuery.read(request.query), await merchant_of(request)
    request.belongs_to(merchant)
    wallet = WalletKey(merchant.id, query.env or "live", query.currency or merchant.currency)
    read: Facts = {"env": wallet.env, "currency": wallet.currency}
    if query.month is not None:
        month, document = await month_document(request, merchant, wallet)
        await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id, {**read, "month": month})
        return document
    await record_read(request, "wallet.viewed", "merchant", merchant.id, merchant.id, read)
    kept: dict[str, str] = {"env": wallet.env, "currency": wallet.currency}
    address = partial(request.at_admin, f"/wallets/{merchant.id}/statement", **kept)
    movements = await movements_view(request, query, wallet, merchant.created_at, address)
    view = StatementView(merchant, movements, kept)
    return request.page("admin/operations/wallet_statement.html", view, movements.fault)


PAGES: Final = (StaffPage("/wallets/{merchant:row}/statement", "wallets.view", show),)
