"""Languages of the pages: which one a customer reads, and the texts in it.

Every text is in `locale/<language>/LC_MESSAGES/pages.po` under a dotted key. These files are read when the service
starts; they are not compiled beforehand.
"""

from pathlib import Path
from typing import Final

from babel.messages.pofile import read_po

FRENCH: Final = "fr"
ENGLISH: Final = "en"
#: The first one is used if a customer prefers none of them.
LANGUAGES: Final = (FRENCH, ENGLISH)

LOCALE: Final = Path(__file__).parent / "locale"


def catalogue(language: str) -> dict[str, str]:
    """The texts of one language by key."""
    with (LOCALE / language / "LC_MESSAGES" / "pages.po").open("rb") as source:
        texts = read_po(source, locale=language, abort_invalid=True)
    return {str(text.id): str(text.string) for text in texts if text.id}


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
