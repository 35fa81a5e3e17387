"""What Guichet has to say to a person: a code and typed facts, never a sentence.

Findings, refusals, incidents and answers are passed on and stored like this; each reader gets the sentence in their own
language, from the texts in `domain/locale/`, whose keys are the codes. A code keeps its facts for ever, because rows
have them: other facts are another code.
"""

import re
from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, Self

import msgspec

from guichet.clock import Instant, iso
from guichet.domain.money import plain

_HERE: Final = Path(__file__).parent
#: The folders whose `locale/` has texts of messages: this one, and those of providers with messages of their own.
TEXTS: Final = (_HERE, *(folder.parent for folder in sorted(_HERE.parent.glob("providers/*/locale"))))
_ENTRY: Final = re.compile(r'^msgid "(.+)"\nmsgstr "(.*)"$', re.MULTILINE)


class Amount(msgspec.Struct, frozen=True, tag="amount"):
    """An amount in hundredths of the main unit; `currency` is None where the sentence leaves it out."""

    hundredths: int
    currency: str | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (plain(self.hundredths), self.currency)))


class Moment(msgspec.Struct, frozen=True, tag="instant"):
    at: Instant

    def __str__(self) -> str:
        return iso(self.at)


class Day(msgspec.Struct, frozen=True, tag="day"):
    day: date

    @classmethod
    def of(cls, text: str) -> Self:
        """`text`: as in `2026-11-23`."""
        return cls(date.fromisoformat(text))

    def __str__(self) -> str:
        return self.day.isoformat()


class Message(msgspec.Struct, frozen=True, tag="message"):
    """`code`: the key of its texts. A fact that is text is a name, a word of ours, which pages know by the fact's name,
    or what somebody else said. `str()` is the sentence in English, for commands and logs."""

    code: str
    facts: "dict[str, Fact]" = {}

    def __str__(self) -> str:
        text = _english().get(self.code)
        facts = {name: _fact_text(fact) for name, fact in self.facts.items()}
        return f"{self.code} {facts}" if text is None else text % facts


#: What a fact may be. A number is never an amount or an instant.
Fact = int | str | Amount | Moment | Day | Message | list[str | Amount | Message]
#: What came in place of a usable response: our own message, or the words of the provider, which are quoted as theirs.
Answer = Message | str


class Code(StrEnum):
    """The base of each kind of messages: a member is the code and the names of its facts, and makes messages:
    `Refusal.NO_REQUEST(request=3)`."""

    facts: tuple[str, ...]

    def __new__(cls, value: str, *facts: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.facts = facts
        return member

    def __call__(self, **facts: Fact) -> Message:
        """Raises TypeError for other facts than those of this code."""
        if facts.keys() != set(self.facts):
            raise TypeError(f"{self.value} has the facts {self.facts}, not {tuple(facts)}")
        return Message(self.value, facts)


class _Quoted(Code):
    VERBATIM = "quoted.verbatim", "answer"


def verbatim(answer: Answer) -> Message:
    """What somebody else said, a provider or the operating system, or a name; a message of ours as it is."""
    return answer if isinstance(answer, Message) else _Quoted.VERBATIM(answer=answer)


def shortened(answer: Answer, most: int) -> Answer:
    """With at most so many characters of somebody else's words."""
    return answer[:most] if isinstance(answer, str) else answer


def encode(message: Message) -> str:
    """As rows keep it: a JSON object."""
    return msgspec.json.encode(message).decode()


_DECODER: Final = msgspec.json.Decoder(Message)


def decode(stored: str | None) -> Message | None:
    """None for a row without a message."""
    return _DECODER.decode(stored) if stored else None


def _fact_text(fact: Fact) -> str:
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


@cache
def _english() -> dict[str, str]:
    """By code. `commands.po` has what commands say otherwise than pages, such as the name of another command."""
    files = [file for folder in TEXTS for file in folder.glob("locale/en/LC_MESSAGES/*.po")]
    entries = (_ENTRY.findall(file.read_text(encoding="utf-8")) for file in (*files, _HERE / "locale" / "commands.po"))
    return {key: text.replace('\\"', '"') for pairs in entries for key, text in pairs}
