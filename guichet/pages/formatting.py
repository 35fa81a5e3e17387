"""Amounts, dates and telephone numbers as a customer reads them."""

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_date, get_month_names
from babel.numbers import format_decimal

from guichet import clock
from guichet.clock import Instant
from guichet.domain import money
from guichet.domain.money import Currency
from guichet.pages.i18n import ENGLISH, FRENCH
from guichet.printable import printable

#: What a national number looks like, by dial code.
_EXAMPLES: Final = {
    "221": "77 123 45 67",
    "223": "70 12 34 56",
    "225": "07 01 02 03 04",
    "226": "70 12 34 56",
    "228": "90 12 34 56",
    "229": "01 97 12 34 56",
    "242": "06 612 34 56",
}

#: What stands between a date and its time.
_AT: Final = {FRENCH: "à", ENGLISH: "at"}
#: Only the first two and last two national digits of a number are shown, because customers show receipts to others.
_VISIBLE_DIGITS: Final = 2


@lru_cache(maxsize=1024)  # Prices are round, and most days of a chart have the amount 0.
def amount(hundredths: int, currency: Currency, language: str, *, coded: bool = False) -> str:
    """`5 000 F CFA` for a French reader, `5,000 F CFA` or `€12.50` for an English one (no-break spaces). `coded`: with
    the code where other currencies stand beside it, since XOF and XAF read alike: `5 000 XAF`."""
    if language == ENGLISH:
        return (money.english_with_code if coded else money.english)(hundredths, currency)
    return (money.french_with_code if coded else money.french)(hundredths, currency)


def whole_number(number: int, language: str) -> str:
    """`100 000` for a French reader (with a narrow no-break space), `100,000` for an English one. As Babel writes it,
    which takes a tenth of the list of payments for six of them."""
    digits = f"{number:,}"
    return digits if language == ENGLISH else digits.replace(",", "\u202f")


def stated_amount(value: int | float | str | None, currency: str | None, language: str, *, coded: bool = True) -> str:
    """An amount in the main unit as somebody else states it, perhaps in a currency that we do not have, or in
    none: `5 000 XOF`, `12,5 GHS`. Empty if there is no amount; text that is not a number is left as it is."""
    if value is None:
        return ""
    try:
        hundredths = money.to_hundredths(Decimal(str(value)))
    except ArithmeticError:
        hundredths = None
    known_currency = next((name for name in money.CURRENCIES if name == currency), None)
    if hundredths is not None and known_currency is not None:
        return amount(hundredths, known_currency, language, coded=coded)
    digits = str(value) if hundredths is None else format_decimal(Decimal(hundredths).scaleb(-2), locale=language)
    return printable(f"{digits}\u00a0{currency}" if currency else digits)


