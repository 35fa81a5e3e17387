"""What the commands say in English (`domain/sentences.py`), said by pages in the language of whoever reads them."""

from typing import Final

from markupsafe import Markup

from guichet.domain.comparison_notes import ComparisonNote
from guichet.domain.sentences import Sentences
from guichet.pages.page_request import PageRequest
from guichet.printable import printable

#: Every kind of sentences that a page shows. The text of a sentence is its kind, a dot, and the key of its template.
KINDS: Final[dict[str, type[Sentences]]] = {
    "comparison_note": ComparisonNote,
}
#: Facts that are words of ours, by name: how the texts of these words begin.
_WORDS: Final = {"status": "operations.state."}


def said(visit: PageRequest, kind: str, sentence: str) -> Markup:
    """A sentence of this kind in the reader's language; what no template of ours wrote as it is, marked as English."""
    message = KINDS[kind].read(sentence)
    if message is None:
        return Markup('<span lang="en">{}</span>').format(printable(sentence))
    facts = {name: _fact(visit, name, text) for name, text in message.facts.items()}
    return visit.text(f"{kind}.{message.key}", **facts)


def word(visit: PageRequest, prefix: str, value: str) -> str:
    """A word of ours, such as a status, in the reader's language; one without a text as it is."""
    key = f"{prefix}{value}"
    return visit.text(key) if visit.renderer.has(key) else printable(value)


def _fact(visit: PageRequest, name: str, text: str) -> str:
    return word(visit, _WORDS[name], text) if name in _WORDS else printable(text)
