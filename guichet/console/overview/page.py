"""`/console/<merchant>/<env>`: what came in, what may be spent, what needs attention."""

from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Final, Literal

from babel.dates import format_date
from starlette.responses import Response

from guichet.console.overview.attention import Concern, concerns, own_limits
from guichet.console.overview.figures import Bar, Days, columns, count_text, lines, rate_text, time_text
from guichet.console.page_request import MerchantRequest
from guichet.console.sections import MerchantPage
from guichet.domain.catalogue import Catalogue
from guichet.domain.merchants import Merchant
from guichet.domain.money import CURRENCIES, Currency
from guichet.domain.posting_rules import Wallet
from guichet.domain.records import Record
from guichet.history.figures import DAYS, Figures, MonthFigures, added_up, month_figures
from guichet.ledger import wallets
from guichet.ledger.wallets import held
from guichet.pages.fields import Fields, Lenient
from guichet.pages.formatting import country_name
from guichet.pages.views import View

#: The last days that a part of the page may be about.
_PERIODS: Final = (1, 7, DAYS)
_USUAL: Final = 7


class DayLine(View, frozen=True):
    """A row of the table of days, as text."""

    name: str
    amount: str
    paid: str
    failed: str


class Line(DayLine, frozen=True):
    """A row of another table, as text."""

    rate: str
    time: str


class PeriodView(View, frozen=True):
    """`refunded`: an amount, None without one."""

    line: Line
    refunded: str | None


class DailyView(View, frozen=True):
    """`most`: the highest amount of a day; `ends`: the first and the last day."""

    bars: list[Bar]
    lines: list[DayLine]
    most: str
    ends: tuple[str, str]


class GroupsView(View, frozen=True):
    bars: list[tuple[Bar, Line]]
    lines: list[Line]


class MoneyView(View, frozen=True):
    balance: str
    held: str


class OverviewView(View, frozen=True):
    """`choices` and `currencies`: a text, its address, and whether it is what the page shows. `exact`: see `Days`."""

    merchant: Merchant
    periods: list[PeriodView]
    period: str
    choices: list[tuple[str, str, bool]]
    currencies: list[tuple[str, str, bool]]
    daily: DailyView
    operators: GroupsView
    countries: GroupsView
    empty: bool
    exact: bool
    money: MoneyView | None
    concerns: list[Concern]
    limits: list[tuple[str, str]]


class Query(Fields):
    """`days`: the last ones that a part of the page is about."""

    currency: Lenient[Currency] = None
    days: Lenient[Literal["1", "7", "30"]] = None


async def show(request: MerchantRequest) -> Response:
    ctx, query, now = request.ctx, Query.read(request.query), request.now()
    days = Days.until(now, request.time_zone)
    period = int(query.days or _USUAL)
    currency, figures = await _figures(request, query.currency, days, period)
    used = figures.other_currencies | {currency, request.merchant.currency}
    report = _Report(request, await ctx.catalogues.of(request.merchant.id), currency, figures)
    choices: list[tuple[str, str, bool]] = [
        (request.text(f"overview.days_{length}"), _here(request, length, currency), length == period)
        for length in _PERIODS
    ]
    currencies: list[tuple[str, str, bool]] = [
        (other, _here(request, period, other), other == currency) for other in CURRENCIES if other in used
    ]
    sees_money = request.may("balance.view")
    wallet = await wallets.wallet(request.db, *request.scope, currency) if sees_money else None
    view = OverviewView(
        merchant=request.merchant,
        periods=[report.period(length) for length in _PERIODS],
        period=request.text(f"overview.days_{period}"),
        choices=choices,
        currencies=currencies if len(used) > 1 else [],
        daily=report.daily(days),
        operators=report.groups(report.operator_name),
        countries=report.groups(report.country_name),
        empty=figures.is_empty,
        exact=days.exact,
        money=await _money(request, wallet, currency) if sees_money else None,
        concerns=await concerns(request, wallet, now),
        limits=await own_limits(request, now),
    )
    return request.page("overview/page.html", view)


