"""What stands in the documentation's examples for what the service makes by chance: values of the same form that do
not change from run to run."""

import hashlib
import re
from collections.abc import Callable
from typing import Final
from uuid import UUID

from tests.frozen.service import LINK_URL, PAYMENT_REFERENCE

PAGES: Final = "https://pay.example.com"
SECRET: Final = "whsec_remplacez_par_votre_secret"


def _digest(kind: str, number: int) -> str:
    return hashlib.sha256(f"{kind} {number}".encode()).hexdigest()


def _uuid(number: int) -> str:
    """The first is the reference of a payment that the whole documentation shows."""
    return PAYMENT_REFERENCE if number == 1 else str(UUID(_digest("uuid", number)[:32], version=4))


def _secret(number: int) -> str:
    return SECRET if number == 1 else f"{SECRET}_{number}"


def _link(number: int) -> str:
    first = LINK_URL.removeprefix(f"{PAGES}/pay/")
    return first if number == 1 else f"{_digest('link', number)[:22]}/{_digest('page', number)[:22]}"


#: The form of what is made by chance, and the value that stands for the n-th one, from 1.
_CHANCE: Final[tuple[tuple[re.Pattern[str], Callable[[int], str]], ...]] = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b"), _uuid),
    (re.compile(r"\bwhsec_[A-Za-z0-9]{32,}\b"), _secret),
    # Numbered by a sequence of the database, which may leave gaps.
    (re.compile(r'(?<="identifier":")[0-9]{10}(?=")'), lambda number: f"{number:010d}"),
    (re.compile(r"(?<=/checkout/)[A-Za-z0-9]{32}\b"), lambda number: _digest("checkout", number)[:32]),
    (re.compile(r"(?<=/pay/)[A-Za-z0-9_-]+/[A-Za-z0-9_-]+"), _link),
)


class LastingValues:
    """Knows which lasting value stands for which real one, both ways."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._counts = [0] * len(_CHANCE)

    def show(self, real: str, lasting: str) -> None:
        """From now on `lasting` stands for `real`; what stands for it already stays."""
        if real not in self._shown and lasting not in self._shown.values():
            self._shown[real] = lasting

    def hide(self, text: str) -> str:
        """The text as the documentation shows it."""
        for kind, (form, make) in enumerate(_CHANCE):
            for real in form.findall(text):
                if real not in self._shown:
                    self._counts[kind] += 1
                    self._shown[real] = make(self._counts[kind])
        return _replaced(text, self._shown)

    def real(self, text: str) -> str:
        """What the documentation shows, as the running service knows it."""
        return _replaced(text, {lasting: real for real, lasting in self._shown.items()})


def _replaced(text: str, values: dict[str, str]) -> str:
    """All at once, longer ones first: what was put in is not replaced again."""
    if not values:
        return text
    anyone = "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))
    return re.sub(anyone, lambda found: values[found[0]], text)
