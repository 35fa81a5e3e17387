"""What a list of payments is narrowed to, as an address says it: for the list and for its export. And what else can be
chosen, as addresses with their counts."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from guichet.console.page_request import MerchantRequest
from guichet.domain.catalogue import Catalogue
from guichet.domain.exports import ListFilter
from guichet.domain.money import MAX_AMOUNT, Hundredths, parse_typed
from guichet.domain.payments import PAYMENT_STATUSES, PaymentStatus
from guichet.domain.records import Record
from guichet.pages.days import this_month
from guichet.pages.fields import Fields, text
from guichet.pages.formatting import country_name, whole_number
from guichet.pages.views import View

#: The names of the filters in an address, besides the two days; and with them.
FILTERS: Final = ("status", "operator", "country", "least", "most")
ADDRESS: Final = ("from", "to", *FILTERS)


def empty_as_none(value: Any) -> Any:
    return value or None


def _amount(value: Any) -> Any:
    """Hundredths. Raises ValueError."""
    if not value:
        return None
    amount = parse_typed(str(value), 2)
    if amount is None or amount > MAX_AMOUNT:
        raise ValueError
    return amount


_Amount = Annotated[Hundredths | None, BeforeValidator(_amount)]
_Code = Annotated[str, text(64)]


class FilterFields(Fields):
    """Raises ValidationError for an unknown status or an invalid amount."""

    status: Annotated[PaymentStatus | None, BeforeValidator(empty_as_none)] = None
    operator: _Code = ""
    country: _Code = ""
    least: _Amount = None
    most: _Amount = None

    @property
    def list_filter(self) -> ListFilter:
        return ListFilter(self.status, self.operator or None, self.country or None, self.least, self.most)


class ListCounts(Record, frozen=True):
    """By status, at "" in all. `at_least`: there are more payments than were read, of which some may be meant too."""

    by_status: Mapping[str, int]
    at_least: bool = False

    def text(self, status: str, language: str) -> str | None:
        """None where nothing can be said."""
        count = self.by_status.get(status, 0)
        if self.at_least:
            return f"{whole_number(count, language)}+" if count else None
        return whole_number(count, language)


class Choice(View, frozen=True):
    """A filter that is one click away. `count`: of the list behind it, None where none is known."""

    name: str
    href: str
    chosen: bool
    count: str | None = None


def statuses(request: MerchantRequest, form_values: Mapping[str, str], counts: ListCounts) -> list[Choice]:
    # Written once for all of them; a "=" that was typed is quoted.
    before, _, after = _narrowed_to(request, form_values, status="~").partition("status=~")
    every = _narrowed_to(request, form_values, status="")
    return [
        Choice(
            request.text(f"payments.status.{status}" if status else "payments.any_status"),
            f"{before}status={status}{after}" if status else every,
            status == form_values["status"],
            counts.text(status, request.language),
        )
        for status in ("", *PAYMENT_STATUSES)
    ]


def periods(request: MerchantRequest, form_values: Mapping[str, str]) -> list[Choice]:
    """Of all times, today, the last days, this month."""
    of_month, now = this_month(request.now(), request.time_zone)
    firsts = {"today": now, "7": now - timedelta(days=6), "30": now - timedelta(days=29), "month": of_month}
    last, chosen = now.isoformat(), (form_values["from"], form_values["to"])
    before, _, after = _narrowed_to(request, form_values, **{"from": "~", "to": "~"}).partition("from=~&to=~")
    ever = _narrowed_to(request, form_values, **{"from": "", "to": ""})
    choices = [Choice(request.text("payments.period.ever"), ever, chosen == ("", ""))]
    for name, day in firsts.items():
        first = day.isoformat()
        href = f"{before}from={first}&to={last}{after}"
        choices.append(Choice(request.text(f"payments.period.{name}"), href, chosen == (first, last)))
    return choices


def _narrowed_to(request: MerchantRequest, form_values: Mapping[str, str], **filters: str) -> str:
    return request.merchant_url("/payments", None, **{**filter_query(form_values), **filters})


def filter_query(form_values: Mapping[str, str]) -> dict[str, str]:
    return {name: form_values[name] for name in ADDRESS}


def catalogue_choices(request: MerchantRequest, catalogue: Catalogue) -> dict[str, list[tuple[str, str]]]:
    """What can be chosen of the merchant's catalogue: codes and names."""
    countries = {mode.country_code: mode.country for mode in catalogue.modes if mode.country and mode.country_code}
    names = [(code, country_name(name, code, request.language)) for code, name in countries.items()]
    modes = [(mode.operator, catalogue.name_of(mode.operator)) for mode in catalogue.modes]
    every = ("", str(request.text("payments.any")))
    return {"operators": [every, *modes], "countries": [every, *names]}
