"""Text from outside, for a person's screen: what a terminal would obey, hide or reorder is shown as an escape instead.

Merchants, customers and providers choose names, order numbers and answers. Escape sequences in them could rewrite the
screen, set the clipboard (OSC 52) or disguise a link (OSC 8), and characters of direction could reverse an amount.
"""

import json
import unicodedata
from typing import Final

#: A page shows line breaks as spaces; the other two join letters, and the parts of an emoji, and move nothing.
_IN_LABELS: Final = "\n\r\t\u200c\u200d"


def printable(text: str, keep: str = "") -> str:
    """`text` without control and format characters, those in `keep` excepted: ESC is shown as `\\x1b`, U+202E as
    `\\u202e`, a line break as `\\n`."""
    if text.isprintable():
        return text
    return "".join(char if char in keep or _is_visible(char) else _escape(char) for char in text)


def printable_label(text: str) -> str:
    """What a customer reads of a merchant's text: one of several lines, or in any script, is no attack."""
    return printable(text, keep=_IN_LABELS)


def printable_json(text: str) -> str:
    """The same for a JSON text: it still says the same, because a JSON string may hold any character as `\\uXXXX`."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if _is_visible(char) or char in "\n\t" else json.dumps(char)[1:-1] for char in text)


def _is_visible(character: str) -> bool:
    """Whether it is a letter, a mark, a number, a sign or a space; not a control, a format character, half of a
    surrogate pair, private, unassigned, or a line or paragraph separator."""
    category = unicodedata.category(character)
    return category[0] != "C" and category not in ("Zl", "Zp")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
