"""Every sentence of the pages is in both catalogues, says the same things, and is used."""

from pathlib import Path

import pytest

import guichet.checkout
from guichet.checkout.state_pages import STATES
from guichet.domain.failures import REFUSAL_REASONS
from guichet.pages import i18n
from guichet.pages.render import Renderer
from tests.texts import Catalogues

HERE = Path(guichet.checkout.__file__).parent
CATALOGUES = Catalogues(HERE)
RENDERER = Renderer(HERE, "/pay/assets")
#: Keys that are put together: prefix and how many parts follow.
COMPOSED = ("failure.", "fault.", "field.", "state.")


def test_both_languages_have_the_same_keys() -> None:
    CATALOGUES.check_keys()


def test_every_text_takes_the_same_values_in_both_languages_and_is_used() -> None:
    for key in sorted(CATALOGUES.texts["fr"]):
        CATALOGUES.check_text(key, COMPOSED)


def test_every_key_that_is_used_exists() -> None:
    CATALOGUES.check_used(50)


@pytest.mark.parametrize("reason", sorted(REFUSAL_REASONS.keys() - {"no_refund"}))  # what a payment can fail for
def test_every_reason_for_a_failure_has_a_sentence(reason: str) -> None:
    text = RENDERER.text("fr", f"failure.{reason}", mode="MTN MoMo", total="5 088 F CFA")
    assert "%" not in text
    assert "client" not in text  # Texts address the customer directly.


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_its_texts(state: str) -> None:
    for language in i18n.LANGUAGES:
        for part in ("title", "text"):
            assert RENDERER.text(language, f"state.{state}.{part}", merchant="Boutique", moment="demain")


def test_french_texts_follow_french_typography() -> None:
    CATALOGUES.check_french_typography()


def test_values_are_escaped_into_texts() -> None:
    text = RENDERER.text("fr", "link.title", merchant="<script>alert(1)</script> & 100 %")
    assert text == "Payer &lt;script&gt;alert(1)&lt;/script&gt; &amp; 100 %"


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "fr"),
        ("en", "en"),
        ("en-GB,en;q=0.9,fr;q=0.8", "en"),
        ("fr-BJ,fr;q=0.9,en;q=0.8", "fr"),
        ("en;q=0.3, fr;q=0.7", "fr"),
        ("pt-PT, en;q=0.2", "en"),
        ("de, es", "fr"),
        ("en;q=0", "fr"),
        ("*", "fr"),
        ("en;q=abc", "fr"),
        ("," * 1000, "fr"),
    ],
)
def test_the_language_is_read_from_the_header(header: str, language: str) -> None:
    assert i18n.negotiate(header) == language


@pytest.mark.parametrize(
    ("header", "country"),
    [("fr-BJ,fr;q=0.9", "BJ"), ("fr, en-sn", "SN"), ("fr", None), ("zh-Hant-CG", "CG"), ("", None)],
)
def test_the_country_is_guessed_from_the_header(header: str, country: str | None) -> None:
    assert i18n.region(header) == country
