"""Texts that fit one text message."""

import unicodedata
from typing import Final

#: Characters of one message, while all of them are of the alphabet below; one other character leaves only 70.
ONE_PART: Final = 160
#: The basic table of GSM 03.38, without its Greek letters.
_ALPHABET: Final = frozenset(
    "@£$¥èéùìòÇ\nØøÅå_ÆæßÉ !\"#%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyz"
    "äöñüà"
)
_INSTEAD: Final = str.maketrans(
    {
        "\u00a0": " ",
        "\u202f": " ",
        "’": "'",
        "«": '"',
        "»": '"',
        "…": "...",
        "–": "-",
        "—": "-",
        "•": "*",
        "€": "EUR",
        "œ": "oe",
        "Œ": "OE",
    }
)


def gsm_text(text: str) -> str:
    """The text in the alphabet of text messages: a letter without its accent where the alphabet has not got it, a
    question mark for what it has nothing like."""
    return "".join(map(_gsm, text.translate(_INSTEAD)))


def _gsm(character: str) -> str:
    if character in _ALPHABET:
        return character
    plain = "".join(part for part in unicodedata.normalize("NFKD", character) if part in _ALPHABET)
    return plain or ("" if unicodedata.combining(character) else "?")
