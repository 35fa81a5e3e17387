"""What the commands say in English (`domain/sentences.py`), said by pages in the language of whoever reads them.

A sentence may quote another one: what a provider said, why an operator is down, how long something has lasted. What a
fact is follows from its name, for words of ours and quoted sentences, or from its shape, for amounts and dates.
"""

from collections.abc import Callable
from typing import Final

from markupsafe import Markup

from guichet.clock import read_date, to_datetime
from guichet.domain.availability_reasons import AvailabilityReason
from guichet.domain.chain_faults import ChainFault
from guichet.domain.comparison_notes import ComparisonNote
from guichet.domain.refusals import Refusal
from guichet.domain.sentences import Message, Sentences
from guichet.http_client.call_failures import CallFailure
from guichet.incidents.details import IncidentDetail
from guichet.ledger.audit.faults import AuditFault
from guichet.pages import formatting
from guichet.pages.page_request import PageRequest
from guichet.printable import printable
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject, BalanceProblem
from guichet.providers.shared.answers import ProviderAnswer
from guichet.server.doctor.problems import Age, DoctorProblem

#: Every kind of sentences that a page shows. The text of a sentence is its kind, a dot, and the key of its template.
KINDS: Final[dict[str, type[Sentences]]] = {
    "account_finding": AccountFinding,
    "account_subject": AccountSubject,
    "age": Age,
    "audit_fault": AuditFault,
    "availability_reason": AvailabilityReason,
    "balance_problem": BalanceProblem,
    "call_failure": CallFailure,
    "chain_fault": ChainFault,
    "comparison_note": ComparisonNote,
    "doctor_problem": DoctorProblem,
    "incident_detail": IncidentDetail,
    "provider_answer": ProviderAnswer,
    "refusal": Refusal,
}
#: What may stand in place of a sentence of a kind: an answer in place of a finding.
_ELSE: Final = {
    "account_finding": "provider_answer",
    "audit_fault": "chain_fault",
    "incident_detail": "provider_answer",
    "provider_answer": "call_failure",
}
#: Facts that are sentences themselves, by name, and their kinds.
QUOTED: Final = {
    "age": "age",
    "answer": "provider_answer",
    "audit_fault": "audit_fault",
    "availability_reason": "availability_reason",
    "chain_fault": "chain_fault",
    "holder": "audit_fault",
    "last": "doctor_problem",
    "origin": "chain_fault",
    "waiting": "doctor_problem",
    "why": "account_finding",
    "without": "account_finding",
}
#: Facts that are words of ours, by name: how the texts of these words begin. Some facts are several, with commas.
WORDS: Final = {
    "availability": "operations.weather.",
    "bank_reason": "operations.dispute_reason.",
    "bearers": "operations.bearer.",
    "decision": "operations.decision.",
    "decisions": "operations.to.",
    "env": "env.",
    "incident": "operations.kind.",
    "noun": "operations.noun.",
    "queue": "operations.queue.",
    "stage": "operations.stage.",
    "status": "operations.state.",
    "subjects": "operations.noun.",
    "told": "operations.told.",
}


def said(visit: PageRequest, kind: str, sentence: str) -> Markup:
    """A sentence of this kind in the reader's language. What no template of ours wrote is shown as it is, marked as
    English unless it is a single name or address."""
    if not sentence:
        return Markup("")
    message = KINDS[kind].read(sentence)
    if message is not None:
        facts = {name: _fact(visit, message, name) for name in message.facts}
        return visit.text(f"{kind}.{message.template.key}", **facts)
    if kind in _ELSE:
        return said(visit, _ELSE[kind], sentence)
    marked = Markup('<span lang="en">{}</span>') if " " in sentence else Markup("{}")
    return marked.format(printable(sentence))


def word(visit: PageRequest, prefix: str, value: str) -> str:
    """A word of ours, such as a status, in the reader's language; one without a text as it is."""
    key = word_key(prefix, value)
    return visit.text(key) if visit.renderer.has(key) else printable(value)


def word_key(prefix: str, value: str) -> str:
    """The key of the text of a word: `operations.told.not_sent`."""
    return prefix + value.replace(" ", "_").replace("-", "_")


def _fact(visit: PageRequest, message: Message, name: str) -> str:
    text = message.facts[name]
    if name in QUOTED:
        return said(visit, QUOTED[name], text)
    if name in WORDS:
        return ", ".join(word(visit, WORDS[name], each) for each in text.split(", "))
    shape = _SHAPES.get(message.template.shapes[name])
    return printable(text) if shape is None else shape(visit, text)


def _amount(visit: PageRequest, text: str) -> str:
    return formatting.stated_amount(text, None, visit.language)


def _balances(visit: PageRequest, text: str) -> str:
    return ", ".join(_balance(visit, each) for each in text.split(", "))


def _balance(visit: PageRequest, text: str) -> str:
    """An amount with its currency, perhaps after a name."""
    *name, amount, currency = text.rsplit(" ", 2)
    return printable(" ".join([*name, formatting.stated_amount(amount, currency, visit.language)]))


def _instant(visit: PageRequest, text: str) -> str:
    at = read_date(text)
    return printable(text) if at is None else visit.date_time(at)


def _day(visit: PageRequest, text: str) -> str:
    day = read_date(text)
    return printable(text) if day is None else formatting.long_date(to_datetime(day), visit.language)


#: How facts are written that are neither words nor sentences, by their shape.
_SHAPES: Final[dict[str, Callable[[PageRequest, str], str]]] = {
    "amount": _amount,
    "stated": _amount,
    "money": _balance,
    "balances": _balances,
    "instant": _instant,
    "day": _day,
}
