"""A message has a code and facts: rows keep it, and each reader gets its sentence."""

import importlib
import pkgutil
from datetime import date
from typing import Final

import pytest

import guichet
from guichet.clock import Instant
from guichet.domain.messages import TEXTS, Amount, Code, Day, Message, Moment, decode, encode, verbatim
from guichet.domain.refusals import Refusal
from guichet.pages import i18n
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.answers import ProviderAnswer
from tests.texts import Catalogues, facts_of

for module in pkgutil.walk_packages(guichet.__path__, "guichet."):
    # That of MCP has no code, and a library that every runner of tests would import.
    if "migrations" not in module.name and not module.name.endswith(("__main__", "mcp_server")):
        importlib.import_module(module.name)

#: In the same order in each runner, whichever module it imported first.
KINDS: Final = sorted(Code.__subclasses__(), key=lambda kind: (kind.__module__, kind.__qualname__))
CODES: Final = [code for kind in KINDS for code in kind]
CATALOGUES: Final = Catalogues(*TEXTS)
BALANCES: Final[list[str | Amount | Message]] = [
    AccountFinding.BALANCE_OF(wallet="collection", balance=Amount(500_050, "XOF")),
    Amount(-7_00, "EUR"),
]


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_a_code_has_a_text_in_both_languages_with_its_facts(language: str) -> None:
    texts = CATALOGUES.texts[language]
    assert [code for code in CODES if facts_of(texts.get(code, "%(no_text)s")) != set(code.facts)] == []


def test_commands_say_every_code() -> None:
    """In place of the English of pages."""
    assert [code for code in CODES if not str(code(**dict.fromkeys(code.facts, "x")))] == []


def test_no_text_is_of_a_code_that_is_gone() -> None:
    CATALOGUES.check_keys()
    CATALOGUES.check_french_typography()
    assert {code.value for code in CODES} == CATALOGUES.texts["fr"].keys()


def test_a_row_keeps_the_code_and_its_typed_facts() -> None:
    answer = ProviderAnswer.TOO_MANY_PAGES(day=Day(date(2026, 11, 23)), count=7)
    found = AccountFinding.BALANCES(balances=BALANCES)
    ended = Refusal.KEY_IN_PAST(at=Moment(Instant(1_700_000_000_000_000)))
    for message in (answer, found, ended, verbatim("503 <away>"), ProviderAnswer.OF_COLLECTION(answer=answer)):
        assert decode(encode(message)) == message
    assert decode(None) is None


def test_commands_say_it_in_english() -> None:
    reason = ProviderAnswer.TOO_MANY_PAGES(day=Day.of("2026-11-23"), count=7)
    assert str(ProviderAnswer.OF_COLLECTION(answer=reason)) == "collection: 2026-11-23 has more than 7 pages"
    assert str(AccountFinding.BALANCES(balances=BALANCES)) == "collection 5000.5 XOF, -7 EUR"
    at = Moment(Instant(1_700_000_000_000_000))
    assert str(Refusal.KEY_IN_PAST(at=at)) == "A key that expired on 2023-11-14T22:13:20.000000Z would never work."
    assert str(AccountFinding.SANDBOX_TARGET()) == 'target_env = "sandbox"'
    assert str(Message("of.another_version", {"count": 3})) == "of.another_version {'count': '3'}"


def test_a_code_is_refused_with_other_facts() -> None:
    with pytest.raises(TypeError, match=r"refusal\.no_request has the facts"):
        Refusal.NO_REQUEST(number=3)
