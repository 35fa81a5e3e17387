"""What the templates show, computed from the domain: nothing here reads or writes anything."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from guichet.checkout import format as written
from guichet.checkout.fields import Attempt, Field, fields
from guichet.checkout.page_request import Visit
from guichet.domain import catalogue, money
from guichet.domain.catalogue import MOBILE_MONEY, PaymentMode
from guichet.domain.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Bill:
    """What the customer is really debited: the operator moves whole units where the currency has no others (D27)."""

    amount: str
    fee: str
    total: str


@dataclass(frozen=True, slots=True)
class Mode:
    operator: str
    key: str
    name: str
    brand: str
    initials: str
    logo: str | None
    bill: Bill
    #: Why it cannot be chosen for this amount; None when it can.
    shut: str | None
    open: bool
    fields: list[Field]
    next: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """A country, the cards, or the rest."""

    name: str
    brands: str
    dial: str | None
    open: bool
    modes: list[Mode]


def bill(visit: Visit, amount: int, total_amount: int, currency: str) -> Bill:
    total = money.round_to_currency(total_amount, currency)
    shown = [written.amount(value, currency, visit.language) for value in (amount, total - amount, total)]
    return Bill(*shown)


def groups(
    visit: Visit,
    modes: Iterable[PaymentMode],
    amount: int,
    currency: str,
    attempt: Attempt,
    guessed: str | None,
    public_url: str,
) -> list[Group]:
    """The open modes by country, cards after them, then the rest; `guessed` is the customer's likely country."""
    sorted_modes: dict[tuple[int, str], list[PaymentMode]] = {}
    for mode in modes:
        sorted_modes.setdefault(_group_key(visit, mode), []).append(mode)
    found = []
    for (_, name), members in sorted(sorted_modes.items(), key=lambda item: item[0][0]):
        shown = [_mode(visit, mode, amount, currency, attempt, public_url) for mode in members]
        chosen = any(mode.open for mode in shown)
        likely = not attempt.operator and guessed is not None and members[0].country_code == guessed
        dial = members[0].dial_code if members[0].country else None
        found.append(
            Group(name, ", ".join(dict.fromkeys(mode.name for mode in members)), dial, chosen or likely, shown)
        )
    return found


def bounds_notice(visit: Visit, shown: list[Group], modes: Iterable[PaymentMode], currency: str) -> str | None:
    """Said before anything is typed when Mobile Money cannot carry this total, wholly or in part."""
    mobile = {mode.operator for mode in modes if mode.type == MOBILE_MONEY}
    all_modes = [mode for group in shown for mode in group.modes]
    shut = [mode for mode in all_modes if mode.shut]
    if not shut:
        return None
    limits = {
        "low": written.amount(catalogue.MIN_DEBIT, currency, visit.language),
        "high": written.amount(catalogue.MAX_DEBIT, currency, visit.language),
    }
    if len(shut) < len(mobile):
        return visit.say("link.bounds_some", **limits)
    return visit.say("link.bounds_card" if len(all_modes) > len(shut) else "link.bounds_all", **limits)


def _group_key(visit: Visit, mode: PaymentMode) -> tuple[int, str]:
    if mode.is_card:
        return 1, visit.say("link.cards")
    if mode.country:
        return 0, written.country(mode.country, mode.country_code, visit.language)
    return 2, visit.say("link.others")


def _mode(visit: Visit, mode: PaymentMode, amount: int, currency: str, attempt: Attempt, public_url: str) -> Mode:
    quoted = catalogue.quote(mode, amount)
    chosen = attempt.operator.casefold() == mode.operator.casefold()
    key = re.sub(r"[^a-z0-9]+", "-", mode.operator.casefold())
    return Mode(
        operator=mode.operator,
        key=key,
        name=mode.name,
        brand=re.sub(r"[^a-z0-9]", "", mode.operator.casefold().partition("_")[0]),
        initials=tile(mode.name),
        logo=mode.logo if mode.logo and mode.logo.startswith(f"{public_url}/") else None,
        bill=bill(visit, amount, quoted.total_amount, currency),
        shut=_shut(visit, quoted, currency),
        open=chosen,
        fields=fields(visit, mode, key, quoted.total_amount, currency, attempt if chosen else Attempt()),
        next=None if mode.type == MOBILE_MONEY else visit.say("link.next_card"),
    )


def _shut(visit: Visit, quoted: catalogue.Quote, currency: str) -> str | None:
    try:
        catalogue.check_debit(quoted, currency)
    except InvalidRequest:
        high = quoted.total_amount > catalogue.MAX_DEBIT
        limit = catalogue.MAX_DEBIT if high else catalogue.MIN_DEBIT
        return visit.say(
            "link.shut_high" if high else "link.shut_low",
            total=written.amount(money.round_to_currency(quoted.total_amount, currency), currency, visit.language),
            limit=written.amount(limit, currency, visit.language),
        )
    return None


def tile(name: str) -> str:
    """What stands where an operator has no picture: its short name, or its initials (`Orange Money` → `OM`)."""
    first = name.partition(" ")[0]
    return first if 2 <= len(first) <= 5 and first.isalpha() else initials(name)


def initials(name: str) -> str:
    """`Boutique Kora` → `BK`, `Wave` → `Wa`."""
    words = [word for word in re.split(r"[^\w]+", unicodedata.normalize("NFC", name)) if word]
    if len(words) > 1:
        return (words[0][0] + words[1][0]).upper()
    return words[0][0].upper() + words[0][1:2] if words else "•"
