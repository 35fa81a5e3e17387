"""The list of payments: filters by status and date, keyset pages, and one field that searches."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from starlette.responses import Response

from guichet.clock import earlier
from guichet.console.page_request import FormFault, MerchantRequest
from guichet.console.payments.payment_view import PaymentRow, contested, payment_row
from guichet.console.sections import MerchantPage
from guichet.db.lists.pages import key_of
from guichet.domain.catalogue import Catalogue
from guichet.domain.payments import PAYMENT_STATUSES, Payment, PaymentStatus, PaymentSummary
from guichet.domain.phone_numbers import written_forms
from guichet.history.search import MOST_FOUND, SHORTEST_NAME, search
from guichet.pages.days import Day, end_of_day, midnight
from guichet.pages.formatting import international_number
from guichet.pages.lists import ByTime, ListPage, Pager, row_key_text
from guichet.pages.views import View
from guichet.payments import repository
from guichet.payments.repository import PaymentFilter

PAGE_SIZE: Final = 25
#: Digits of the telephone numbers of the API (`schemas.payment`).
_PHONE_DIGITS: Final = range(8, 16)
#: What is said about a field of the address that is none of ours.
_FAULTS: Final = {
    "status": "payments.bad_status",
    "from": "payments.bad_date",
    "to": "payments.bad_date",
    "before": "payments.bad_page",
    "after": "payments.bad_page",
}


def _empty_as_none(text: Any) -> Any:
    return text or None


class Query(ByTime):
    """Days are those of the merchant, the last one included."""

    status: Annotated[PaymentStatus | None, BeforeValidator(_empty_as_none)] = None
    first: Annotated[Day | None, BeforeValidator(_empty_as_none), Field(alias="from")] = None
    last: Annotated[Day | None, BeforeValidator(_empty_as_none), Field(alias="to")] = None

    @model_validator(mode="after")
    def _in_order(self) -> "Query":
        if self.first and self.last and self.last < self.first:
            raise ValueError
        return self


class ListView(View, frozen=True):
    """`typed`: the fields of the address; `total`: of the list, None for a search, which has at most `most_found`."""

    payments: list[PaymentRow]
    statuses: list[tuple[str, str]]
    typed: dict[str, str]
    filtered: bool
    all: str
    total: int | None = None
    pager: Pager = Pager()
    searched: bool = False
    more_found: bool = False
    most_found: int = MOST_FOUND
    shortest_name: int = SHORTEST_NAME


async def show(request: MerchantRequest) -> Response:
    typed = {name: request.query.get(name, "") for name in ("q", "status", "from", "to")}
    view = partial(
        ListView,
        statuses=[
            ("", request.text("payments.any_status")),
            *((status, request.text(f"payments.status.{status}")) for status in PAYMENT_STATUSES),
        ],
        typed=typed,
        filtered=any(typed[name] for name in ("status", "from", "to")),
        all=request.here("/payments"),
    )
    catalogue = await request.ctx.catalogues.of(request.merchant.id)
    if typed["q"].strip():
        # In all statuses and of all times.
        found = await search(request.db, *request.scope, typed["q"], _phone_numbers(typed["q"], catalogue))
        rows = await _rows(request, found.payments, catalogue)
        return request.page("payments/list.html", view(rows, searched=True, more_found=found.more))
    try:
        query = Query.read({name: text.strip() for name, text in request.query.items()})
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        fault = FormFault(request.text(_FAULTS[str(place[0])] if place else "payments.bad_period"))
        return request.page("payments/list.html", view([]), fault)
    page, total = await _read(request, query)
    filters = {name: typed[name] for name in ("status", "from", "to")}
    return request.page(
        "payments/list.html",
        view(
            await _rows(request, page.rows, catalogue),
            total=total,
            pager=page.pager(
                lambda payment: row_key_text(key_of(payment)), partial(request.here, "/payments", None, **filters)
            ),
        ),
    )


async def _rows(
    request: MerchantRequest, payments: Sequence[Payment | PaymentSummary], catalogue: Catalogue
) -> list[PaymentRow]:
    open_ones = await contested(request)
    return [
        payment_row(request, payment, catalogue, "open" if payment.id in open_ones else None) for payment in payments
    ]


async def _read(request: MerchantRequest, query: Query) -> tuple[ListPage[PaymentSummary], int]:
    """The page that the query names, and how many payments its filters admit."""
    zone, cursor = request.time_zone, query.cursor
    filters = PaymentFilter(
        status=query.status,
        since=midnight(query.first, zone) if query.first else None,
        until=earlier(end_of_day(query.last, zone), 1) if query.last else None,
    )
    rows, total = await repository.page(
        request.db,
        *request.scope,
        PaymentSummary,
        filters,
        PAGE_SIZE + 1,
        0,
        after=cursor.key,
        oldest_first=cursor.is_newer,
    )
    return ListPage.cut(rows[::-1] if cursor.is_newer else rows, PAGE_SIZE, cursor), total


def _phone_numbers(typed: str, catalogue: Catalogue) -> set[str]:
    """The numbers, with country code, that the typed text may stand for in the countries of the merchant's modes."""
    dial_codes = {mode.dial_code for mode in catalogue.modes}
    numbers = {international_number(typed, dial_code) for dial_code in dial_codes}
    digits = {number for number in numbers if number.isascii() and number.isdigit() and len(number) in _PHONE_DIGITS}
    return {form for number in digits for form in written_forms(number)}


PAGES: Final = (MerchantPage("/payments", "payments.view", show, menu="payments"),)
