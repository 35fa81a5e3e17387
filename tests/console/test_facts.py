"""Every fact that the audit log keeps and that a payment's story tells has its words, and so has every kind of act."""

from typing import Any, Final, get_args
from zoneinfo import ZoneInfo

import pytest
from starlette.requests import Request

from guichet.back_office.manual_settlement import Answer
from guichet.clock import Instant
from guichet.console import messages
from guichet.console.activity_page import NOT_SHOWN, SHOWN
from guichet.console.console import console_renderer
from guichet.console.facts import STATUSES, WORDS
from guichet.console.messages import word_key
from guichet.domain.approvals import APPROVAL_STATUSES, APPROVED_ACTS
from guichet.domain.audit_log import ActSubject, FactName
from guichet.domain.availability import OPERATOR_STATES
from guichet.domain.disputes import BEARERS
from guichet.domain.events import DeliveryError, DeliveryStatus, DeliveryTarget
from guichet.domain.exports import ExportKind
from guichet.domain.failures import FAILURE_CODES, REFUSAL_REASONS
from guichet.domain.late_results import LateStage
from guichet.domain.merchants import ENVS, MERCHANT_STATUSES
from guichet.domain.messages import Amount, Day, Moment
from guichet.domain.payments import SUBJECT_TYPES, PaymentStatus
from guichet.domain.staff_jobs import StaffJobKind
from guichet.history.timeline import TimelineFact, TimelineSubject
from guichet.incidents.repository import KINDS
from guichet.late_money.decisions import Decision
from guichet.pages import i18n
from guichet.pages.page_request import PageRequest
from guichet.provider_callbacks.unmatched import UnmatchedReason
from guichet.server.doctor.check import Age
from guichet.server.health_checks import QUEUE_NAMES
from tests.console.test_texts import CATALOGUES
from tests.domain.test_messages import CODES

#: What a fact that is a word of ours may say.
SAID: Final[dict[str, Any]] = {
    "act": APPROVED_ACTS,
    "action": (*SHOWN, *NOT_SHOWN),
    "borne_by": BEARERS,
    "code": FAILURE_CODES,
    "decision": get_args(Decision),
    "env": ENVS,
    "error": get_args(DeliveryError),
    "from": BEARERS,
    "kind": (*get_args(StaffJobKind), *get_args(ExportKind), *KINDS),
    "provider_says": get_args(Answer),
    "source": ("api", "link"),
    "stage": get_args(LateStage),
    "subject": get_args(TimelineSubject),
    "target": get_args(DeliveryTarget),
    "to": get_args(Decision),
}
STATUS: Final[dict[str, Any]] = {
    "delivery": get_args(DeliveryStatus),
    "merchant": MERCHANT_STATUSES,
    "payment": get_args(PaymentStatus),
    "refund": ("pending", "succeeded", "failed"),
    "user": ("invited", "active", "disabled"),
    "webhook": get_args(DeliveryStatus),
}
#: The same for the facts of messages. The reason of a dispute is Stripe's, and may be a new one.
SAID_BY_MESSAGES: Final[dict[str, Any]] = {
    "availability": OPERATOR_STATES,
    "bank_reason": (),
    "bearers": BEARERS,
    "decision": APPROVAL_STATUSES,
    "decisions": get_args(Decision),
    "env": ENVS,
    "incident": KINDS,
    "noun": (*SUBJECT_TYPES, "dispute", "subject"),
    "queue": tuple(QUEUE_NAMES.values()),
    "stage": get_args(LateStage),
    "status": get_args(PaymentStatus),
    "subjects": tuple(f"{each}s" for each in SUBJECT_TYPES),
    "told": get_args(Answer),
}


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_every_fact_has_a_name_and_every_act_and_its_subject_their_words(language: str) -> None:
    texts = CATALOGUES.texts[language].keys()
    facts = {f"fact.{name}" for name in (*get_args(FactName), *get_args(TimelineFact))} | {"fact.subject"}
    # What stands in the story is left out, or written out fact by fact.
    assert facts - texts == {"fact.after", "fact.before", "fact.concern", "fact.message"}
    assert {key for key in texts if key.startswith("fact.")} <= facts, "of no fact any more"
    assert {f"act_subject.{subject}" for subject in get_args(ActSubject)} <= texts
    assert {f"activity.act.{act}" for act in (*SHOWN, *NOT_SHOWN)} <= texts


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_facts_that_are_words_have_texts(language: str) -> None:
    texts = CATALOGUES.texts[language].keys()
    assert (SAID.keys(), STATUS.keys()) == (WORDS.keys(), STATUSES.keys())
    assert WORDS.keys() <= {*get_args(FactName), *get_args(TimelineFact), "subject"}
    for name, values in SAID.items():
        for value in values:
            keys = {word_key(prefix, value) for prefix in WORDS[name]}
            assert keys & texts, (name, value)
    assert {f"{STATUSES[name]}{value}" for name, values in STATUS.items() for value in values} <= texts
    assert {f"operations.failure_reason.{reason}" for reason in REFUSAL_REASONS} <= texts
    assert {f"operations.unmatched.{reason}" for reason in get_args(UnmatchedReason)} <= texts


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_facts_of_messages_that_are_words_have_texts(language: str) -> None:
    assert SAID_BY_MESSAGES.keys() == messages.WORDS.keys() <= {fact for code in CODES for fact in code.facts}
    wanted = {word_key(messages.WORDS[name], each) for name, values in SAID_BY_MESSAGES.items() for each in values}
    assert wanted <= CATALOGUES.texts[language].keys()


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_every_message_is_said_on_a_page(language: str) -> None:
    headers = [(b"accept-language", language.encode())]
    request = Request({"type": "http", "headers": headers, "query_string": b""})
    page = PageRequest(request, console_renderer(), "", ZoneInfo("UTC"))
    for code in CODES:
        for fact in (
            "<some text>",
            12,
            Amount(5000_00, "XOF"),
            Moment(Instant(0)),
            Day.of("2026-11-23"),
            Age.DAYS(count=2),
        ):
            text = messages.message_text(page, code(**dict.fromkeys(code.facts, fact)))
            assert text, code
            assert "<some" not in text, code
