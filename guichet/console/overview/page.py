"""`/console/<merchant>/<env>`: what came in, what may be spent, what needs attention."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache
from typing import Final, Literal

from babel.dates import format_date
from starlette.responses import Response

from guichet.clock import HOUR, Instant, to_datetime
from guichet.console.overview.attention import Concern, concerns, own_limits
from guichet.console.overview.figures import (
    Chart,
    Days,
    change_text,
    chart,
    count_text,
    rate_text,
    share_text,
    time_text,
)
from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import PaymentRow, listed, payment_row
from guichet.disputes.repository import open_of
from guichet.domain.catalogue import Catalogue, PaymentMode
from guichet.domain.disputes import Dispute
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
#: Payments that the page names.
_LATEST: Final = 6


class DayLine(View, frozen=True):
    """A row of the table of days, as text."""

    name: str
    amount: str
    paid: str
    failed: str


class Line(DayLine, frozen=True):
    """A row of another table, as text. `more`: what stands small beside its name; `share`: how long its bar is, in
    percent."""

    more: str
    rate: str
    time: str
    share: str


class PeriodView(View, frozen=True):
    """`change`: from the period before, empty when there was nothing; `fell`: whether it is less. `refunded`: an
    amount, None without one."""

    line: Line
    change: str
    fell: bool
    refunded: str | None


class MoneyView(View, frozen=True):
    """`held`: None when nothing is."""

    balance: str
    held: str | None


class Step(View, frozen=True):
    """One of the first steps: the name of its texts, and where it is done; None when that is not up to the reader."""

    name: str
    done: bool
    href: str | None = None


class OverviewView(View, frozen=True):
    """`choices` and `currencies`: a text, its address, and whether it is what the page shows. `chart`: None without a
    payment. `exact`: see `Days`. `latest`: payments; None for somebody who may not see them. `steps`: for an account
    without any payment."""

    merchant: Merchant
    periods: list[PeriodView]
    period: str
    choices: list[tuple[str, str, bool]]
    currencies: list[tuple[str, str, bool]]
    chart: Chart | None
    days: list[DayLine]
    operators: list[Line]
    countries: list[Line]
    empty: bool
    exact: bool
    money: MoneyView | None
    latest: list[PaymentRow] | None
    steps: list[Step]
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
    sees_money, sees_payments = request.may("balance.view"), request.may("payments.view")
    wallet = await wallets.wallet(request.db, *request.scope, currency) if sees_money else None
    disputes = await open_of(request.db, *request.scope) if sees_payments else []
    latest = await _latest(request, report.catalogue, days.dates[-1], disputes) if sees_payments else None
    currencies: list[tuple[str, str, bool]] = [
        (other, _address(request, period, other), other == currency) for other in CURRENCIES if other in used
    ]
    view = OverviewView(
        merchant=request.merchant,
        periods=[report.period(length) for length in _PERIODS],
        period=request.text(f"overview.days_{period}"),
        choices=[
            (request.text(f"overview.days_{length}"), _address(request, length, currency), length == period)
            for length in _PERIODS
        ],
        currencies=currencies if len(used) > 1 else [],
        chart=None if figures.is_empty else report.chart(days),
        days=report.days(days),
        operators=report.groups(report.operator_name),
        countries=report.groups(report.country_name),
        empty=figures.is_empty,
        exact=days.exact,
        money=await _money(request, wallet, currency) if sees_money else None,
        latest=latest,
        steps=[] if latest or latest is None or not figures.is_empty else _steps(request),
        concerns=await concerns(request, wallet, disputes, now),
        limits=await own_limits(request, now),
    )
    return request.page("overview/page.html", view)


async def _figures(
    request: MerchantRequest, chosen: Currency | None, days: Days, period: int
) -> tuple[Currency, MonthFigures]:
    """In the currency that was chosen, if there is a payment in it; otherwise in the merchant's."""
    own = request.merchant.currency
    # From the half of an hour on, the hour counts for yesterday.
    same_hour = min((request.now() + HOUR // 2) // HOUR - 24, days.bounds[-2])
    for currency in (chosen or own, own):
        figures = await month_figures(request.db, *request.scope, days.bounds, currency, period, same_hour)
        if currency == own or not figures.is_empty:
            break
    return currency, figures


async def _latest(
    request: MerchantRequest, catalogue: Catalogue, today: date, disputes: Sequence[Dispute]
) -> list[PaymentRow]:
    disputed = {dispute.payment_id for dispute in disputes}
    return [
        payment_row(
            request,
            row,
            catalogue,
            _when(request, row.created_at, today),
            "open" if row.id in disputed else None,
        )
        for row in await listed(request, _LATEST)
    ]


def _when(request: MerchantRequest, instant: Instant, today: date) -> str:
    """`14:32` of today, `23 nov.` of another day."""
    local = to_datetime(instant).astimezone(request.time_zone)
    return f"{local:%H:%M}" if local.date() == today else _day_name(local.date(), request.language)


def _steps(request: MerchantRequest) -> list[Step]:
    """What an account without a payment needs, each for those who may do it."""
    desk = request.merchant_url("/cash-desk", "test") if request.may("cash_desk.use") else None
    link = request.merchant_url("/links/new") if request.may("links.change") else None
    key = request.merchant_url("/developers", "test") if request.may("keys.view") else None
    return [
        Step("protect", done=request.person.totp_confirmed, href=request.console_url("/security")),
        Step("try", done=False, href=desk),
        Step("link", done=False, href=link),
        Step("key", done=False, href=key),
        Step("live", done=request.merchant.status == "active"),
    ]


def _address(request: MerchantRequest, period: int, currency: Currency) -> str:
    """The address of this page for another period or currency."""
    other = currency if currency != request.merchant.currency else None
    return request.merchant_url("", days=str(period) if period != _USUAL else None, currency=other)


async def _money(request: MerchantRequest, wallet: Wallet | None, currency: Currency) -> MoneyView:
    total = (await held(request.db, *request.scope, currency)).total
    balance = request.amount(wallet.balance if wallet else 0, currency)
    return MoneyView(balance, request.amount(total, currency) if total else None)


class _Report(Record, frozen=True):
    """Figures as charts and tables."""

    request: MerchantRequest
    catalogue: Catalogue
    currency: Currency
    figures: MonthFigures

    def period(self, last_days: int) -> PeriodView:
        figures, language = added_up(self.figures.by_day[-last_days:]), self.request.language
        # Today is compared with yesterday until now, a week and a month with the one before.
        month = self.figures.before + [day.amount for day in self.figures.by_day]
        before = self.figures.yesterday if last_days == 1 else sum(month[-2 * last_days : -last_days])
        line = self._line(str(self.request.text(f"overview.days_{last_days}")), "", figures, figures.amount)
        refunded = self._amount(figures.refunded_amount) if figures.refunded else None
        change = change_text(figures.amount, before, language)
        return PeriodView(line, change, figures.amount < before, refunded)

    def chart(self, days: Days) -> Chart:
        request, language = self.request, self.request.language
        counts = {
            count: request.text("overview.payments", count=count_text(count, language))
            for count in {figures.paid for figures in self.figures.by_day}
        }
        # Written once, with a word where each day belongs.
        address = request.merchant_url("/payments", None, **{"from": "day", "to": "day"})
        before, between, after = address.rsplit("day", 2)
        to_payments, bars = request.may("payments.view"), []
        for day, figures in zip(days.dates, self.figures.by_day, strict=True):
            name, only = _day_name(day, language), day.isoformat()
            href = f"{before}{only}{between}{only}{after}" if to_payments else "#days"
            bars.append((href, f"{name} · {self._amount(figures.amount)} · {counts[figures.paid]}", name))
        return chart(bars, [day.amount for day in self.figures.by_day], self.figures.before, language)

    def days(self, days: Days) -> list[DayLine]:
        """The newest first, without those that had no payment."""
        return [
            DayLine(_day_name(day, self.request.language), self._amount(figures.amount), *self._counts(figures))
            for day, figures in zip(days.dates, self.figures.by_day, strict=True)
            if figures.paid + figures.failed
        ][::-1]

    def groups(self, name_of: Callable[[str], tuple[str, str]]) -> list[Line]:
        """The operators that `name_of` gives one name are one group, the largest amount first."""
        named: dict[tuple[str, str], list[Figures]] = {}
        for operator, figures in self.figures.by_operator.items():
            named.setdefault(name_of(operator), []).append(figures)
        groups = [(name, added_up(members)) for name, members in named.items()]
        groups.sort(key=lambda group: (-group[1].amount, group[0]))
        most = max((figures.amount for _, figures in groups), default=0)
        return [self._line(*name, figures, most) for name, figures in groups]

    def operator_name(self, operator: str) -> tuple[str, str]:
        """With its country. An operator that the catalogue no longer has keeps its code."""
        mode = self.catalogue.by_operator(operator)
        return (mode.name, self._country(mode)) if mode else (operator, "")

    def country_name(self, operator: str) -> tuple[str, str]:
        mode = self.catalogue.by_operator(operator)
        country = self._country(mode) if mode else ""
        return country or str(self.request.text("overview.no_country")), ""

    def _country(self, mode: PaymentMode) -> str:
        return country_name(mode.country, mode.country_code, self.request.language) if mode.country else ""

    def _amount(self, hundredths: int) -> str:
        return self.request.amount(hundredths, self.currency)

    def _counts(self, figures: Figures) -> tuple[str, str]:
        language = self.request.language
        return count_text(figures.paid, language), count_text(figures.failed, language)

    def _line(self, name: str, more: str, figures: Figures, most: int) -> Line:
        paid, failed = self._counts(figures)
        return Line(
            name=name,
            more=more,
            amount=self._amount(figures.amount),
            paid=paid,
            failed=failed,
            rate=rate_text(figures.success_rate, self.request.language),
            time=time_text(figures.average_time),
            share=share_text(figures.amount, most),
        )


@lru_cache(maxsize=256)
def _day_name(day: date, language: str) -> str:
    """`23 nov.`. Babel takes 0.1 ms for each: a tenth of the page's time."""
    return format_date(day, "d MMM", locale=language)
