"""`/console/<merchant>/<env>`: what came in, what may be spent, what needs attention."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Final

from babel.dates import format_date
from starlette.responses import Response

from guichet.console.overview import charts
from guichet.console.overview.attention import concerns
from guichet.console.overview.days import Days
from guichet.console.overview.own_limits import own_limits
from guichet.console.overview.summaries import Summary, count_text, rate_text, summarise, time_text
from guichet.console.page_request import MerchantRequest
from guichet.console.sections import MerchantPage
from guichet.domain.catalogue import Catalogue
from guichet.domain.money import CURRENCIES, Currency
from guichet.history.figures import DAYS, Figure, daily_figures
from guichet.ledger import wallets
from guichet.ledger.held import held
from guichet.pages.formatting import country_name

#: The last days that a part of the page may be about.
_PERIODS: Final = (1, 7, DAYS)
_USUAL: Final = 7


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table, as text."""

    name: str
    amount: str
    paid: str
    failed: str
    rate: str
    time: str


async def show(request: MerchantRequest) -> Response:
    ctx, query = request.ctx, request.query
    now = ctx.clock.now()
    days = Days.until(now, request.time_zone)
    figures = await daily_figures(ctx.db, request.merchant.id, request.env, days.bounds)
    used = {each.currency for each in figures} | {request.merchant.currency}
    asked = next((each for each in used if each == query.get("currency")), request.merchant.currency)
    period = next((each for each in _PERIODS if str(each) == query.get("days")), _USUAL)
    mine = [each for each in figures if each.currency == asked]
    report = _Report(request, await ctx.catalogues.of(request.merchant.id), asked, mine)
    return request.show(
        "overview/page.html",
        merchant=request.merchant,
        periods=[report.period(each) for each in _PERIODS],
        period=request.text(f"overview.days_{period}"),
        choices=[
            (request.text(f"overview.days_{each}"), _here(request, each, asked), each == period) for each in _PERIODS
        ],
        currencies=[(each, _here(request, period, each), each == asked) for each in CURRENCIES if each in used]
        if len(used) > 1
        else [],
        daily=report.daily(days),
        operators=report.by("operator", period),
        countries=report.by("country", period),
        empty=not mine,
        exact=days.exact,
        money=await _money(request, asked) if request.may("balance.view") else None,
        concerns=await concerns(request, asked, now),
        limits=await own_limits(request, now),
    )


def _here(request: MerchantRequest, period: int, currency: Currency) -> str:
    """The address of this page for another period or currency."""
    other = currency if currency != request.merchant.currency else None
    return request.here("", days=str(period) if period != _USUAL else None, currency=other)


async def _money(request: MerchantRequest, currency: Currency) -> dict[str, str]:
    db, mine = request.db, (request.merchant.id, request.env, currency)
    wallet = await wallets.wallet(db, *mine)
    return {
        "balance": request.amount(wallet.balance if wallet else 0, currency),
        "held": request.amount((await held(db, *mine)).total, currency),
    }


@dataclass(frozen=True, slots=True)
class _Report:
    """Figures of one currency as charts and tables."""

    request: MerchantRequest
    catalogue: Catalogue
    currency: Currency
    figures: list[Figure]

    def period(self, last_days: int) -> dict[str, Any]:
        summary = summarise(self._of_last(last_days))
        line = self._line(str(self.request.text(f"overview.days_{last_days}")), summary)
        refunded = self.request.amount(summary.refunded_amount, self.currency) if summary.refunded else None
        return {"line": line, "refunded": refunded}

    def daily(self, days: Days) -> dict[str, Any]:
        """The newest day is the last bar, and the first row of the table. Days without a payment have no row."""
        of_day: list[list[Figure]] = [[] for _ in range(DAYS)]
        for each in self.figures:
            of_day[each.day].append(each)
        by_day = [summarise(figures) for figures in of_day]
        names = [_day_name(each, self.request.language) for each in days.dates]
        lines = [
            self._line(name, summary)
            for name, summary in zip(names, by_day, strict=True)
            if summary.paid + summary.failed
        ]
        values = [
            (f"{name} : {self.request.amount(summary.amount, self.currency)}", summary.amount)
            for name, summary in zip(names, by_day, strict=True)
        ]
        most = self.request.amount(max(each.amount for each in by_day), self.currency)
        return {"bars": charts.columns(values), "lines": lines[::-1], "most": most, "ends": (names[0], names[-1])}

    def by(self, what: str, last_days: int) -> dict[str, Any]:
        """By `operator` or `country`, the largest amount first."""
        name_of = self._operator_name if what == "operator" else self._country_name
        groups = _grouped(self._of_last(last_days), lambda each: name_of(each.operator))
        ordered = sorted(groups, key=lambda group: (-group[1].amount, group[0]))
        bars = charts.lines([(name, summary.amount) for name, summary in ordered])
        lines = [self._line(name, summary) for name, summary in ordered]
        return {"bars": list(zip(bars, lines, strict=True)), "lines": lines}

    def _of_last(self, last_days: int) -> list[Figure]:
        return [each for each in self.figures if each.day >= DAYS - last_days]

    def _line(self, name: str, summary: Summary) -> Line:
        language = self.request.language
        return Line(
            name=name,
            amount=self.request.amount(summary.amount, self.currency),
            paid=count_text(summary.paid, language),
            failed=count_text(summary.failed, language),
            rate=rate_text(summary.success_rate, language),
            time=time_text(summary.average_time),
        )

    def _operator_name(self, operator: str) -> str:
        """An operator that the catalogue no longer has keeps its code."""
        mode = self.catalogue.by_operator(operator)
        if mode is None:
            return operator
        return f"{mode.name} ({mode.country_code})" if mode.country_code else mode.name

    def _country_name(self, operator: str) -> str:
        mode = self.catalogue.by_operator(operator)
        if mode is None or mode.country is None:
            return str(self.request.text("overview.no_country"))
        return country_name(mode.country, mode.country_code, self.request.language)


@lru_cache(maxsize=256)
def _day_name(day: date, language: str) -> str:
    """`23 nov.`. Babel takes 0.1 ms for each: a tenth of the page's time."""
    return format_date(day, "d MMM", locale=language)


def _grouped(figures: Iterable[Figure], key: Callable[[Figure], str]) -> Sequence[tuple[str, Summary]]:
    groups: dict[str, list[Figure]] = {}
    for figure in figures:
        groups.setdefault(key(figure), []).append(figure)
    return [(name, summarise(members)) for name, members in groups.items()]


PAGES: Final = (MerchantPage("", "overview.view", show, menu="overview"),)
