"""The entries of a payment's timeline for the staff: what happened in words, and every value by its name."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from guichet.audit_log.entries import CONSOLE
from guichet.console.facts import changed_facts, fact_text, label
from guichet.console.page_request import StaffRequest
from guichet.domain.money import Currency
from guichet.history.timeline import TimelineEntry

_AMOUNTS: Final = ("amount", "debited", "waiting", "wallet")
#: Names of values that are instants end with it.
_INSTANT: Final = "_at"
#: What says nothing: unknown, or an act without facts.
_EMPTY: Final = (None, "", "{}")
#: What another value says better: the sentence for the customer says what the code does, the kind of an incident what
#: concerns the merchant. What an act changed is written out fact by fact.
_LEFT_OUT: Final = frozenset({"after", "before", "concern", "message"})
#: Why something failed or is contested is a word of ours; other reasons are what a person wrote.
_REASONS: Final = {
    "dispute.opened": "operations.dispute_reason.",
    "payment.failed": "operations.failure_reason.",
    "refund.failed": "operations.failure_reason.",
}


@dataclass(frozen=True, slots=True)
class StoryLine:
    """`facts`: names and values."""

    at: str
    text: Markup
    facts: list[tuple[str, str]]


def story_lines(request: StaffRequest, currency: Currency, entries: Iterable[TimelineEntry]) -> list[StoryLine]:
    return [
        StoryLine(
            request.date_time(entry.at),
            request.text(f"operations.event.{entry.kind}"),
            _facts(request, currency, entry),
        )
        for entry in entries
    ]


def _facts(request: StaffRequest, currency: Currency, entry: TimelineEntry) -> list[tuple[str, str]]:
    known = [("subject", entry.subject), *entry.values.items(), *entry.staff.items()]
    shown = [
        (label(request, name), _text(request, currency, entry, name, value))
        for name, value in known
        if value not in _EMPTY and name not in _LEFT_OUT and (name, value) != ("os_user", CONSOLE)
    ]
    if entry.kind == "person.acted":
        changes = entry.staff["before"], entry.staff["after"]
        shown += changed_facts(request, entry.subject, *changes, in_team=True)
    return shown


def _text(request: StaffRequest, currency: Currency, entry: TimelineEntry, name: str, value: Any) -> str:
    if name == "postings":
        moved = (f"{each.source} → {each.destination} {request.amount(each.amount, currency)}" for each in value)
        return "; ".join(moved)
    if name in _AMOUNTS:
        return request.amount(value, currency)
    if name.endswith(_INSTANT):
        return request.date_time(value)
    if name == "reason" and entry.kind in _REASONS:
        return request.word(_REASONS[entry.kind], value)
    return fact_text(request, entry.subject, name, value)
