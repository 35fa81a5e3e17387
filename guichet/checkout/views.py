"""The values that the form of a link shows, computed from the catalogue and the amount, without input or output."""

import re
import unicodedata
from collections.abc import Iterable

from guichet.checkout.fields import Field, FormInput, fields
from guichet.domain import catalogue, money
from guichet.domain.catalogue import MOBILE_MONEY, PaymentMode
from guichet.domain.errors import InvalidRequest
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record
from guichet.pages import formatting
from guichet.pages.bill import Bill, bill
from guichet.pages.page_request import PageRequest


class Mode(Record, frozen=True):
    operator: str
    key: str
    name: str
    brand: str
    initials: str
    logo: str | None
    bill: Bill
    #: The sentence that says why it cannot be chosen for this amount; None if it can.
    unavailable: str | None
    open: bool
    fields: list[Field]
    next: str | None


class Group(Record, frozen=True):
    """A group of modes: those of a country, the cards, or all others."""

    name: str
    brands: str
    dial: str | None
    open: bool
    modes: list[Mode]


def groups(
    page: PageRequest,
    modes: Iterable[PaymentMode],
    amount: Hundredths,
    currency: Currency,
    form_input: FormInput,
    likely_country: str | None,
    public_url: str,
) -> list[Group]:
    """The active modes in groups: by country, then cards, then others. The group of `likely_country` (a code) is
    unfolded unless a mode was chosen."""
    sorted_modes: dict[tuple[int, str], list[PaymentMode]] = {}
    for mode in modes:
        sorted_modes.setdefault(_group_key(page, mode), []).append(mode)
    mode_groups = []
    for (_, name), members in sorted(sorted_modes.items(), key=lambda item: item[0][0]):
        mode_views = [_mode(page, mode, amount, currency, form_input, public_url) for mode in members]
        chosen = any(mode.open for mode in mode_views)
        likely = not form_input.operator and likely_country is not None and members[0].country_code == likely_country
        dial = members[0].dial_code if members[0].country else None
        mode_groups.append(
            Group(name, ", ".join(dict.fromkeys(mode.name for mode in members)), dial, chosen or likely, mode_views)
        )
    return mode_groups


def bounds_notice(
    page: PageRequest, mode_groups: list[Group], modes: Iterable[PaymentMode], currency: Currency
) -> str | None:
    """A sentence if the total is outside the bounds of Mobile Money, which excludes all operators or some; else
    None."""
    mobile = {mode.operator for mode in modes if mode.type == MOBILE_MONEY}
    all_modes = [mode for group in mode_groups for mode in group.modes]
    unavailable = [mode for mode in all_modes if mode.unavailable]
    if not unavailable:
        return None
    limits = {
        "low": formatting.amount(catalogue.MIN_DEBIT, currency, page.language),
        "high": formatting.amount(catalogue.MAX_DEBIT, currency, page.language),
    }
    if len(unavailable) < len(mobile):
        return page.text("link.bounds_some", **limits)
    return page.text("link.bounds_card" if len(all_modes) > len(unavailable) else "link.bounds_all", **limits)


def _group_key(page: PageRequest, mode: PaymentMode) -> tuple[int, str]:
    if mode.is_card:
        return 1, page.text("link.cards")
    if mode.country:
        return 0, formatting.country_name(mode.country, mode.country_code, page.language)
    return 2, page.text("link.others")


def _mode(
    page: PageRequest, mode: PaymentMode, amount: Hundredths, currency: Currency, form_input: FormInput, public_url: str
) -> Mode:
    quoted = catalogue.quote(mode, amount)
    chosen = form_input.operator.casefold() == mode.operator.casefold()
    key = re.sub(r"[^a-z0-9]+", "-", mode.operator.casefold())
    return Mode(
        operator=mode.operator,
        key=key,
        name=mode.name,
        brand=re.sub(r"[^a-z0-9]", "", mode.operator.casefold().partition("_")[0]),
        initials=brand_tile(mode.name),
        logo=mode.logo if mode.logo and mode.logo.startswith(f"{public_url}/") else None,
        bill=bill(page, amount, quoted.total_amount, currency),
        unavailable=_unavailable(page, quoted, currency),
        open=chosen,
        fields=fields(
            page, mode, key, quoted.total_amount, currency, form_input if chosen else FormInput(values=form_input.known)
        ),
        next=None if mode.type == MOBILE_MONEY else page.text("link.next_card"),
    )


def _unavailable(page: PageRequest, quoted: catalogue.Quote, currency: Currency) -> str | None:
    try:
        catalogue.check_debit(quoted, currency)
    except InvalidRequest:
        high = quoted.total_amount > catalogue.MAX_DEBIT
        limit = catalogue.MAX_DEBIT if high else catalogue.MIN_DEBIT
        return page.text(
            "link.shut_high" if high else "link.shut_low",
            total=formatting.amount(money.round_to_currency(quoted.total_amount, currency), currency, page.language),
            limit=formatting.amount(limit, currency, page.language),
        )
    return None


def brand_tile(name: str) -> str:
    """The letters shown where an operator has no logo: its short name, or its initials (`Orange Money` → `OM`)."""
    first = name.partition(" ")[0]
    return first if 2 <= len(first) <= 5 and first.isalpha() else initials(name)


def initials(name: str) -> str:
    """`Boutique Kora` → `BK`, `Wave` → `Wa`."""
    words = [word for word in re.split(r"[^\w]+", unicodedata.normalize("NFC", name)) if word]
    if len(words) > 1:
        return (words[0][0] + words[1][0]).upper()
    return words[0][0].upper() + words[0][1:2] if words else "•"
