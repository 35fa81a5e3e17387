"""One request for a page: its language, the addresses it links to, and the response with the headers of every page."""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Final
from urllib.parse import quote_plus, urlencode
from zoneinfo import ZoneInfo

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from guichet.clock import Instant
from guichet.domain.errors import NotFound
from guichet.domain.merchants import Merchant
from guichet.domain.records import Record
from guichet.pages import formatting, i18n
from guichet.pages.render import Renderer
from guichet.server.content_encoding import choose_encoding, compress, compress_once

#: A body of fewer bytes fits one packet anyway.
_WORTH_COMPRESSING: Final = 600
_A_YEAR: Final = "public, max-age=31536000, immutable"
#: A page links to the same days, states and languages again and again.
_quoted = lru_cache(maxsize=256)(quote_plus)

#: On every page. Addresses are secrets, so nothing is stored, framed, indexed or passed on to other sites.
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding, Accept-Language",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}


class LanguageSwitch(Record, frozen=True):
    """The link to the same page in the other language."""

    language: str
    name: str
    href: str


class PageRequest:
    """`page` in every template. `base_path`: of the service's public address, without a slash at the end. `time_zone`:
    of every date shown, the installation's until the page knows its merchant."""

    def __init__(self, request: Request, renderer: Renderer, base_path: str, time_zone: ZoneInfo) -> None:
        self.http = request
        self.renderer = renderer
        self.base_path = base_path
        self.time_zone = time_zone
        chosen = request.query_params.get("lang", "")
        self.chosen_language = chosen if chosen in i18n.LANGUAGES else None
        self.language = self.chosen_language or i18n.negotiate(request.headers.get("accept-language", ""))

    @property
    def query(self) -> QueryParams:
        return self.http.query_params

    @property
    def path(self) -> dict[str, Any]:
        """What the address names: `/payments/{reference}`."""
        return self.http.path_params

    def href(self, path: str, **query: str | None) -> str:
        """`path` (absolute within the service, without its base) in the language the customer chose."""
        if not query and self.chosen_language is None:
            return self.base_path + path
        named = {**query, "lang": self.chosen_language}.items()
        kept = "&".join([f"{name}={_quoted(value)}" for name, value in named if value])
        return f"{self.base_path}{path}?{kept}" if kept else self.base_path + path

    def text(self, key: str, /, **values: Any) -> Markup:
        """The sentence `key` in the customer's language, with `values` escaped into it."""
        return self.renderer.text(self.language, key, **values)

    def belongs_to(self, merchant: Merchant) -> None:
        """From here on dates are in this merchant's time zone, if it has one of its own."""
        if merchant.time_zone is not None:
            self.time_zone = ZoneInfo(merchant.time_zone)

    def operator_name(self, operator: str) -> str:
        """As the reader knows it; its code where the catalogue is not known."""
        return operator

    def date_time(self, instant: Instant) -> str:
        """A date in the customer's language and in the time zone of the merchant."""
        return formatting.date_time(instant, self.language, self.time_zone)

    @cached_property
    def switch(self) -> LanguageSwitch:
        other = next(language for language in i18n.LANGUAGES if language != self.language)
        # A search or a filter stays as it is.
        query = urlencode({**self.query, "lang": other}) if self.query else f"lang={other}"
        return LanguageSwitch(other, self.renderer.text(other, "base.language"), f"?{query}")

    @property
    def style(self) -> Markup:
        """The element of the style sheet."""
        return self.renderer.style_element(self.base_path)

    def address(self, file: str) -> str:
        """Where a file of the folder `static` is served."""
        return self.base_path + self.renderer.addresses[file]

    def render(
        self, template: str, view: Any = None, status: int = 200, *, forms_to: str = "'self'", **values: Any
    ) -> Response:
        """A page: the template's `view`, and other `values` by their names. `forms_to`: the sources to which its form
        may lead, redirects included (a CSP source list)."""
        policy = (
            f"default-src 'none'; style-src {self.renderer.style_source}; script-src 'self'; connect-src 'self'; "
            f"img-src 'self' data:; form-action {forms_to}; base-uri 'none'; frame-ancestors 'none'"
        )
        if self.renderer.linked:
            policy += "; manifest-src 'self'"
        headers = {"Content-Security-Policy": policy, "Content-Language": self.language}
        encoding = self._encoding
        content = self.renderer.page(self.language, template, encoding, page=self, view=view, **values)
        return _response(content, "text/html; charset=utf-8", status, headers, encoding)

    def respond(
        self, content: bytes, media_type: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Any content, compressed as the browser accepts it."""
        encoding = self._encoding if len(content) >= _WORTH_COMPRESSING else None
        content = compress(content, encoding) if encoding else content
        return _response(content, media_type, status, headers or {}, encoding)

    @property
    def _encoding(self) -> str | None:
        return choose_encoding(self.http.headers.get("accept-encoding", ""))

    def asset(self) -> Response:
        """The script, style sheet or icon that the path names; browsers keep it for a year, since its name changes with
        its content. Raises NotFound."""
        asset = self.renderer.assets.get(self.path["name"])
        if asset is None:
            raise NotFound
        headers = {"Cache-Control": _A_YEAR, "Vary": "Accept-Encoding"}
        encoding = self._encoding
        content = compress_once(asset.content, encoding) if encoding else asset.content
        return _response(content, asset.media_type, 200, headers, encoding)

    def redirect(self, url: str) -> Response:
        """After a form: the browser asks for `url` with GET, and a reload repeats only that."""
        return RedirectResponse(url, 303, HEADERS)


def _response(
    content: bytes, media_type: str, status: int, headers: Mapping[str, str], encoding: str | None
) -> Response:
    encoded = {"Content-Encoding": encoding} if encoding else {}
    response = Response(content, status, media_type=media_type)
    response.raw_headers = [*_raw_headers(tuple({**headers, **encoded}.items())), *response.raw_headers]
    return response


@lru_cache(maxsize=64)
def _raw_headers(added: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    """The headers of every page with those of a response, as they are sent."""
    headers = {**HEADERS, **dict(added)}
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