async def _figures(
    request: MerchantRequest, chosen: Currency | None, days: Days, period: int
) -> tuple[Currency, MonthFigures]:
    """In the currency that was chosen, if there is a payment in it; otherwise in the merchant's."""
    own = request.merchant.currency
    for currency in (chosen or own, own):
        figures = await month_figures(request.db, *request.scope, days.bounds, currency, period)
        if currency == own or not figures.is_empty:
            break
    return currency, figures


def _here(request: MerchantRequest, period: int, currency: Currency) -> str:
    """The address of this page for another period or currency."""
    other = currency if currency != request.merchant.currency else None
    return request.here("", days=str(period) if period != _USUAL else None, currency=other)


async def _money(request: MerchantRequest, wallet: Wallet | None, currency: Currency) -> MoneyView:
    total = (await held(request.db, *request.scope, currency)).total
    return MoneyView(request.amount(wallet.balance if wallet else 0, currency), request.amount(total, currency))


class _Report(Record, frozen=True):
    """Figures as charts and tables."""

    request: MerchantRequest
    catalogue: Catalogue
    currency: Currency
    figures: MonthFigures

    def period(self, last_days: int) -> PeriodView:
        figures = added_up(self.figures.by_day[-last_days:])
        line = self._line(str(self.request.text(f"overview.days_{last_days}")), figures)
        refunded = self._amount(figures.refunded_amount) if figures.refunded else None
        return PeriodView(line, refunded)

    def daily(self, days: Days) -> DailyView:
        """The newest day is the last bar, and the first row of the table. Days without a payment have no row."""
        language = self.request.language
        rows, titles = [], []
        for day, figures in zip(days.dates, self.figures.by_day, strict=True):
            name, amount = _day_name(day, language), self._amount(figures.amount)
            titles.append((f"{name} : {amount}", figures.amount))
            if figures.paid + figures.failed:
                row = DayLine(name, amount, count_text(figures.paid, language), count_text(figures.failed, language))
                rows.append(row)
        most = self._amount(max(figures.amount for figures in self.figures.by_day))
        ends = _day_name(days.dates[0], language), _day_name(days.dates[-1], language)
        return DailyView(columns(titles), rows[::-1], most, ends)

    def groups(self, name_of: Callable[[str], str]) -> GroupsView:
        """The operators that `name_of` gives one name are one group, the largest amount first."""
        named: dict[str, list[Figures]] = {}
        for operator, figures in self.figures.by_operator.items():
            named.setdefault(name_of(operator), []).append(figures)
        groups = [(name, added_up(members)) for name, members in named.items()]
        groups.sort(key=lambda group: (-group[1].amount, group[0]))
        bars = lines([(name, figures.amount) for name, figures in groups])
        rows = [self._line(name, figures) for name, figures in groups]
        return GroupsView(list(zip(bars, rows, strict=True)), rows)

    def operator_name(self, operator: str) -> str:
        """An operator that the catalogue no longer has keeps its code."""
        mode = self.catalogue.by_operator(operator)
        if mode is None:
            return operator
        return f"{mode.name} ({mode.country_code})" if mode.country_code else mode.name

    def country_name(self, operator: str) -> str:
        mode = self.catalogue.by_operator(operator)
        if mode is None or mode.country is None:
            return str(self.request.text("overview.no_country"))
        return country_name(mode.country, mode.country_code, self.request.language)

    def _amount(self, hundredths: int) -> str:
        return self.request.amount(hundredths, self.currency)

    def _line(self, name: str, figures: Figures) -> Line:
        language = self.request.language
        return Line(
            name=name,
            amount=self._amount(figures.amount),
            paid=count_text(figures.paid, language),
            failed=count_text(figures.failed, language),
            rate=rate_text(figures.success_rate, language),
            time=time_text(figures.average_time),
        )


@lru_cache(maxsize=256)
def _day_name(day: date, language: str) -> str:
    """`23 nov.`. Babel takes 0.1 ms for each: a tenth of the page's time."""
    return format_date(day, "d MMM", locale=language)


PAGES: Final = (MerchantPage("", "overview.view", show, menu="overview"),)
