"""Languages of the pages: which one a customer reads, and the texts in it.

Every text is in a file of `locale/<language>/LC_MESSAGES/` of its kind of pages, under a dotted key: one file for each
group of pages, named the same in both languages. They are read when the service starts, not compiled beforehand.
"""

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Final

FRENCH: Final = "fr"
ENGLISH: Final = "en"
#: The first one is used if a customer prefers none of them.
LANGUAGES: Final = (FRENCH, ENGLISH)
_ENTRY: Final = re.compile(r'^msgid "(.*)"\nmsgstr "(.*)"$', re.MULTILINE)


def catalogue(language: str, *folders: Path) -> dict[str, str]:
    """The texts of one language by key, in the `locale/` of these folders. Raises ValueError if two files have the same
    key."""
    known: dict[str, str] = {}
    for file in (file for folder in folders for file in sorted(folder.glob(f"locale/{language}/LC_MESSAGES/*.po"))):
        texts = _texts(file)
        if twice := known.keys() & texts.keys():
            raise ValueError(f"{file}: {sorted(twice)} stand in another file too")
        known |= texts
    return known


def _texts(file: Path) -> dict[str, str]:
    """By key. Ours have a key and a text in one line each; Babel's reader of any such file took a third of the time of
    the first page after a start. Raises ValueError for a file with other entries."""
    content = file.read_text("utf-8")
    entries = _ENTRY.findall(content)
    if len(entries) != content.count("msgid "):
        raise ValueError(f"{file}: a key or a text is not in one line")
    return {key: json.loads(f'"{text}"') if "\\" in text else text for key, text in entries if key}


@lru_cache(maxsize=64)
def negotiate(accept_language: str) -> str:
    """Our language that an Accept-Language header prefers; French if it names none of ours."""
    best, best_quality = FRENCH, 0.0
    for part in accept_language[:500].split(","):
        tag, _, parameters = part.partition(";")
        language = tag.strip().lower().partition("-")[0]
        quality = _quality(parameters)
        if language in LANGUAGES and quality > best_quality:
            best, best_quality = language, quality
    return best


def region(accept_language: str) -> str | None:
    """The first country named by an Accept-Language header (`fr-BJ` → `BJ`): where the customer probably is."""
    for part in accept_language[:500].split(","):
        subtags = part.partition(";")[0].strip().split("-")
        for subtag in subtags[1:]:
            if len(subtag) == 2 and subtag.isalpha() and subtag.isascii():
                return subtag.upper()
    return None


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return min(1.0, max(0.0, float(value)))
    except ValueError:
        return 0.0
