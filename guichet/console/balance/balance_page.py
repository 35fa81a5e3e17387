"""What a merchant has: the wallets with what is held, and the movements of one of them."""

from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.clock import Instant
from guichet.console.balance.periods import Period, read_period, today
from guichet.console.visit import Visit
from guichet.domain.money import CURRENCIES, Currency
from guichet.domain.posting_rules import ACTIVE
from guichet.ledger import wallets
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.held import Held, held
from guichet.ledger.movement_names import movement_name
from guichet.ledger.wallet_statement import Movement, newest_movements

_PER_PAGE: Final = 25
#: Months whose statement the page offers.
_MONTHS: Final = 24


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
    period = _period(visit, acting)
    movements, older = await _movements(visit, acting, currency, period)
    filters = {"currency": currency, "from": query.get("from"), "to": query.get("to")}
    view: dict[str, Any] = {
        "wallets": shown,
        "currency": currency,
        "currencies": currency_options(shown, currency),
        "period": period,
        "typed": {"from": query.get("from", "")[:20], "to": query.get("to", "")[:20]},
        "fault": visit.text(f"balance.fault.{period.fault}") if period.fault else None,
        "movements": movements,
        "newest": visit.here("/balance", None, **filters) if "before" in query else None,
        "older": visit.here("/balance", None, **filters, before=older) if older else None,
        "months": _months(visit, acting),
        "exports": visit.here("/exports") if acting.may("exports.download") else None,
    }
    return visit.show("balance/balance.html", 422 if period.fault else 200, **view)


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


def _period(visit: Visit, acting: Member) -> Period:
    """All of the account's life unless days were typed."""
    query, now = visit.request.query_params, visit.console.ctx.clock.now()
    life = (today(acting.merchant.created_at, visit.time_zone), today(now, visit.time_zone))
    return read_period(query.get("from", ""), query.get("to", ""), visit.time_zone, life)


async def _movements(
    visit: Visit, acting: Member, currency: Currency, period: Period
) -> tuple[list[dict[str, Any]], str | None]:
    """One page of movements, and the key of the page after it."""
    ctx = visit.console.ctx
    wallet, before = WalletKey(acting.merchant.id, acting.env, currency), _key(visit.request.query_params.get("before"))
    found = await newest_movements(ctx.db, wallet, period.since, period.until, _PER_PAGE + 1, ctx.clock.now(), before)
    page = found[:_PER_PAGE]
    older = f"{page[-1].at}.{page[-1].posting_id}" if len(found) > _PER_PAGE else None
    return [_row(visit, each, currency) for each in page], older


def _row(visit: Visit, each: Movement, currency: Currency) -> dict[str, Any]:
    sign = "+" if each.amount > 0 else ""
    return {
        "at": visit.date_time(each.at),
        "kind": movement_name(each.cause, visit.language),
        "reference": each.payment_reference,
        "href": visit.here(f"/payments/{each.payment_reference}") if each.payment_reference else None,
        "external_id": each.external_id,
        "amount": sign + visit.amount(each.amount, currency),
        "balance": visit.amount(each.balance, currency),
    }


def _key(text: str | None) -> tuple[Instant, int] | None:
    """Where a page begins; None for anything that is not one of our keys."""
    at, _, posting = (text or "").partition(".")
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in (at, posting)):
        return None
    return Instant(int(at)), int(posting)


def _months(visit: Visit, acting: Member) -> list[tuple[str, str]]:
    """Months since the account was made, newest first."""
    last = today(visit.console.ctx.clock.now(), visit.time_zone)
    first = today(acting.merchant.created_at, visit.time_zone)
    count = min(_MONTHS, (last.year - first.year) * 12 + last.month - first.month + 1)
    months = []
    for back in range(max(1, count)):
        year, month = divmod(last.year * 12 + last.month - 1 - back, 12)
        months.append((f"{year:04d}-{month + 1:02d}", visit.month(year, month + 1)))
    return months
