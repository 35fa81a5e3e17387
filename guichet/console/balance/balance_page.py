"""What a merchant has: the wallets with what is held, and the movements of one of them."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from guichet.console.balance.movements import month_options, movements_view
from guichet.console.page_request import MerchantRequest
from guichet.domain.money import CURRENCIES, Currency
from guichet.domain.posting_rules import ACTIVE
from guichet.ledger import wallets
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.held import Held, held


@dataclass(frozen=True, slots=True)
class WalletView:
    currency: Currency
    balance: str
    held: Markup | None
    suspended: bool


async def show(request: MerchantRequest) -> Response:
    query = request.query
    shown = await wallet_views(request)
    currency = chosen_currency(request, query.get("currency", ""))
    wallet = WalletKey(request.merchant.id, request.env, currency)

    def at(**more: str | None) -> str:
        return request.here("/balance", None, currency=currency, **more)

    def payment_at(reference: str) -> str:
        return request.here(f"/payments/{reference}")

    view: dict[str, Any] = {
        **await movements_view(request, wallet, request.merchant.created_at, at, payment_at),
        "wallets": shown,
        "currencies": currency_options(shown, currency),
        "months": month_options(request, request.merchant.created_at),
        "exports": request.here("/exports") if request.may("exports.download") else None,
    }
    return request.show("balance/balance.html", 422 if view["fault"] else 200, **view)


async def wallet_views(request: MerchantRequest) -> list[WalletView]:
    """The wallets of this environment; the one of the account's currency even if it never moved."""
    db = request.db
    found = {
        each.currency: each for each in await wallets.wallets_of(db, request.merchant.id) if each.env == request.env
    }
    views = []
    for currency in CURRENCIES:
        wallet = found.get(currency)
        if wallet is None and currency != request.merchant.currency:
            continue
        kept = await held(db, request.merchant.id, request.env, currency)
        balance = request.amount(wallet.balance if wallet else 0, currency)
        suspended = wallet is not None and wallet.status != ACTIVE
        held_text = _held_text(request, kept, currency) if kept.total else None
        views.append(WalletView(currency, balance, held_text, suspended))
    return views


def _held_text(request: MerchantRequest, kept: Held, currency: Currency) -> Markup:
    """As much as the overview says, and what it is for."""
    total = request.amount(kept.total, currency)
    if not kept.suspended:
        return request.text("balance.held", amount=total, count=kept.refunds)
    part = request.amount(kept.suspended, currency)
    return request.text("balance.held_suspended", amount=total, count=kept.refunds, suspended=part)


def chosen_currency(request: MerchantRequest, typed: str) -> Currency:
    """The one that was asked for, or the account's."""
    return next((each for each in CURRENCIES if each == typed), request.merchant.currency)


def currency_options(shown: list[WalletView], chosen: Currency) -> list[tuple[str, str]]:
    return [(each, each) for each in CURRENCIES if each == chosen or any(each == view.currency for view in shown)]
