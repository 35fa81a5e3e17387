"""The list of payments: filters by status and date, keyset pages, and one field that searches.

A page is cut from the list at a payment that both neighbours know: `after`, with `order` as in the API (`desc`: the
payments before it, `asc`: those that came next). The newest always stands first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from starlette.responses import Response

from guichet.clock import Instant, earlier, from_datetime
from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import PaymentView, payment_view
from guichet.db.lists.pages import RowKey, key_of
from guichet.db.references import parse_reference
from guichet.domain.catalogue import Catalogue
from guichet.domain.payments import PAYMENT_STATUSES, Payment
from guichet.domain.phone_numbers import written_forms
from guichet.history.search import MOST_FOUND, SHORTEST_NAME, search
from guichet.pages.formatting import international_number
from guichet.payments import repository
from guichet.payments.repository import PaymentFilter

PAGE_SIZE: Final = 25
#: Digits of the telephone numbers of the API (`schemas.payment`).
_PHONE_DIGITS: Final = range(8, 16)
_YEARS: Final = range(2000, 2100)


class _BadFilter(Exception):
    """The message is the key of the sentence that says what is wrong with an address."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a page begins. `newer`: it holds what came next after `after`, instead of what was before."""

    after: RowKey | None
    newer: bool


async def show(request: MerchantRequest) -> Response:
    typed = {name: request.query.get(name, "") for name in ("q", "status", "from", "to")}
    if typed["q"].strip():
        return await _found(request, typed)
    try:
        wanted = _filter(typed, request.time_zone)
        cut = await _cut(request)
    except _BadFilter as fault:
        return _page(request, [], typed, status=422, fault=request.text(str(fault)))
    whose = (request.db, request.merchant.id, request.env)
    rows, total = await repository.page(*whose, wanted, PAGE_SIZE + 1, 0, after=cut.after, oldest_first=cut.newer)
    more, rows = len(rows) > PAGE_SIZE, rows[:PAGE_SIZE]
    if cut.newer:
        rows = rows[::-1]
    catalogue = await request.ctx.catalogues.of(request.merchant.id)
    newer, older = _neighbours(request, typed, rows, cut, more=more)
    return _page(request, _views(request, rows, catalogue), typed, total=total, newer=newer, older=older)


async def _found(request: MerchantRequest, typed: dict[str, str]) -> Response:
    """The payments that a search found, in all statuses and of all times."""
    catalogue = await request.ctx.catalogues.of(request.merchant.id)
    whose = (request.db, request.merchant.id, request.env)
    found = await search(*whose, typed["q"], _phone_numbers(typed["q"], catalogue))
    views = _views(request, found.payments, catalogue)
    return _page(request, views, typed, searched=True, more_found=found.more)


def _phone_numbers(typed: str, catalogue: Catalogue) -> set[str]:
    """The numbers, with country code, that the typed text may stand for in the countries of the merchant's modes."""
    dial_codes = {mode.dial_code for mode in catalogue.modes}
    numbers = {international_number(typed, dial_code) for dial_code in dial_codes}
    digits = {each for each in numbers if each.isascii() and each.isdigit() and len(each) in _PHONE_DIGITS}
    return {form for each in digits for form in written_forms(each)}


def _filter(typed: Mapping[str, str], zone: ZoneInfo) -> PaymentFilter:
    """Raises _BadFilter. Days are those of the merchant, the last one included."""
    status = next((each for each in PAYMENT_STATUSES if each == typed["status"]), None)
    if typed["status"] and status is None:
        raise _BadFilter("payments.bad_status")
    since, until = _day(typed["from"]), _day(typed["to"])
    if since and until and until < since:
        raise _BadFilter("payments.bad_period")
    return PaymentFilter(
        status=status,
        since=_start(since, zone) if since else None,
        until=earlier(_start(until + timedelta(days=1), zone), 1) if until else None,
    )


def _day(typed: str) -> date | None:
    if not typed.strip():
        return None
    try:
        day = date.fromisoformat(typed.strip())
    except ValueError:
        raise _BadFilter("payments.bad_date") from None
    if day.year not in _YEARS:
        raise _BadFilter("payments.bad_date")
    return day


def _start(day: date, zone: ZoneInfo) -> Instant:
    return from_datetime(datetime.combine(day, time(), zone))


async def _cut(request: MerchantRequest) -> _Cut:
    """Raises _BadFilter."""
    query = request.query
    order, after = query.get("order", "desc"), query.get("after")
    if order not in ("desc", "asc"):
        raise _BadFilter("payments.bad_page")
    if after is None:
        return _Cut(None, order == "asc")
    reference = parse_reference(after)
    whose = (request.db, request.merchant.id, request.env)
    payment = None if reference is None else await repository.by_reference(*whose, reference)
    if payment is None:
        raise _BadFilter("payments.bad_page")
    return _Cut(key_of(payment), order == "asc")


def _neighbours(
    request: MerchantRequest, typed: Mapping[str, str], rows: list[Payment], cut: _Cut, *, more: bool
) -> tuple[str | None, str | None]:
    """The addresses of the pages with newer and with older payments; None where there is none."""

    def address(row: Payment, order: str | None) -> str:
        chosen: dict[str, Any] = {name: typed[name] for name in ("status", "from", "to")}
        return request.here("/payments", **chosen, after=row.reference, order=order)

    is_newer, is_older = (more, cut.after is not None) if cut.newer else (cut.after is not None, more)
    newer = address(rows[0], "asc") if rows and is_newer else None
    return newer, address(rows[-1], None) if rows and is_older else None


def _views(request: MerchantRequest, rows: list[Payment], catalogue: Catalogue) -> list[PaymentView]:
    return [payment_view(request, row, catalogue.by_operator(row.operator)) for row in rows]


def _page(
    request: MerchantRequest, shown: list[PaymentView], typed: dict[str, str], *, status: int = 200, **values: Any
) -> Response:
    defaults = {"fault": None, "total": None, "newer": None, "older": None, "searched": False, "more_found": False}
    options = [("", request.text("payments.any_status"))]
    options += [(each, request.text(f"payments.status.{each}")) for each in PAYMENT_STATUSES]
    view = {
        **defaults,
        "payments": shown,
        "typed": typed,
        "statuses": options,
        "all": request.here("/payments"),
        **values,
    }
    limits = {"most_found": MOST_FOUND, "shortest_name": SHORTEST_NAME}
    view["filtered"] = any(typed[name] for name in ("status", "from", "to"))
    return request.show("payments/list.html", status, **view, **limits)
