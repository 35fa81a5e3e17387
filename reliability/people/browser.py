"""One person's browser: cookies, redirects, and pages that are loaded again until somebody answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Final, cast
from urllib.parse import urlsplit

from multidict import CIMultiDictProxy

from reliability.api_client import ApiClient, Response
from tests.console.pages import Page

_REDIRECT: Final = 303
_NO_ANSWER: Final = (500, 502, 503, 504)


class NobodyAnswers(Exception):
    """A page could not be loaded for minutes."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a form was answered with, and the page that was shown then. `place`: where the answer itself sent the
    browser; the page may be another one, such as the sign-in of somebody whose session ended in between."""

    status: int
    page: Page
    place: str = ""

    @property
    def redirected(self) -> bool:
        return self.status == _REDIRECT


@dataclass
class Browser:
    api: ApiClient
    cookies: dict[str, str] = field(default_factory=dict)
    page: Page = field(default_factory=lambda: Page(0, "", "", {}))

    async def get(self, path: str) -> Page:
        """The page after all redirects. Raises NobodyAnswers."""
        for _ in range(8):
            response = await self._ask("GET", path, None, patience=120)
            if response is None:
                raise NobodyAnswers(path)
            if response.status != _REDIRECT:
                self.page = _page(path, response)
                return self.page
            path = _place(response)
        raise AssertionError(f"redirected in circles: {path}")

    async def post(self, path: str, fields: Mapping[str, str]) -> Answered | None:
        """Sends a form once. None: nobody answered, so that it may have been done or not."""
        response = await self._ask("POST", path, fields, patience=0)
        if response is None:
            return None
        if response.status == _REDIRECT:
            place = _place(response)
            return Answered(_REDIRECT, await self.get(place), place)
        self.page = _page(path, response)
        return Answered(response.status, self.page)

    async def _ask(self, method: str, path: str, form: Mapping[str, str] | None, patience: float) -> Response | None:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Sec-Fetch-Site": "same-origin", "User-Agent": "Firefox", "Cookie": cookies}
        response = await self.api.call(
            method, path, form=form, patience=patience, again=_NO_ANSWER, more_headers=headers
        )
        if response is not None:
            self._keep_cookies(response)
        return response

    def _keep_cookies(self, response: Response) -> None:
        for line in cast("CIMultiDictProxy[str]", response.headers).getall("Set-Cookie", []):
            for morsel in SimpleCookie(line).values():
                if morsel.value and morsel["max-age"] != "0":
                    self.cookies[morsel.key] = morsel.value
                else:
                    self.cookies.pop(morsel.key, None)


def _place(response: Response) -> str:
    parts = urlsplit(response.headers["Location"])
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _page(path: str, response: Response) -> Page:
    return Page(response.status, path, response.body.decode("utf-8", "replace"), response.headers, response.body)
