"""The list of payments: filters as addresses, counts beside them, days as headings, and one field that searches."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from starlette.responses import Response

from guichet.clock import Instant, earlier
from guichet.console.page_request import FormFault, MerchantRequest
from guichet.console.payments.list_filter import (
    ADDRESS,
    Choice,
    FilterFields,
    ListCounts,
    catalogue_choices,
    empty_as_none,
    filter_query,
    periods,
    statuses,
)
from guichet.console.payments.payment_view import PaymentRow, contested, listed, payment_row
from guichet.db.lists.pages import ListScope, RowKey, key_of, status_counts
from guichet.db.tables import payments as payments_table
from guichet.domain.catalogue import Catalogue
from guichet.domain.payments import Payment, PaymentSummary
from guichet.domain.phone_numbers import written_forms
from guichet.history.narrowed_list import MOST_READ, narrowed_counts, narrowed_page
from guichet.history.search import MOST_FOUND, SHORTEST, search
from guichet.pages.days import Day, end_of_day, midnight, today
from guichet.pages.formatting import international_number, time_of_day
from guichet.pages.lists import ByTime, ListPage, Pager, row_key_text
from guichet.pages.views import View

PAGE_SIZE: Final = 25
#: Digits of the telephone numbers of the API (`schemas.payment`).
_PHONE_DIGITS: Final = range(8, 16)
#: The text about a field of the address whose value is invalid.
_FAULTS: Final = {
    "status": "payments.bad_status",
    "from": "payments.bad_date",
    "to": "payments.bad_date",
    "least": "payments.bad_amount",
    "most": "payments.bad_amount",
    "before": "payments.bad_page",
    "after": "payments.bad_page",
}
_ALWAYS: Final = (Instant(0), Instant(2**62))


class Query(ByTime, FilterFields):
    """Days are those of the merchant, the last one included."""

    first: Annotated[Day | None, BeforeValidator(empty_as_none), Field(alias="from")] = None
    last: Annotated[Day | None, BeforeValidator(empty_as_none), Field(alias="to")] = None

    @model_validator(mode="after")
    def _in_order(self) -> "Query":
        if self.first and self.last and self.last < self.first:
            raise ValueError
        return self


class DayRows(View, frozen=True):
    """The payments of one day. `name`: None where they are not grouped."""

    name: str | None
    payments: list[PaymentRow]


class PaymentListView(View, frozen=True):
    """`form_values`: the fields of the address; `narrowed`: by what only the form shows; `total`: of the list, None
    where nothing is counted; `goes_on`: the page read as many payments as it may and there are more; `export`: the
    address that exports this list."""

    days: list[DayRows]
    form_values: dict[str, str]
    all: str
    filtered: bool
    statuses: list[Choice] = []
    periods: list[Choice] = []
    operators: list[tuple[str, str]] = []
    countries: list[tuple[str, str]] = []
    narrowed: bool = False
    total: str | None = None
    pager: Pager = Pager()
    goes_on: bool = False
    most_read: int = MOST_READ
    export: str | None = None
    searched: bool = False
    more_found: bool = False
    most_found: int = MOST_FOUND
    shortest: int = SHORTEST


async def show(request: MerchantRequest) -> Response:
    form_values = {name: request.query.get(name, "").strip() for name in ("q", *ADDRESS)}
    catalogue = await request.ctx.catalogues.of(request.merchant.id)
    filtered = any(form_values[name] for name in ADDRESS)
    view = partial(PaymentListView, form_values=form_values, all=request.merchant_url("/payments"), filtered=filtered)
    if form_values["q"]:
        days, more_found = await _found(request, form_values["q"], catalogue)
        return request.page("payments/list.html", view(days, searched=True, more_found=more_found))
    view = partial(view, **catalogue_choices(request, catalogue))
    try:
        query = Query.read({name: text.strip() for name, text in request.query.items()})
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        request.fault = FormFault(request.text(_FAULTS[str(place[0])] if place else "payments.bad_period"))
        return request.page("payments/list.html", view([]))
    since, until = _period(request, query)
    address = partial(request.merchant_url, "/payments", None, **filter_query(form_values))
    if query.list_filter.has_no_index:
        rows, pager, goes_on, counts = await _narrowed(request, query, catalogue, since, until, address)
    else:
        counts = ListCounts(await status_counts(request.db, payments_table, ListScope(*request.scope), since, until))
        page = await _page(request, query, since, until)
        rows, goes_on = page.rows, False
        pager = page.pager(lambda payment: row_key_text(key_of(payment)), address)
    return request.page(
        "payments/list.html",
        view(
            await _by_day(request, rows, catalogue),
            statuses=statuses(request, form_values, counts),
            periods=periods(request, form_values),
            total=counts.text(query.status or "", request.language),
            pager=pager,
            narrowed=query.list_filter.has_no_index,
            goes_on=goes_on,
            export=_export(request, form_values),
        ),
    )


async def _found(request: MerchantRequest, term: str, catalogue: Catalogue) -> tuple[list[DayRows], bool]:
    """What the search finds, in all statuses and of all times, and whether there is more."""
    result = await search(request.db, *request.scope, term, _phone_numbers(term, catalogue), request.now())
    hits = await _rows(request, result.payments, catalogue, request.date_time) if result.payments else []
    return [DayRows(None, hits)] if hits else [], result.more


def _period(request: MerchantRequest, query: Query) -> tuple[Instant | None, Instant | None]:
    """The first and the last instant of the days that the query names."""
    zone = request.time_zone
    since = midnight(query.first, zone) if query.first else None
    return since, earlier(end_of_day(query.last, zone), 1) if query.last else None


async def _page(
    request: MerchantRequest, query: Query, since: Instant | None, until: Instant | None
) -> ListPage[PaymentSummary]:
    """The page that the query names."""
    cursor, period = query.cursor, {"since": since, "until": until}
    order = {"after": cursor.key, "oldest_first": cursor.is_newer}
    rows = await listed(request, PAGE_SIZE + 1, query.status, **period, **order)
    return ListPage.cut(rows[::-1] if cursor.is_newer else rows, PAGE_SIZE, cursor)


async def _narrowed(
    request: MerchantRequest,
    query: Query,
    catalogue: Catalogue,
    since: Instant | None,
    until: Instant | None,
    address: Any,
) -> tuple[list[PaymentSummary], Pager, bool, ListCounts]:
    """The page and the counts by operator, country or amount: it goes one way, and tells when it looked at as many as
    it may."""
    list_filter, operators = query.list_filter, query.list_filter.operators(catalogue)
    narrowed = (*request.scope, list_filter, operators, since or _ALWAYS[0], until or _ALWAYS[1])
    rows, following = await narrowed_page(request.db, *narrowed, PAGE_SIZE, query.before)
    older = None if following is None else address(before=row_key_text(RowKey(*following)))
    counts = ListCounts(*await narrowed_counts(request.db, *narrowed))
    return rows, Pager(older=older), following is not None and len(rows) < PAGE_SIZE, counts


async def _by_day(request: MerchantRequest, rows: Sequence[PaymentSummary], catalogue: Catalogue) -> list[DayRows]:
    days: dict[date, list[PaymentRow]] = {}
    zone = request.time_zone
    views = await _rows(request, rows, catalogue, lambda instant: time_of_day(instant, zone))
    for payment, row in zip(rows, views, strict=True):
        days.setdefault(today(payment.created_at, zone), []).append(row)
    now = today(request.now(), zone)
    names = {now: request.text("payments.today"), now - timedelta(days=1): request.text("payments.yesterday")}
    return [
        DayRows(f"{names[day]} · {request.day(day)}" if day in names else request.day(day), of)
        for day, of in days.items()
    ]


async def _rows(
    request: MerchantRequest,
    payments: Sequence[Payment | PaymentSummary],
    catalogue: Catalogue,
    when: Callable[[Instant], str],
) -> list[PaymentRow]:
    disputed = await contested(request)
    return [
        payment_row(request, payment, catalogue, when(payment.created_at), "open" if payment.id in disputed else None)
        for payment in payments
    ]


def _export(request: MerchantRequest, form_values: dict[str, str]) -> str | None:
    """The page of exports with the filters of this list; None for who may not."""
    return (
        request.merchant_url("/exports", None, **filter_query(form_values)) if request.may("exports.download") else None
    )


def _phone_numbers(term: str, catalogue: Catalogue) -> set[str]:
    """The numbers, with country code, that the typed text may stand for in the countries of the merchant's modes."""
    dial_codes = {mode.dial_code for mode in catalogue.modes}
    numbers = {international_number(term, dial_code) for dial_code in dial_codes}
    digits = {number for number in numbers if number.isascii() and number.isdigit() and len(number) in _PHONE_DIGITS}
    return {form for number in digits for form in written_forms(number)}
