"""Why a provider's statement cannot be read, as the command says it."""

from typing import Final

from guichet.ledger.provider_statement import MEANINGS_OF, StatementFault, UnreadableStatement

_SENTENCES: Final[dict[StatementFault, str]] = {
    "encoding": "this is not UTF-8. Save it as CSV UTF-8.",
    "nul": "it holds a NUL byte. Save it as CSV UTF-8.",
    "no_column": "no column for {field} among {known}; name it with --column {field}=NAME.",
    "width": "{found} columns where the header has {expected}.",
    "no_reference": "it has no reference.",
    "no_amount": "it has no amount.",
    "currency": "{value} is not one of {known}.",
    "word": "the {field} {value!r} is unknown; explain it with --word {value}={meaning} (or ignore).",
    "value": "the {field} {value!r} cannot be read.",
    "csv": "{problem}.",
    "too_many": "there are more than {most} lines.",
}


def sentence_of(error: UnreadableStatement) -> str:
    meaning = MEANINGS_OF[str(error.facts["field"])][0] if error.fault == "word" else ""
    return _SENTENCES[error.fault].format(**error.facts, meaning=meaning)
