"""How the tables of `test_<provider>.py` state an expected result: a type, a type with its reason, or the result."""

from typing import Any

from guichet.domain.failures import RefusalReason
from guichet.domain.money import Hundredths
from guichet.providers.base import (
    Accepted,
    AlreadyRefunded,
    AmbiguousRefusal,
    FloatEmpty,
    NotProcessed,
    Refused,
    Succeeded,
    Unknown,
)

TAKEN, UNKNOWN, FLOAT_EMPTY, ALREADY_REFUNDED = Accepted, Unknown, FloatEmpty, AlreadyRefunded


def refused(reason: RefusalReason = "refused") -> tuple[type, str]:
    return Refused, reason


def ambiguous(reason: RefusalReason = "insufficient_funds") -> tuple[type, str]:
    return AmbiguousRefusal, reason


def not_taken(reason: RefusalReason = "configuration") -> tuple[type, str]:
    return NotProcessed, reason


def succeeded(amount: int | None, currency: str | None, provider_reference: str | None = None) -> Succeeded:
    """`amount` in hundredths."""
    return Succeeded(None if amount is None else Hundredths(amount), currency, provider_reference)


def check(result: object, expected: Any) -> None:
    """Fail unless `result` is what the table states; of a success amount and currency are compared."""
    if isinstance(expected, tuple):
        kind, reason = expected
        assert type(result) is kind, result
        assert getattr(result, "reason", None) == reason, result
    elif isinstance(expected, type):
        assert type(result) is expected, result
    elif isinstance(expected, Succeeded):
        assert isinstance(result, Succeeded), result
        assert (result.amount, result.currency) == (expected.amount, expected.currency)
    else:
        assert result == expected
