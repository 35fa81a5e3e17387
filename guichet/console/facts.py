"""Facts of acts and of a payment's timeline for the staff: their names and values in the reader's language.

Names are those of `domain/audit_log.FactName` and `payments/timeline_facts.TimelineFact`, each with a text `fact.`; an
entry that another version wrote may have others, which are shown as they are.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from babel.numbers import format_decimal

from guichet.clock import read_date
from guichet.console.messages import message_text, word_key
from guichet.console.page_request import ConsoleRequest
from guichet.domain.audit_log import ActSubject
from guichet.domain.catalogue import percent
from guichet.domain.messages import Message
from guichet.domain.money import plain
from guichet.pages.formatting import full_phone
from guichet.printable import printable

_NOTHING: Final = "–"
_AMOUNTS: Final = frozenset({"amount", "daily_limit", "fee_fixed", "merchant_part", "payment_limit"})
_PHONES: Final = frozenset({"payee_number", "phone"})
#: Facts that are words of ours, by name: how the texts of these words may begin.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "act": ("operations.act.",),
    "action": ("activity.act.",),
    "borne_by": ("operations.bearer.",),
    "code": ("payments.failure.",),
    "decision": ("operations.to.",),
    "env": ("env.",),
    "error": ("operations.delivery_error.",),
    "from": ("operations.bearer.",),
    "kind": ("jobs.kind.", "exports.kind.", "operations.kind.", "treasury.kind."),
    "provider_says": ("operations.told.",),
    "source": ("fact_source.",),
    "stage": ("operations.stage.",),
    "subject": ("fact_subject.", "operations.noun."),
    "target": ("fact_target.",),
    "to": ("operations.to.",),
}
#: The same for the status of what an act is about.
STATUSES: Final[Mapping[str, str]] = {
    "delivery": "operations.delivery.",
    "merchant": "merchant_status.",
    "payment": "operations.state.",
    "refund": "operations.state.",
    "user": "user_status.",
    "webhook": "operations.delivery.",
}

LabelledFacts = list[tuple[str, str]]


def label(request: ConsoleRequest, name: str) -> str:
    return request.word("fact.", name)


def changed_facts(
    request: ConsoleRequest, subject: ActSubject | str, before: str, after: str, *, in_team: bool
) -> LabelledFacts:
    """What an entry of the audit log keeps, by name: one value, or the old and the new one. `before`, `after`: JSON
    objects; `in_team`: whether a role is one in a merchant's team, and not of the staff."""
    old: dict[str, Any] = msgspec.json.decode(before)
    new: dict[str, Any] = msgspec.json.decode(after)
    lines = []
    for name in {**old, **new}:
        values = [facts[name] for facts in (old, new) if name in facts]
        currency = new.get("currency")
        texts = [_text(request, subject, name, value, currency, in_team=in_team) for value in values]
        lines.append((label(request, name), " → ".join(texts)))
    return lines


def fact_text(request: ConsoleRequest, subject: str, name: str, value: Any, *, in_team: bool = False) -> str:
    """One fact of a timeline: of a payment, a refund, a dispute or a webhook, as `subject` says."""
    if isinstance(value, Message):
        return message_text(request, value)
    return _text(request, subject, name, value, None, in_team=in_team)


def _text(request: ConsoleRequest, subject: str, name: str, value: Any, currency: str | None, *, in_team: bool) -> str:
    if value in (None, "", []):
        return _NOTHING
    if name in _AMOUNTS:  # In hundredths, or as the text of a number in main units.
        return request.stated_amount(plain(value) if isinstance(value, int) else str(value), currency)
    if name == "fee_percent":
        return f"{format_decimal(bytes(percent(value)).decode(), '#,##0.####', locale=request.language)}\u00a0%"
    match value:
        case bool():
            return request.text("operations.yes" if value else "operations.no")
        case list():
            return ", ".join(printable(str(item)) for item in value)
        case _:
            return _words(request, subject, name, str(value), in_team=in_team)


def _words(request: ConsoleRequest, subject: str, name: str, value: str, *, in_team: bool) -> str:
    if name in _PHONES:
        return printable(full_phone(value))
    if name == "operator":
        return printable(request.operator_name(value))
    prefixes = WORDS.get(name, ())
    if name == "status":
        prefixes = (STATUSES[subject],) if subject in STATUSES else ()
    elif name == "role":
        prefixes = ("role.", "staff.") if in_team else ("staff.",)
    for prefix in prefixes:
        if request.renderer.has(word_key(prefix, value)):
            return request.word(prefix, value)
    at = read_date(value) if "T" in value else None
    return printable(value) if at is None else request.date_time(at)
