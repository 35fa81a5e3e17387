"""Amounts as providers read and write them, from and to hundredths. Nothing here accepts a float."""

from decimal import Decimal
from typing import Final

from guichet.domain.money import Hundredths, to_hundredths

#: More digits than any real amount has; a provider may send anything.
_MAX_DIGITS: Final = 20


def units(amount: Hundredths) -> int:
    """Main units of a currency without decimals. Amounts are rounded to them before they come here (D27)."""
    return amount // 100


def hundredths(value: object) -> Hundredths | None:
    """An amount in main units, as a provider states it (int, Decimal or decimal text), in hundredths.

    None when it is something else, absurdly large, or finer than a hundredth: it then equals no amount of ours.
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        amount = Decimal(value)
    except ArithmeticError:
        return None
    if amount.is_finite() and amount.adjusted() > _MAX_DIGITS:
        return None
    return to_hundredths(amount)
