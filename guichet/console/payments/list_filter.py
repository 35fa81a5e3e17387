"""What a list of payments is narrowed to, as an address says it: for the list and for its export."""

from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from guichet.domain.exports import ListFilter
from guichet.domain.money import MAX_AMOUNT, Hundredths, parse_typed
from guichet.domain.payments import PaymentStatus
from guichet.pages.fields import Fields, text

#: The names of the filters in an address, besides the two days.
FILTERS: Final = ("status", "operator", "country", "least", "most")


def empty_as_none(typed: Any) -> Any:
    return typed or None


def _amount(typed: Any) -> Any:
    """Hundredths. Raises ValueError."""
    if not typed:
        return None
    amount = parse_typed(str(typed), 2)
    if amount is None or amount > MAX_AMOUNT:
        raise ValueError
    return amount


_Amount = Annotated[Hundredths | None, BeforeValidator(_amount)]
_Code = Annotated[str, text(64)]


class FilterFields(Fields):
    """Raises ValidationError for a status or an amount that is none."""

    status: Annotated[PaymentStatus | None, BeforeValidator(empty_as_none)] = None
    operator: _Code = ""
    country: _Code = ""
    least: _Amount = None
    most: _Amount = None

    @property
    def list_filter(self) -> ListFilter:
        return ListFilter(self.status, self.operator or None, self.country or None, self.least, self.most)
