"""Sentences of the commands, in English, made from templates: pages find out from the sentence what it says.

A sentence is printed by commands, kept in rows and shown on pages, so the English text itself is what is passed on and
stored. Each kind of sentences is one table of templates. The template that writes a sentence also reads it back: a page
gets a key and facts, and says the same in the language of whoever reads it. Rows written by an older version are read
in the same way. A template whose words change no longer reads the rows that it wrote before: those are shown as they
are.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from string import Formatter
from typing import Final, NewType

#: English text for people: written by a template, or by somebody else and then `verbatim`.
Sentence = NewType("Sentence", str)
NO_SENTENCE: Final = Sentence("")


@dataclass(frozen=True, slots=True)
class Message:
    """What a sentence says: the key of its template and the facts in it, as the sentence writes them."""

    key: str
    facts: dict[str, str]


def verbatim(text: str) -> Sentence:
    """What somebody else said, a provider or the operating system: pages show it as it is."""
    return Sentence(text)


class Sentences(Enum):
    """The base of each kind: members are templates such as `{count} links are left`. The first member that reads a
    sentence counts, so one with fewer facts stands before one that reads it too."""

    def __call__(self, **facts: object) -> Sentence:
        """The sentence with these facts."""
        return Sentence(str(self.value).format(**facts))

    @property
    def key(self) -> str:
        return self.name.lower()

    @property
    def facts(self) -> list[str]:
        """The names of the facts, in the order of the sentence."""
        return [name for _, name, _, _ in Formatter().parse(self.value) if name is not None]

    @classmethod
    def read(cls, sentence: str) -> Message | None:
        """What a sentence of this kind says; None for one that no template wrote."""
        for template in cls:
            if found := _pattern(template.value).fullmatch(sentence):
                return Message(template.key, found.groupdict())
        return None


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = (
        re.escape(text) + ("" if name is None else f"(?P<{name}>.*?)")
        for text, name, _, _ in Formatter().parse(template)
    )
    return re.compile("".join(parts), re.DOTALL)
