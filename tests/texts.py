"""What the tests of both kinds of pages ask of their catalogues of texts."""

import re
from pathlib import Path

import guichet.pages
from guichet.pages import i18n

_SHARED = Path(guichet.pages.__file__).parent


def facts_of(text: str) -> set[str]:
    """The names of the values that a text takes."""
    return set(re.findall(r"%\((\w+)\)s", text))


class Catalogues:
    """The texts of the pages in `folder`, and the code and templates that may use them."""

    def __init__(self, folder: Path, *more_texts: Path) -> None:
        self.texts = {language: i18n.catalogue(language, folder, *more_texts) for language in i18n.LANGUAGES}
        places = [path for each in (folder, _SHARED) for path in (*each.rglob("*.py"), *each.rglob("*.html"))]
        self.sources = "\n".join(path.read_text() for path in places)
        self.used = set(re.findall(r'(?:_|\.text)\(\s*"([a-z_]+\.[a-z0-9_.]+[a-z0-9_])"', self.sources))

    def check_keys(self) -> None:
        assert self.texts["fr"].keys() == self.texts["en"].keys()
        assert all(text.strip() for texts in self.texts.values() for text in texts.values())

    def check_text(self, key: str, composed: tuple[str, ...]) -> None:
        """The same values in both languages, and used. `composed`: how keys begin that are put together."""
        values = [facts_of(self.texts[language][key]) for language in i18n.LANGUAGES]
        assert values[0] == values[1], key
        assert f'"{key.removesuffix(".one")}"' in self.sources or key.startswith(composed), key

    def check_french_typography(self) -> None:
        for key, text in self.texts["fr"].items():
            assert not re.search(r" [?!:;»]|« |'", text), f"{key}: a plain space or a straight apostrophe"

    def check_used(self, at_least: int) -> None:
        assert len(self.used) > at_least
        assert self.used <= self.texts["fr"].keys()
