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
_BALANCE: Final = r"(?:[^,]* )?-?\d+(?:\.\d+)? [A-Z]{3}"
#: What a fact looks like, by what stands after its name: `{operator:word}`. `amount` is one of main units, as commands
#: write it; `stated` one as somebody else writes it; `money` an amount with its currency; `balances` are such, each
#: perhaps after a name; `instant` and `day` are ISO 8601.
_SHAPES: Final = {
    "": ".*?",
    "word": r"\S*?",
    "number": r"-?\d+",
    "stated": r"\S*?",
    "amount": r"-?\d+(?:\.\d+)?",
    "money": r"-?\d+(?:\.\d+)? \S+",
    "balances": rf"{_BALANCE}(?:, {_BALANCE})*",
    "instant": r"\d{4}-\d\d-\d\dT\S*",
    "day": r"\d{4}-\d\d-\d\d",
}


@dataclass(frozen=True, slots=True)
class Message:
    """What a sentence says: its template and the facts in it, as the sentence writes them."""

    template: "Sentences"
    facts: dict[str, str]


def verbatim(text: str) -> Sentence:
    """What somebody else said, a provider or the operating system, or what has no words: pages show it as it is."""
    return Sentence(text)


class Sentences(Enum):
    """The base of each kind: members are templates such as `{count:number} links are left`. The first member that
    reads a sentence counts, so one with fewer facts stands before one that would read it too."""

    def __call__(self, **facts: object) -> Sentence:
        """The sentence with these facts."""
        parts = Formatter().parse(self.value)
        return Sentence("".join(text + ("" if name is None else str(facts[name])) for text, name, _, _ in parts))

    @property
    def key(self) -> str:
        return self.name.lower()

    @property
    def shapes(self) -> dict[str, str]:
        """What each fact looks like, by its name, in the order of the sentence."""
        return {name: shape or "" for _, name, shape, _ in Formatter().parse(self.value) if name is not None}

    @classmethod
    def read(cls, sentence: str) -> Message | None:
        """What a sentence of this kind says; None for one that no template wrote."""
        for template in cls:
            if found := _pattern(template.value).fullmatch(sentence):
                return Message(template, found.groupdict())
        return None


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = (
        re.escape(text) + ("" if name is None else f"(?P<{name}>{_SHAPES[shape or '']})")
        for text, name, shape, _ in Formatter().parse(template)
    )
    return re.compile("".join(parts), re.DOTALL)
