"""Templates in each language, and the stylesheet and script under addresses that change with their content."""

import base64
import hashlib
import re
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from jinja2 import FileSystemLoader, StrictUndefined
from markupsafe import Markup

from guichet.domain.records import Record
from guichet.pages import i18n
from guichet.pages.template_code import TemplateEnvironment
from guichet.printable import printable
from guichet.server.content_encoding import SharedPart, compress

#: Templates that every page of the service shares; the folder of a kind of pages adds its own.
_SHARED: Final = Path(__file__).parent
#: Of the statuses that are not as they should be.
_COLOURS: Final = {
    "succeeded": "ok",
    "active": "ok",
    "delivered": "ok",
    "paid": "ok",
    "failed": "bad",
    "lost": "bad",
    "pending": "wait",
    "open": "warn",
}
#: Where a template has the style sheet, if it is part of the page.
_STYLE: Final = Markup("<style></style>")


class Asset(Record, frozen=True):
    """A static file as it is served; `name` carries a hash of the content, so browsers may cache it for ever."""

    name: str
    content: bytes
    media_type: str


def _asset(file: str, content: bytes, media_type: str) -> Asset:
    stem, _, suffix = file.rpartition(".")
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(f"{stem}.{digest}.{suffix}", content, f"{media_type}; charset=utf-8")


def _minified(css: str) -> str:
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    css = re.sub(r"\s+", " ", css)
    return re.sub(r" ?([{};,>]) ?", r"\1", css).replace(": ", ":").replace(";}", "}").strip()


def _printable(value: Any) -> Any:
    """A text from outside without what turns or hides the text beside it; our own markup, and no text, as it is."""
    return printable(value) if type(value) is str else value


class LanguageSwitch(Record, frozen=True):
    """The link to the same page in the other language."""

    language: str
    name: str
    href: str


class PageFrame(Record, frozen=True):
    """What is around the content of every page. `script`: its address; `style`: the element of the style sheet."""

    language: str
    switch: LanguageSwitch
    script: str
    style: Markup


class Renderer:
    """The templates, texts, style sheet and script of one kind of pages. Built once.

    `folder` holds `templates/`, `locale/`, `static/*.css` and `static/pages.js`; `assets_path`: where the assets are
    served, below the service's public address; `more_texts`: other folders with a `locale/`. `linked`: browsers keep
    the style sheet, for pages that somebody opens every day; otherwise it is part of each page, allowed by its hash, so
    that a page that is opened once paints after one round trip.
    """

    def __init__(self, folder: Path, assets_path: str, *more_texts: Path, linked: bool = False) -> None:
        css = _minified("\n".join(sheet.read_text("utf-8") for sheet in sorted((folder / "static").glob("*.css"))))
        digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
        self.script: Final = _asset("pages.js", (folder / "static" / "pages.js").read_bytes(), "text/javascript")
        self.assets: Final = {self.script.name: self.script}
        self.style_source: Final = "'self'" if linked else f"'sha256-{digest}'"
        self._sheet = _asset("pages.css", css.encode(), "text/css") if linked else None
        if self._sheet is not None:
            self.assets[self._sheet.name] = self._sheet
        self._style = SharedPart(f"<style>{css}</style>".encode())
        self._assets_path = assets_path
        self._templates = (folder / "templates", _SHARED / "templates")
        self._texts = {language: i18n.catalogue(language, folder, *more_texts) for language in i18n.LANGUAGES}
        #: By language and key, those without values: a page has a hundred, and `%` takes a third of its time.
        self._plain: dict[tuple[str, str], Markup] = {}
        self._environments = {language: self._environment(language) for language in i18n.LANGUAGES}

    def frame(self, language: str, switch: LanguageSwitch, base_path: str) -> PageFrame:
        """`base_path`: of the service's public address."""
        assets = base_path + self._assets_path
        style = (
            Markup('<link rel="stylesheet" href="{}/{}">').format(assets, self._sheet.name) if self._sheet else _STYLE
        )
        return PageFrame(language, switch, f"{assets}/{self.script.name}", style)

    def text(self, language: str, key: str, /, **values: Any) -> Markup:
        """One text, with `values` escaped into it. Raises KeyError for an unknown key, which is a bug."""
        if values:
            return Markup(self._texts[language][key]) % values  # noqa: S704 - Markup escapes what is put into it
        text = self._plain.get((language, key))
        if text is None:
            text = self._plain[language, key] = Markup(self._texts[language][key]) % {}  # noqa: S704 - our own text
        return text

    def has(self, key: str) -> bool:
        return all(key in texts for texts in self._texts.values())

    def page(self, frame: PageFrame, template: str, view: Any, encoding: str | None) -> bytes:
        """A page as it is sent."""
        html = self._environments[frame.language].get_template(template).render(page=frame, view=view)
        before, style, after = html.partition(_STYLE)
        if style:
            return self._style.between(before.encode(), after.encode(), encoding)
        return compress(html.encode(), encoding) if encoding else html.encode()

    def _environment(self, language: str) -> TemplateEnvironment:
        environment = TemplateEnvironment(
            loader=FileSystemLoader(self._templates),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
            auto_reload=False,  # Otherwise each page asks the file system about each of its templates.
        )
        environment.globals["_"] = partial(self.text, language)
        environment.filters["printable"] = _printable
        environment.filters["tag"] = cache(partial(self._tag, language))
        return environment

    def _tag(self, language: str, status: str, kind: str) -> Markup:
        """A status as a word with a coloured dot; `kind`: how the keys of its texts begin."""
        colour = _COLOURS.get(status, "")
        return Markup('<span class="st {}">{}</span>').format(colour, self.text(language, f"{kind}.{status}"))
