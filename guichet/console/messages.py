"""What Guichet has to say (`domain/messages.py`), in the language of whoever reads it.

How a fact is written follows from its type. One that is text is a word of ours or what somebody else said, as its name
says, or else a name, which stands there as it is.
"""

from typing import Final

from markupsafe import Markup

from guichet.domain.messages import Amount, Answer, Day, Fact, Message, Moment
from guichet.domain.money import plain
from guichet.pages import formatting
from guichet.pages.page_request import PageRequest
from guichet.printable import printable

#: Facts that are words of ours, by name: how the texts of these words begin. Some facts are several, with commas.
WORDS: Final = {
    "availability": "operations.weather.",
    "bank_reason": "operations.dispute_reason.",
    "bearers": "operations.bearer.",
    "decision": "operations.decision.",
    "decisions": "operations.to.",
    "env": "env.",
    "incident": "operations.kind.",
    "noun": "operations.noun.",
    "queue": "operations.queue.",
    "stage": "operations.stage.",
    "status": "operations.state.",
    "subjects": "operations.noun.",
    "told": "operations.told.",
}
_OPERATOR: Final = "operator"
#: What somebody else said.
_QUOTED: Final = "answer"
#: Amounts as a provider writes them.
_PROVIDER_AMOUNTS: Final = ("least", "most")


def message_text(request: PageRequest, message: Answer | None) -> Markup:
    """A message in the reader's language. What somebody else said is shown as it is, marked as English unless it is a
    single name or address."""
    if isinstance(message, Message) and request.renderer.has(message.code):
        return request.text(message.code, **{name: _fact(request, name, fact) for name, fact in message.facts.items()})
    text = str(message or "")  # A code of another version, or somebody else's words.
    marked = Markup('<span lang="en">{}</span>') if " " in text else Markup("{}")
    return marked.format(printable(text))


def word(request: PageRequest, prefix: str, value: str) -> str:
    """A word of ours, such as a status, in the reader's language; one without a text as it is."""
    key = word_key(prefix, value)
    return request.text(key) if request.renderer.has(key) else printable(value)


def word_key(prefix: str, value: str) -> str:
    """The key of the text of a word: `operations.told.not_sent`."""
    return prefix + value.replace(" ", "_").replace("-", "_")


def _fact(request: PageRequest, name: str, fact: Fact) -> str:
    match fact:
        case Message():
            return message_text(request, fact)
        case list():
            return Markup(", ").join(_fact(request, name, item) for item in fact)
        case Amount():
            return printable(formatting.stated_amount(plain(fact.hundredths), fact.currency, request.language))
        case Moment():
            return request.date_time(fact.at)
        case Day():
            return formatting.long_date(fact.day, request.language)
    return _text(request, name, fact) if isinstance(fact, str) else str(fact)


def _text(request: PageRequest, name: str, text: str) -> str:
    if name == _QUOTED:
        return message_text(request, text)
    if name == _OPERATOR:
        return printable(request.operator_name(text))
    if name in WORDS:
        return ", ".join(word(request, WORDS[name], value) for value in text.split(", "))
    return formatting.stated_amount(text, None, request.language) if name in _PROVIDER_AMOUNTS else printable(text)
