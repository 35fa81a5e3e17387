"""Figures added up, and written as people read them."""

from collections.abc import Iterable
from dataclasses import dataclass

from guichet.clock import SECOND
from guichet.history.figures import Figure
from guichet.pages.i18n import ENGLISH


@dataclass(frozen=True, slots=True)
class Summary:
    """`paid`: payments that succeeded, `refunded` among them; `amount` (hundredths) of those that were paid,
    `refunded_amount` of those that were given back since. `validated`: the payments that `validation_time`
    (microseconds) belongs to."""

    paid: int
    failed: int
    refunded: int
    validated: int
    amount: int
    refunded_amount: int
    validation_time: int

    @property
    def success_rate(self) -> float | None:
        """Of the payments that have a result; None when there is none."""
        final = self.paid + self.failed
        return self.paid / final if final else None

    @property
    def average_time(self) -> int | None:
        """Microseconds from creation to success. A clock that was set back must not show a negative time."""
        return max(0, self.validation_time // self.validated) if self.validated else None


def summarise(figures: Iterable[Figure]) -> Summary:
    counts = {"succeeded": 0, "failed": 0, "refunded": 0}
    amounts = dict(counts)
    validation_time = 0
    for figure in figures:
        counts[figure.status] += figure.payment_count
        amounts[figure.status] += figure.amount
        validation_time += figure.validation_time
    return Summary(
        paid=counts["succeeded"] + counts["refunded"],
        failed=counts["failed"],
        refunded=counts["refunded"],
        validated=counts["succeeded"],
        amount=amounts["succeeded"] + amounts["refunded"],
        refunded_amount=amounts["refunded"],
        validation_time=validation_time,
    )


def count_text(count: int, language: str) -> str:
    """`12 345` for a French reader, `12,345` for an English one. Babel would take a tenth of the page's time."""
    digits = f"{count:,}"
    return digits if language == ENGLISH else digits.replace(",", "\u00a0")


def rate_text(rate: float | None, language: str) -> str:
    """`97,5 %`; a rate that is not quite whole never reads as 0 % or 100 %."""
    if rate is None:
        return "–"
    tenths = int(rate) * 1000 if rate in (0, 1) else min(max(round(rate * 1000), 1), 999)
    whole, rest = divmod(tenths, 10)
    if language == ENGLISH:
        return f"{whole}.{rest}%" if rest else f"{whole}%"
    return f"{whole},{rest}\u00a0%" if rest else f"{whole}\u00a0%"


def time_text(duration: int | None) -> str:
    """`0,4 s` would be no help: seconds below a minute, then minutes, then hours."""
    if duration is None:
        return "–"
    seconds = (duration + SECOND // 2) // SECOND
    if seconds < 60:
        return f"{max(seconds, 1)}\u00a0s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}\u00a0min\u00a0{seconds:02d}\u00a0s"
    return f"{minutes // 60}\u00a0h\u00a0{minutes % 60:02d}\u00a0min"
