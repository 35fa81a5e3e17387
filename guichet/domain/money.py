"""Money: integer hundredths of a currency's main unit, in every currency (decisions D3 to D5, D27).

The contract's own unit for `balance_minor` is the hundredth, XOF included, so one unit serves everything: 5000 XOF is
`500_000`, 12.50 EUR is `1_250`. No amount ever passes through a float.
"""

import re
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Final, Literal, NewType, get_args

import msgspec

#: An amount of money in hundredths of the currency's main unit. All amounts in the code have this type.
Hundredths = NewType("Hundredths", int)

Currency = Literal["XOF", "XAF", "EUR", "USD"]
CURRENCIES: Final[tuple[Currency, ...]] = get_args(Currency)
DEFAULT_CURRENCY: Final[Currency] = "XOF"

#: Decimals of each currency: XOF and XAF have no subunit.
DECIMALS: Final[dict[str, int]] = {"XOF": 0, "XAF": 0, "EUR": 2, "USD": 2}

#: Bounds of an `amount` sent by a merchant (docs/contract.md, "Limits"), in hundredths.
MIN_AMOUNT: Final = Hundredths(1_00)
MAX_AMOUNT: Final = Hundredths(99_999_999_00)

_TYPED: Final = re.compile(r"[0-9]{1,15}(?:\.([0-9]{1,15}))?")


def to_hundredths(value: int | Decimal) -> Hundredths | None:
    """`value` (main unit) in hundredths; None if it has more than two decimals or is not finite."""
    if isinstance(value, int):
        return Hundredths(value * 100)
    if not value.is_finite() or abs(value.adjusted()) > 30:
        return Hundredths(0) if value.is_zero() else None
    hundredths = Hundredths(int(value.scaleb(2)))
    # `scaleb` rounds to 28 digits, a comparison does not: a value with more decimals is refused, not rounded.
    return hundredths if Decimal(hundredths).scaleb(-2) == value else None


def has_whole_units(hundredths: Hundredths, currency: Currency) -> bool:
    """Whether the currency can express the amount: XOF and XAF have no subunit."""
    return DECIMALS[currency] == 2 or hundredths % 100 == 0


def round_to_currency(hundredths: Hundredths, currency: Currency) -> Hundredths:
    """The amount that a provider can move, in hundredths: rounded half up to the currency's smallest unit (D27)."""
    if DECIMALS[currency] == 2:
        return Hundredths(hundredths)
    return Hundredths((hundredths + 50) // 100 * 100)


def plain(hundredths: int) -> str:
    """The amount in the main unit as the text of a JSON number, without trailing zeros: `5000`, `87.5`, `0.05` (D5)."""
    sign = "-" if hundredths < 0 else ""
    units, rest = divmod(abs(hundredths), 100)
    if not rest:
        return f"{sign}{units}"
    return f"{sign}{units}.{rest:02d}".rstrip("0")


@lru_cache(maxsize=1024)  # A shop's amounts and their fees come again and again: 5 % of a list.
def number(hundredths: int) -> int | msgspec.Raw:
    """An amount as a JSON number in the main unit: exact, and without a fraction when it is whole (D5)."""
    return hundredths // 100 if not hundredths % 100 else msgspec.Raw(plain(hundredths))


def french(hundredths: int, currency: Currency) -> str:
    """The amount as French readers write it: `5 000 F CFA`, `12,50 €` (no-break spaces)."""
    symbol = {"XOF": "F\u00a0CFA", "XAF": "F\u00a0CFA", "EUR": "€", "USD": "$\u00a0US"}[currency]
    return f"{_french_digits(hundredths, currency)}\u00a0{symbol}"


def english(hundredths: int, currency: Currency) -> str:
    """The amount as English readers write it: `5,000 F CFA`, `€12.50`."""
    digits, before = _english_digits(hundredths, currency), {"EUR": "€", "USD": "US$"}.get(currency)
    sign = "-" if hundredths < 0 else ""
    return f"{sign}{before}{digits}" if before else f"{sign}{digits}\u00a0F\u00a0CFA"


def english_with_code(hundredths: int, currency: Currency) -> str:
    return f"{'-' if hundredths < 0 else ''}{_english_digits(hundredths, currency)}\u00a0{currency}"


def french_with_code(hundredths: int, currency: Currency) -> str:
    """The same with the code of the currency, as the API names it: `5 000 XOF`."""
    return f"{_french_digits(hundredths, currency)}\u00a0{currency}"


def _french_digits(hundredths: int, currency: Currency) -> str:
    units, rest = divmod(abs(hundredths), 100)
    sign = "-" if hundredths < 0 else ""
    digits = sign + f"{units:,}".replace(",", "\u202f")
    return digits + (f",{rest:02d}" if rest or DECIMALS[currency] == 2 else "")


def _english_digits(hundredths: int, currency: Currency) -> str:
    units, rest = divmod(abs(hundredths), 100)
    return f"{units:,}" + (f".{rest:02d}" if rest or DECIMALS[currency] else "")


def parse_typed(raw: str, places: int) -> int | None:
    """A number from a form as an integer of `10**-places`: `5 000`, `12,50` or `12.5`; None if it is none.

    With more decimals than `places` it is none: in `5.000` or `5,000` somebody means thousands.
    """
    text = "".join(raw.split()).replace(",", ".")
    match = _TYPED.fullmatch(text)
    return parse_decimal(text, places) if match and len(match[1] or "") <= places else None


def parse_decimal(text: str, places: int) -> int | None:
    """`text` as an integer of `10**-places`, half up; None if it is not a plain non-negative number.

    Used for numbers typed by people (fees in the catalogue and on the command line).
    """
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    if not value.is_finite() or value < 0 or value.adjusted() > 12:
        return None
    return int(value.scaleb(places).to_integral_value(rounding=ROUND_HALF_UP))
