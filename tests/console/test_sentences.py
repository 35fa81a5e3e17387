"""Every sentence that a command says, and a page repeats, has a text in both languages."""

from enum import unique

import pytest

from guichet.console.sentences import KINDS
from guichet.domain.sentences import Message, Sentences
from guichet.pages import i18n
from tests.console.test_texts import CATALOGUES
from tests.texts import facts_of

EVERY = [(kind, template) for kind, templates in KINDS.items() for template in templates]


@pytest.mark.parametrize(("kind", "template"), EVERY, ids=str)
def test_a_sentence_has_a_text_in_both_languages_with_the_same_facts(kind: str, template: Sentences) -> None:
    for language in i18n.LANGUAGES:
        assert facts_of(CATALOGUES.texts[language][f"{kind}.{template.key}"]) == set(template.facts)


@pytest.mark.parametrize(("kind", "template"), EVERY, ids=str)
def test_a_sentence_is_read_by_the_template_that_wrote_it(kind: str, template: Sentences) -> None:
    """And not by another one of its kind that stands before it."""
    facts = {name: f"<{name}>" for name in template.facts}
    assert KINDS[kind].read(template(**facts)) == Message(template.key, facts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_a_text_for_its_own_sentences_only(kind: str) -> None:
    unique(KINDS[kind])
    texts = {key for key in CATALOGUES.texts["fr"] if key.startswith(f"{kind}.")}
    assert texts == {f"{kind}.{template.key}" for template in KINDS[kind]}
