"""What a merchant has: the wallets with what is held, and the movements of one of them."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.balance.movements import month_options, movements_view
from guichet.console.visit import Visit
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


async def show(visit: Visit, acting: Member) -> Response:
    query = visit.request.query_params
    shown = await wallet_views(visit, acting)
    currency = chosen_currency(acting, query.get("currency", ""))
    wallet = WalletKey(acting.merchant.id, acting.env, currency)

    def at(**more: str | None) -> str:
        return visit.here("/balance", None, currency=currency, **more)

    def payment_at(reference: str) -> str:
        return visit.here(f"/payments/{reference}")

    view: dict[str, Any] = {
        **await movements_view(visit, wallet, acting.merchant.created_at, at, payment_at),
        "wallets": shown,
        "currencies": currency_options(shown, currency),
        "months": month_options(visit, acting.merchant.created_at),
        "exports": visit.here("/exports") if acting.may("exports.download") else None,
    }
    return visit.show("balance/balance.html", 422 if view["fault"] else 200, **view)


async def wallet_views(visit: Visit, acting: Member) -> list[WalletView]:
    """The wallets of this environment; the one of the account's currency even if it never moved."""
    db = visit.console.ctx.db
    found = {each.currency: each for each in await wallets.wallets_of(db, acting.merchant.id) if each.env == acting.env}
    views = []
    for currency in CURRENCIES:
        wallet = found.get(currency)
        if wallet is None and currency != acting.merchant.currency:
            continue
        kept = await held(db, acting.merchant.id, acting.env, currency)
        balance = visit.amount(wallet.balance if wallet else 0, currency)
        suspended = wallet is not None and wallet.status != ACTIVE
        held_text = _held_text(visit, kept, currency) if kept.total else None
        views.append(WalletView(currency, balance, held_text, suspended))
    return views


def _held_text(visit: Visit, kept: Held, currency: Currency) -> Markup:
    """As much as the overview says, and what it is for."""
    total = visit.amount(kept.total, currency)
    if not kept.suspended:
        return visit.text("balance.held", amount=total, count=kept.refunds)
    part = visit.amount(kept.suspended, currency)
    return visit.text("balance.held_suspended", amount=total, count=kept.refunds, suspended=part)


def chosen_currency(acting: Member, typed: str) -> Currency:
    """The one that was asked for, or the account's."""
    return next((each for each in CURRENCIES if each == typed), acting.merchant.currency)


def currency_options(shown: list[WalletView], chosen: Currency) -> list[tuple[str, str]]:
    return [(each, each) for each in CURRENCIES if each == chosen or any(each == view.currency for view in shown)]
