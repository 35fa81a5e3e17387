"""Templates in each language, and the stylesheet and script under addresses that change with their content."""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from guichet.checkout import i18n

_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file as it is served; `name` carries a hash of the content, so browsers may cache it for ever."""

    name: str
    content: bytes
    media_type: str


def _asset(file: str, media_type: str) -> Asset:
    content = (_HERE / "static" / file).read_bytes()
    stem, _, suffix = file.rpartition(".")
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(f"{stem}.{digest}.{suffix}", content, media_type)


def _minified(css: str) -> str:
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    css = re.sub(r"\s+", " ", css)
    return re.sub(r" ?([{};,>]) ?", r"\1", css).replace(": ", ":").replace(";}", "}").strip()


@dataclass(frozen=True, slots=True)
class LanguageSwitch:
    """The link to the same page in the other language."""

    language: str
    name: str
    href: str


class Renderer:
    """Built once. The style sheet is part of each page, allowed by its hash, so a page paints after one round trip."""

    def __init__(self) -> None:
        css = _minified((_HERE / "static" / "pages.css").read_text(encoding="utf-8"))
        digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
        self.style: Final = Markup(f"<style>{css}</style>")  # noqa: S704 - our own file
        self.style_source: Final = f"'sha256-{digest}'"
        self.script: Final = _asset("pages.js", "text/javascript; charset=utf-8")
        self.assets: Final = {self.script.name: self.script}
        self._texts = {language: i18n.catalogue(language) for language in i18n.LANGUAGES}
        self._environments = {language: self._environment(language) for language in i18n.LANGUAGES}

    def text(self, language: str, key: str, **values: Any) -> Markup:
        """One text, with `values` escaped into it. Raises KeyError for an unknown key, which is a bug."""
        return Markup(self._texts[language][key]) % values  # noqa: S704 - Markup escapes what is put into it

    def has(self, key: str) -> bool:
        return all(key in texts for texts in self._texts.values())

    def html(self, language: str, template: str, **values: Any) -> str:
        return self._environments[language].get_template(template).render(**values)

    def _environment(self, language: str) -> Environment:
        environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        environment.globals["_"] = partial(self.text, language)
        return environment
