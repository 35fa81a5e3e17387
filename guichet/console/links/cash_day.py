"""The end of a day at the cash desk: what each cashier sold, by operator, to be printed and compared with the till.

A cashier sees their own sales; who may see what the shop takes in sees those of all cashiers.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import groupby

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.domain.catalogue import Catalogue
from guichet.domain.money import Hundredths
from guichet.history.cash_desk_sales import Sales, sales_between
from guichet.pages.days import end_of_day, midnight, read_day, today
from guichet.pages.views import View


class OperatorLine(View, frozen=True):
    """`refunded`: the money went back to the customer since."""

    operator: str
    refunded: bool
    count: int
    amount: str


class CashierView(View, frozen=True):
    """`total`: without what went back; one for each currency."""

    name: str
    lines: list[OperatorLine]
    count: int
    totals: list[str]


class DayView(View, frozen=True):
    """`chosen`: as the field for a day has it. `earlier` and `later`: the days beside it; None for one to come."""

    cashiers: list[CashierView]
    day: str
    chosen: str
    earlier: str
    later: str | None
    printed: str


async def own_sales_today(request: MerchantRequest) -> int:
    """How many sales of the person who asks were paid today."""
    day = today(request.now(), request.time_zone)
    return sum(sale.count for sale in await _sales(request, day) if sale.cashier_id == request.person.id)


async def show(request: MerchantRequest) -> Response:
    latest = today(request.now(), request.time_zone)
    day = min(read_day(request.query.get("day", "")) or latest, latest)
    sees_all = request.may("overview.view")
    sales = [sale for sale in await _sales(request, day) if sees_all or sale.cashier_id == request.person.id]
    modes = await request.ctx.catalogues.of(request.merchant.id)
    view = DayView(
        cashiers=[_cashier(request, modes, list(rows)) for _, rows in groupby(sales, key=lambda sale: sale.cashier_id)],
        day=request.day(day),
        chosen=day.isoformat(),
        earlier=_address(request, day - timedelta(days=1)),
        later=_address(request, day + timedelta(days=1)) if day < latest else None,
        printed=request.date_time(request.now()),
    )
    return request.page("links/cash_day.html", view)


async def _sales(request: MerchantRequest, day: date) -> list[Sales]:
    zone = request.time_zone
    return await sales_between(request.db, *request.scope, midnight(day, zone), end_of_day(day, zone))


def _cashier(request: MerchantRequest, modes: Catalogue, sales: Sequence[Sales]) -> CashierView:
    lines = []
    for sale in sales:
        mode = modes.by_operator(sale.operator)
        lines.append(
            OperatorLine(
                operator=mode.name if mode else sale.operator,
                refunded=sale.status == "refunded",
                count=sale.count,
                amount=request.amount(sale.amount, sale.currency),
            )
        )
    succeeded = [sale for sale in sales if sale.status == "succeeded"]
    currencies = sorted({sale.currency for sale in succeeded}) or [request.merchant.currency]
    return CashierView(
        name=sales[0].cashier,
        lines=lines,
        count=sum(sale.count for sale in succeeded),
        totals=[
            request.amount(Hundredths(sum(sale.amount for sale in succeeded if sale.currency == currency)), currency)
            for currency in currencies
        ],
    )


def _address(request: MerchantRequest, day: date) -> str:
    return request.merchant_url("/cash-desk/day", day=day.isoformat())