def date_time(instant: Instant, language: str, time_zone: ZoneInfo) -> str:
    """`20 novembre 2026 à 11:15 (GMT+1)`: the time in `time_zone`, and what separates it from GMT then."""
    return _minute(instant // clock.MINUTE, language, time_zone)


def short_date_time(instant: Instant, time_zone: ZoneInfo) -> str:
    """`20/11/2026 11:15`, for a message of few characters."""
    return f"{clock.to_datetime(instant).astimezone(time_zone):%d/%m/%Y %H:%M}"


def time_of_day(instant: Instant, time_zone: ZoneInfo) -> str:
    """`11:15`, of today."""
    return _time(instant // clock.MINUTE, time_zone)


@lru_cache(maxsize=1024)
def _time(minute: int, time_zone: ZoneInfo) -> str:
    return clock.to_datetime(Instant(minute * clock.MINUTE)).astimezone(time_zone).time().isoformat("minutes")


@lru_cache(maxsize=1024)
def _minute(minute: int, language: str, time_zone: ZoneInfo) -> str:
    """`minute`: from 1970. Payments stand beside others of the same minute, and are looked at again."""
    local = clock.to_datetime(Instant(minute * clock.MINUTE)).astimezone(time_zone)
    at = _AT[language]  # No `strftime`: it takes as long as all the rest.
    return f"{long_date(local, language)} {at} {local.hour:02d}:{local.minute:02d} ({_gmt(local.utcoffset())})"


@cache
def _gmt(offset: timedelta | None) -> str:
    """`GMT+1`, `GMT-3:30`."""
    minutes = round((offset or timedelta()) / timedelta(minutes=1))
    hours, rest = divmod(abs(minutes), 60)
    return f"GMT{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02d}" if rest else "") if minutes else "GMT"


def long_date(day: date, language: str) -> str:
    """`3 octobre 2026`, `1er octobre 2026`, `3 October 2026`."""
    # Not by Babel's `format_date`: it took a third of the time of a page with 25 dates.
    number = "1er" if day.day == 1 and language == FRENCH else day.day
    return f"{number} {_month_names(language)[day.month]} {day.year}"


@cache
def _month_names(language: str) -> Mapping[int, str]:
    return dict(get_month_names("wide", locale=language))


def month(year: int, number: int, language: str) -> str:
    """`octobre 2026`, `October 2026`."""
    return str(format_date(date(year, number, 1), "MMMM y", locale=language))


def country_name(french: str, code: str | None, language: str) -> str:
    """A country's name; the catalogue gives it in French."""
    if language != ENGLISH or code is None:
        return french.replace("'", "’")
    return str(Locale(language).territories.get(code, french))


def stated_country(country: str, language: str) -> str:
    """A country that a merchant's program named by its code, or in English or French, as the reader names it; any other
    text as it is."""
    code = _country_codes().get(country.strip().replace("'", "’").casefold())
    return str(Locale(language).territories[code]) if code else printable(country)


@cache
def _country_codes() -> Mapping[str, str]:
    territories = [Locale(language).territories for language in (FRENCH, ENGLISH)]
    codes = [str(code) for code in territories[0] if len(str(code)) == 2 and str(code).isalpha()]
    names = {str(names[code]).replace("'", "’").casefold(): code for names in territories for code in codes}
    return names | {code.casefold(): code for code in codes}


def masked_phone(phone_number: str, dial_code: str | None) -> str:
    """`+229 01 •• •• •• 67`, `+221 77 ••• •• 67`: enough for its owner to recognise it, too little for anybody else."""
    prefix = dial_code if dial_code and phone_number.startswith(dial_code) else ""
    national = phone_number[len(prefix) :]
    hidden = "•" * max(0, len(national) - 2 * _VISIBLE_DIGITS)
    visible = national[:_VISIBLE_DIGITS] + hidden + national[-_VISIBLE_DIGITS:] if hidden else national
    grouped = "\u00a0".join(_groups(visible))
    return f"+{prefix}\u00a0{grouped}" if prefix else grouped


def _groups(digits: str) -> list[str]:
    """By two, as people say a number; of an odd count, such as Senegal's nine, the second group has three."""
    head, rest = (digits[:5], digits[5:]) if len(digits) % 2 and len(digits) > 5 else ("", digits)
    pairs = [rest[i : i + 2] for i in range(0, len(rest), 2)]
    return [head[:2], head[2:], *pairs] if head else pairs


def full_phone(phone_number: str) -> str:
    """`+2290197001234`: a stored number, which begins with its country code, as people dial it."""
    return f"+{phone_number}"


def international_number(number: str, dial_code: str | None) -> str:
    """A telephone number that a customer typed, as digits with the country's code in front.

    Spaces, dots, dashes and brackets are dropped; `+229…`, `00229…` and `229…` are international, anything else
    is a national number. Text that is not a number is returned as typed; the check of numbers then refuses it.
    """
    compact = "".join(character for character in number if character not in " .-()/\u00a0\u202f\u2011")
    if compact.startswith(("+", "00")):
        return compact.removeprefix("+").lstrip("0")  # No country code begins with 0.
    if not dial_code or not (compact.isascii() and compact.isdigit()):
        return compact
    # The shortest national number of the countries served has eight digits, the longest ten.
    if compact.startswith(dial_code) and len(compact) >= len(dial_code) + 8:
        return compact
    return dial_code + compact


def example_number(dial_code: str | None) -> str:
    """An example of a valid number, for the sentence about an invalid one."""
    return _EXAMPLES.get(dial_code or "", "+229 01 97 12 34 56").replace(" ", "\u00a0")
