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
from guichet.pages import i18n, template_code
from guichet.pages.template_code import CompiledTemplates, TemplateEnvironment, as_markup, escaped, fingerprint
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
#: By the end of their names, the static files that are served one by one.
_MEDIA_TYPES: Final = {".js": "text/javascript; charset=utf-8", ".png": "image/png"}
#: Where a template has the style sheet, if it is part of the page.
_STYLE: Final = Markup("<style></style>")
#: Counts of one thing: in French none is one too.
_SINGULAR: Final = {"fr": ("0", "1"), "en": ("1",)}


class Asset(Record, frozen=True):
    """A static file as it is served; `name` carries a hash of the content, so browsers may cache it for ever."""

    name: str
    content: bytes
    media_type: str


def _asset(file: str, content: bytes, media_type: str) -> Asset:
    stem, _, suffix = file.rpartition(".")
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(f"{stem}.{digest}.{suffix}", content, media_type)


def _minified(css: str) -> str:
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    css = re.sub(r"\s+", " ", css)
    return re.sub(r" ?([{};,>]) ?", r"\1", css).replace(": ", ":").replace(";}", "}").strip()


def _printable(value: Any, keep: str = "") -> Any:
    """A text from outside without what turns or hides the text beside it; our own markup, and no text, as it is."""
    return printable(value, keep=keep) if type(value) is str else value


def _sentence(text: str) -> str:
    """With a capital letter, where a message stands alone; in a list or after a colon it has none."""
    return type(text)(text[:1].upper()) + text[1:]


class Renderer:
    """The templates, texts, style sheet and script of one kind of pages. Built once.

    `folder` holds `templates/`, `locale/` and `static/` (style sheets, scripts, icons); `assets_path`: where the assets
    are served, below the service's public address; `more_texts`: other folders with a `locale/`. `linked`: browsers
    keep the style sheets, for pages that somebody opens every day; otherwise they are part of each page, allowed by
    their hash, so that a page that is opened once paints after one round trip.
    """

    def __init__(self, folder: Path, assets_path: str, *more_texts: Path, linked: bool = False) -> None:
        static = sorted((folder / "static").iterdir())
        sheets = {file.name: _minified(file.read_text("utf-8")) for file in static if file.suffix == ".css"}
        css = "".join(sheets.values())
        digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
        self.files: Final = {
            file.name: _asset(file.name, file.read_bytes(), _MEDIA_TYPES[file.suffix])
            for file in static
            if file.suffix in _MEDIA_TYPES
        }
        if linked:
            for file, sheet in sheets.items():
                self.files[file] = _asset(file, sheet.encode(), "text/css; charset=utf-8")
        self.assets: Final = {asset.name: asset for asset in self.files.values()}
        self.addresses: Final = {file: f"{assets_path}/{asset.name}" for file, asset in self.files.items()}
        self.style_source: Final = "'self'" if linked else f"'sha256-{digest}'"
        self.linked: Final = linked
        self._style = SharedPart(f"<style>{css}</style>".encode())
        self._templates = (folder / "templates", _SHARED / "templates")
        self._texts = {language: i18n.catalogue(language, folder, *more_texts) for language in i18n.LANGUAGES}
        #: By language and key, those without values: a page has a hundred, and `%` takes a third of its time.
        self._plain: dict[tuple[str, str], Markup] = {}
        compiled_from = fingerprint(self._templates, (__file__, template_code.__file__))
        self._environments = {language: self._environment(language, compiled_from) for language in i18n.LANGUAGES}

    @cache  # noqa: B019 - renderers live as long as the process
    def style_element(self, base_path: str) -> Markup:
        """`base_path`: of the service's public address."""
        sheet = base_path + self.addresses.get("pages.css", "")
        return Markup('<link rel="stylesheet" href="{}">').format(sheet) if self.linked else _STYLE

    def text(self, language: str, key: str, /, **values: Any) -> Markup:
        """One text, with `values` escaped into it: of a `count` of one the text `key.one`, if there is one. Raises
        KeyError for an unknown key, which is a bug."""
        if values:
            if str(values.get("count")) in _SINGULAR[language] and f"{key}.one" in self._texts[language]:
                key = f"{key}.one"
            escaped_values = {name: escaped(value) for name, value in values.items()}
            return as_markup(self._texts[language][key] % escaped_values)
        text = self._plain.get((language, key))
        if text is None:
            text = self._plain[language, key] = Markup(self._texts[language][key]) % {}  # noqa: S704 - our own text
        return text

    def compile(self) -> None:
        """Every template, into the files from which other processes read them (`template_code.py`)."""
        for environment in self._environments.values():
            for name in environment.list_templates(["html"]):
                environment.get_template(name)

    def macros(self, language: str, template: str) -> Any:
        """Those of a template, as functions that return markup."""
        return self._environments[language].get_template(template).module

    def has(self, key: str) -> bool:
        return all(key in texts for texts in self._texts.values())

    def page(self, language: str, template: str, encoding: str | None, **values: Any) -> bytes:
        """A page as it is sent. `values`: what its template knows by name."""
        html = self._environments[language].get_template(template).render(values)
        if not self.linked:
            before, style, after = html.partition(_STYLE)
            if style:
                return self._style.between(before.encode(), after.encode(), encoding)
        return compress(html.encode(), encoding) if encoding else html.encode()

    def _environment(self, language: str, compiled_from: bytes) -> TemplateEnvironment:
        environment = TemplateEnvironment(
            loader=FileSystemLoader(self._templates),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
            auto_reload=False,  # Otherwise each page asks the file system about each of its templates.
            bytecode_cache=CompiledTemplates(self._templates[0].parent, language, self._texts[language], compiled_from),
        )
        environment.globals["_"] = partial(self.text, language)
        environment.filters["printable"] = _printable
        environment.filters["sentence"] = _sentence
        environment.filters["tag"] = cache(partial(self._tag, language))
        return environment

    def _tag(self, language: str, status: str, kind: str) -> Markup:
        """A status as a word with a coloured dot; `kind`: how the keys of its texts begin."""
        colour = _COLOURS.get(status, "")
        return Markup('<span class="st {}">{}</span>').format(colour, self.text(language, f"{kind}.{status}"))
