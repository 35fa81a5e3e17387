"""How the tables of `test_<family>.py` say what an answer must mean: a type, a type and its reason, or the answer."""

from typing import Any

from guichet.providers.base import Accepted, NotProcessed, Refused, Succeeded, Unknown

TAKEN, UNKNOWN = Accepted, Unknown


def refused(reason: str = "refused") -> tuple[type, str]:
    return Refused, reason


def not_taken(reason: str = "configuration") -> tuple[type, str]:
    return NotProcessed, reason


def check(answer: object, meant: Any) -> None:
    if isinstance(meant, tuple):
        kind, reason = meant
        assert type(answer) is kind, answer
        assert getattr(answer, "reason", None) == reason, answer
    elif isinstance(meant, type):
        assert type(answer) is meant, answer
    elif isinstance(meant, Succeeded):
        assert isinstance(answer, Succeeded), answer
        assert (answer.amount, answer.currency) == (meant.amount, meant.currency)
    else:
        assert answer == meant
