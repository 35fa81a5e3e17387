"""One request for a page: its language, the addresses it links to, and the answer with the headers every page has."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from guichet.checkout import i18n
from guichet.checkout.render import Renderer, Switch
from guichet.server.content_encoding import choose_encoding, compress

#: Under this size compression gains nothing that fits a packet less.
_WORTH_COMPRESSING: Final = 600

#: On every answer of the pages. Addresses are secrets, so nothing is kept, framed, indexed or told to other sites.
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


class Visit:
    """`base` is the path part of the service's public address, without a slash at the end."""

    def __init__(self, request: Request, renderer: Renderer, base: str) -> None:
        self.request = request
        self.renderer = renderer
        self.base = base
        chosen = request.query_params.get("lang", "")
        self.chosen = chosen if chosen in i18n.LANGUAGES else None
        self.language = self.chosen or i18n.negotiate(request.headers.get("accept-language", ""))

    def href(self, path: str, **query: str | None) -> str:
        """`path` (absolute within the service, without its base) in the language the customer chose."""
        kept = {name: value for name, value in {**query, "lang": self.chosen}.items() if value}
        return self.base + path + (f"?{urlencode(kept)}" if kept else "")

    def say(self, key: str, **values: Any) -> Markup:
        return self.renderer.text(self.language, key, **values)

    def page(self, template: str, view: Any, status: int = 200, *, forms_to: str = "'self'") -> Response:
        """A page. `forms_to` names where its form may lead, redirects included."""
        other = next(language for language in i18n.LANGUAGES if language != self.language)
        asked = {name: value for name in ("mode",) if (value := self.request.query_params.get(name))}
        switch = Switch(
            language=other,
            name=self.renderer.text(other, "base.language"),
            href=f"?{urlencode({**asked, 'lang': other})}",
        )
        page = {
            "language": self.language,
            "switch": switch,
            "style": self.renderer.style,
            "script": f"{self.base}/pay/assets/{self.renderer.script.name}",
        }
        text = self.renderer.html(self.language, template, page=page, view=view)
        policy = (
            f"default-src 'none'; style-src {self.renderer.style_source}; script-src 'self'; connect-src 'self'; "
            f"img-src 'self' data:; form-action {forms_to}; base-uri 'none'; frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy, "Content-Language": self.language}
        return self.answer(text.encode(), "text/html; charset=utf-8", status, headers)

    def answer(
        self, content: bytes, media_type: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Anything, compressed as the browser accepts it."""
        sent = {**HEADERS, **(headers or {})}
        encoding = choose_encoding(self.request.headers.get("accept-encoding", ""))
        if len(content) >= _WORTH_COMPRESSING and encoding:
            content = compress(content, encoding)
            sent["Content-Encoding"] = encoding
        return Response(content, status, sent, media_type)

    def redirect(self, url: str) -> Response:
        """After a form: the browser asks for `url` with GET, and a reload repeats only that."""
        return RedirectResponse(url, 303, HEADERS)
