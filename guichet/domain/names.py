"""What no name may hold: names of people and merchants stand in mails to strangers, whose programs make links of
everything that looks like an address. And the words by which a name is found."""

import re
import unicodedata
from typing import Final

_ADDRESS: Final = re.compile(
    r"@|//|\b(?:https?|ftp|mailto|tel|sms|javascript|data):\S"
    # `evil.example`, `www.evil`; but `M. Dossou`, `S.A.R.L.` and `Kora 2.0` are names.
    r"|\S\.[^\W\d_]{2}"
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){3}",
    re.IGNORECASE,
)


def holds_address(name: str) -> bool:
    """Whether a mail program could make a link of a part of it: an `@`, `//`, the scheme of an address, four numbers
    with dots, or a dot with two letters right behind it. Other forms of these characters count alike."""
    return _ADDRESS.search(unicodedata.normalize("NFKC", name).replace("。", ".")) is not None


#: Letters that Unicode does not take apart, as people type them who have no such key.
_PLAIN: Final = str.maketrans(
    {"ɔ": "o", "ɛ": "e", "ŋ": "n", "ɖ": "d", "ɗ": "d", "ɓ": "b", "ƒ": "f", "ƙ": "k", "ƴ": "y", "ø": "o", "œ": "oe"}
    | {"æ": "ae", "đ": "d", "ł": "l", "ı": "i"}
    | dict.fromkeys("'’ʼ‘`")
)


class _Letters(dict[int, str]):
    """What a search compares in place of a character, for `str.translate`; worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        letters = unicodedata.normalize("NFKD", chr(code).casefold().translate(_PLAIN))
        plain = "".join(char if char.isalnum() else " " for char in letters if not unicodedata.combining(char))
        if code < _MOST_KEPT:
            self[code] = plain
        return plain


#: Characters above it are worked out each time: hostile names must not fill the memory.
_MOST_KEPT: Final = 0x2100
_LETTERS: Final = _Letters()


def search_words(text: str) -> list[str]:
    """The words of a name as a search compares them, without accents, case and apostrophes: `N’Guessan Koné` has
    `nguessan` and `kone`. In Python, since databases disagree about accents."""
    return text.translate(_LETTERS).split()
