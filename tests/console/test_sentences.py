"""Every sentence that a command says, and a page repeats, has a text in both languages.

What is `Sentence` in the code is written by a template, which mypy checks; templates are counted here. What providers'
results hold is a plain text, since most of it is the provider's own: there the source is read.
"""

import ast
from collections.abc import Iterator
from enum import unique
from pathlib import Path
from typing import Final, get_args
from zoneinfo import ZoneInfo

import pytest
from starlette.requests import Request

import guichet
from guichet.back_office.manual_settlement import Answer
from guichet.console.page_request import console_renderer
from guichet.console.sentences import KINDS, QUOTED, WORDS, said, word_key
from guichet.domain.approvals import APPROVAL_STATUSES
from guichet.domain.availability import OPERATOR_STATES
from guichet.domain.disputes import BEARERS
from guichet.domain.failures import RefusalReason
from guichet.domain.late_results import LateStage
from guichet.domain.merchants import ENVS
from guichet.domain.payments import SUBJECT_TYPES, PaymentStatus
from guichet.domain.sentences import Message, Sentences
from guichet.incidents.repository import KINDS as INCIDENTS
from guichet.late_money.decisions import Decision
from guichet.pages import i18n
from guichet.pages.page_request import PageRequest
from guichet.server.health_checks import QUEUE_NAMES
from tests.console.test_texts import CATALOGUES
from tests.texts import facts_of

PACKAGE: Final = Path(guichet.__file__).parent
EVERY: Final = [(kind, template) for kind, templates in KINDS.items() for template in templates]
SAMPLES: Final = {
    "": "<some text>",
    "word": "word",
    "number": "12",
    "amount": "5000.5",
    "stated": "2000000",
    "money": "5000 XOF",
    "balances": "collection 5000 XOF, 7 EUR",
    "instant": "2026-11-23T10:00:00Z",
    "day": "2026-11-23",
}
#: What a fact that is a word of ours may say. The reason of a dispute is Stripe's, and may be a new one.
SAID: Final = {
    "availability": OPERATOR_STATES,
    "bank_reason": (),
    "bearers": BEARERS,
    "decision": APPROVAL_STATUSES,
    "decisions": get_args(Decision),
    "env": ENVS,
    "incident": INCIDENTS,
    "noun": (*SUBJECT_TYPES, "dispute", "subject"),
    "queue": tuple(QUEUE_NAMES.values()),
    "stage": get_args(LateStage),
    "status": get_args(PaymentStatus),
    "subjects": tuple(f"{each}s" for each in SUBJECT_TYPES),
    "told": get_args(Answer),
}
RESULTS: Final = {"AlreadyRefunded", "FloatEmpty", "NotFound", "NotProcessed", "Refused", "Unknown"}


@pytest.mark.parametrize(("kind", "template"), EVERY, ids=str)
def test_a_sentence_has_a_text_in_both_languages_with_the_same_facts(kind: str, template: Sentences) -> None:
    for language in i18n.LANGUAGES:
        assert facts_of(CATALOGUES.texts[language][f"{kind}.{template.key}"]) == template.shapes.keys()


@pytest.mark.parametrize(("kind", "template"), EVERY, ids=str)
def test_a_sentence_is_read_by_the_template_that_wrote_it(kind: str, template: Sentences) -> None:
    """And not by another one of its kind that stands before it."""
    facts = {name: SAMPLES[shape] for name, shape in template.shapes.items()}
    assert KINDS[kind].read(template(**facts)) == Message(template, facts)


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_every_sentence_is_said_on_a_page(language: str) -> None:
    headers = [(b"accept-language", language.encode())]
    request = Request({"type": "http", "headers": headers, "query_string": b""})
    page = PageRequest(request, console_renderer(), "", ZoneInfo("UTC"))
    for kind, template in EVERY:
        text = said(page, kind, template(**{name: SAMPLES[shape] for name, shape in template.shapes.items()}))
        assert text, template
        assert "<some" not in text, template


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_a_text_for_its_own_sentences_only(kind: str) -> None:
    unique(KINDS[kind])
    texts = {key for key in CATALOGUES.texts["fr"] if key.startswith(f"{kind}.")}
    assert texts == {f"{kind}.{template.key}" for template in KINDS[kind]}


def test_every_kind_of_the_code_is_one_that_pages_know() -> None:
    assert {each.__name__ for each in KINDS.values()} == {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id == "Sentences" for b in node.bases)
    }


def test_facts_that_are_words_or_sentences_have_texts() -> None:
    facts = {name for _, template in EVERY for name in template.shapes}
    assert QUOTED.keys() | WORDS.keys() <= facts, "no fact has this name any more"
    assert set(QUOTED.values()) <= KINDS.keys()
    assert SAID.keys() == WORDS.keys()
    wanted = {word_key(WORDS[name], each) for name, values in SAID.items() for each in values}
    for language in i18n.LANGUAGES:
        assert wanted <= CATALOGUES.texts[language].keys()


def test_the_results_of_providers_have_no_words_of_their_own() -> None:
    """What we say in place of a provider's answer is in `providers/shared/answers.py`."""
    assert list(_own_words()) == []


def _own_words() -> Iterator[str]:
    for folder in ("providers", "payments", "worker"):
        for path in (PACKAGE / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RESULTS:
                    given = [*node.args, *(each.value for each in node.keywords)]
                elif isinstance(node, ast.AsyncFunctionDef) and node.name == "probe":
                    given = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value]
                else:
                    continue
                yield from (f"{path.name}:{each.lineno}" for each in given if _is_text(each))


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) or _is_text(node.orelse)
    codes = (*get_args(RefusalReason), "ok")
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in codes
    )
