"""The entries of a payment's timeline for the staff: what happened in words, and every value by its name."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from guichet.console.visit import Visit
from guichet.domain.money import Currency
from guichet.payments.timeline import TimelineEntry
from guichet.printable import printable

_AMOUNTS: Final = ("amount", "debited", "waiting", "wallet")
#: Names of values that are instants end with it.
_INSTANT: Final = "_at"
#: What says nothing: unknown, or an act without facts.
_EMPTY: Final = (None, "", "{}")


@dataclass(frozen=True, slots=True)
class StoryLine:
    """`facts`: names and values; names are those of the timeline, in English."""

    at: str
    text: Markup
    facts: list[tuple[str, str]]


def story_lines(visit: Visit, currency: Currency, entries: Iterable[TimelineEntry]) -> list[StoryLine]:
    return [
        StoryLine(
            visit.date_time(entry.at), visit.text(f"operations.event.{entry.kind}"), _facts(visit, currency, entry)
        )
        for entry in entries
    ]


def _facts(visit: Visit, currency: Currency, entry: TimelineEntry) -> list[tuple[str, str]]:
    known = {"subject": entry.subject, **entry.values, **entry.staff}
    return [(name, _text(visit, currency, name, value)) for name, value in known.items() if value not in _EMPTY]


def _text(visit: Visit, currency: Currency, name: str, value: Any) -> str:
    if name == "postings":
        moved = (f"{each.source} → {each.destination} {visit.amount(each.amount, currency)}" for each in value)
        return "; ".join(moved)
    if name in _AMOUNTS:
        return visit.amount(value, currency)
    if name.endswith(_INSTANT):
        return visit.date_time(value)
    return printable(str(value))
