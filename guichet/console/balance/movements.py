"""The movements of a wallet over a period, a page at a time, newest first: for its merchant, and for the staff."""

from collections.abc import Callable
from typing import Any, Final

from guichet.clock import Instant
from guichet.console.balance.periods import Period, read_period, today
from guichet.console.page_request import ConsoleRequest
from guichet.domain.money import Currency
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.movement_names import movement_name
from guichet.ledger.wallet_statement import Movement, newest_movements

_PER_PAGE: Final = 25
#: Months whose statement a page offers.
_MONTHS: Final = 24


async def movements_view(
    request: ConsoleRequest,
    wallet: WalletKey,
    created_at: Instant,
    at: Callable[..., str],
    payment_at: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """What `_movements.html` shows. `created_at`: of the account; `at`: the address of the page with more of a query;
    `payment_at`: that of the payment with this reference."""
    query = request.query
    period = _period(request, created_at)
    found, older = await _movements(request, wallet, period)
    filters = {"from": query.get("from"), "to": query.get("to")}
    return {
        "currency": wallet.currency,
        "period": period,
        "typed": {"from": query.get("from", "")[:20], "to": query.get("to", "")[:20]},
        "fault": request.text(f"balance.fault.{period.fault}") if period.fault else None,
        "movements": [_row(request, each, wallet.currency, payment_at) for each in found],
        "newest": at(**filters) if "before" in query else None,
        "older": at(**filters, before=older) if older else None,
    }


def month_options(request: ConsoleRequest, created_at: Instant) -> list[tuple[str, str]]:
    """The months whose statement is offered: since the account was made, newest first."""
    last = today(request.now(), request.time_zone)
    first = today(created_at, request.time_zone)
    count = min(_MONTHS, (last.year - first.year) * 12 + last.month - first.month + 1)
    months = []
    for back in range(max(1, count)):
        year, month = divmod(last.year * 12 + last.month - 1 - back, 12)
        months.append((f"{year:04d}-{month + 1:02d}", request.month(year, month + 1)))
    return months


def _period(request: ConsoleRequest, created_at: Instant) -> Period:
    """All of the account's life unless days were typed."""
    query, now = request.query, request.now()
    life = (today(created_at, request.time_zone), today(now, request.time_zone))
    return read_period(query.get("from", ""), query.get("to", ""), request.time_zone, life)


async def _movements(request: ConsoleRequest, wallet: WalletKey, period: Period) -> tuple[list[Movement], str | None]:
    """One page of movements, and the key of the page after it."""
    ctx, before = request.ctx, _key(request.query.get("before"))
    found = await newest_movements(ctx.db, wallet, period.since, period.until, _PER_PAGE + 1, ctx.clock.now(), before)
    page = found[:_PER_PAGE]
    return page, f"{page[-1].at}.{page[-1].posting_id}" if len(found) > _PER_PAGE else None


def _row(
    request: ConsoleRequest, each: Movement, currency: Currency, payment_at: Callable[[str], str] | None
) -> dict[str, Any]:
    sign = "+" if each.amount > 0 else ""
    return {
        "at": request.date_time(each.at),
        "kind": movement_name(each.cause, request.language),
        "reference": each.payment_reference,
        "href": payment_at(each.payment_reference) if payment_at and each.payment_reference else None,
        "external_id": each.external_id,
        "amount": sign + request.amount(each.amount, currency),
        "balance": request.amount(each.balance, currency),
    }


def _key(text: str | None) -> tuple[Instant, int] | None:
    """Where a page begins; None for anything that is not one of our keys."""
    at, _, posting = (text or "").partition(".")
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in (at, posting)):
        return None
    return Instant(int(at)), int(posting)
