"""Texts of providers are cleaned where they arrive, in answers and in callbacks."""

import json

import pytest

from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import clean_text, decode_json, hundredths, text_or_none


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb'{"a": "x\u0000y"}', "x�y"),
        (rb'{"a": "x\u001b[2Jy"}', "x�[2Jy"),
        (rb'{"a": "x\u0085y"}', "x�y"),
        ('{"a": "x\x85y"}'.encode(), "x�y"),
        (b'{"a": "x\x00\x1b\x7fy"}', "x���y"),
        (rb'{"a": "x\b\fy"}', "x��y"),
        (rb'{"a": "x\ud800y"}', "x�y"),
        (rb'{"a": "x\udc00\ud800y"}', "x��y"),
        (rb'{"a": "\ud83d\ude00 \ud83d"}', "😀 �"),
        (rb'{"a": "x\\u0000 \\b y"}', r"x\u0000 \b y"),
        (rb'{"a": "x\\\u0000y"}', "x\\�y"),
        (rb'{"a": "\t\r\n\"\/ \u00e9"}', '\t\r\n"/ é'),
    ],
)
def test_no_text_of_a_provider_holds_what_a_database_or_a_terminal_should_not_get(body: bytes, text: str) -> None:
    assert decode_json(body) == {"a": text}


def test_names_of_members_are_cleaned_too() -> None:
    assert decode_json(rb'{"a\u0000b": 1}') == {"a�b": 1}


@pytest.mark.parametrize("text", ["é ü 😀", 'quotes " and \\', "line\nline", "\\u0000 as text", "\\\\ud800"])
def test_every_other_text_arrives_as_it_was_sent(text: str) -> None:
    for ascii_only in (True, False):
        for extra in ("", "\x07"):
            body = json.dumps({"a": text, "b": extra}, ensure_ascii=ascii_only).encode()
            assert decode_json(body) == {"a": text, "b": clean_text(extra)}


def test_a_cleaned_text_equals_no_text_without_the_character() -> None:
    """Or a hostile answer could name the reference of somebody else."""
    assert clean_text("a\0b") not in ("ab", "a\0b")


def test_what_an_answer_leaves_in_logs_and_incidents_is_clean() -> None:
    response = ProviderResponse(500, b"\x1b[31mred\x00\xff", complete=True)
    assert response.raw == "500 �[31mred��"


def test_texts_and_amounts_beyond_all_reason_are_none() -> None:
    assert text_or_none("x" * 2048) == "x" * 2048
    assert text_or_none("x" * 2049) is None
    assert text_or_none("é" * 1025) is None
    assert text_or_none(10**400) == str(10**400)
    assert hundredths(10**14) == 10**16
    for absurd in (10**16, str(10**16), -(10**17), "1e400"):
        amount = hundredths(absurd)
        assert amount is None or abs(amount) < 2**63
