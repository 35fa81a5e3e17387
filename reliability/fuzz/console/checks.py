"""What every answer of the console must satisfy, whatever was asked (docs/reliability.md, "Hostile input")."""

import csv
import gzip
import hashlib
import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import unquote_to_bytes

from guichet.pages.page_request import HEADERS as PAGE_HEADERS
from reliability.fuzz.checks import Violation, check_any, check_page, check_refusal_of_port, is_refusal_of_port
from reliability.fuzz.console.requests import PageProbe
from reliability.fuzz.console.stock import Stock
from reliability.fuzz.recorded import Probe
from reliability.fuzz.sockets import Answer
from tests.console.page_rules import faults_of
from tests.console.pages import Page

_MARKUP: Final = re.compile(
    rb"<zq7|<script>zq7|<img src=x|<svg/onload|<a href=javascript|<b>zq7|<!--zq7", re.IGNORECASE
)
#: 6007 × 7: some template has been filled in.
_CALCULATED: Final = re.compile(rb"(?<![\w-])42049(?![\w-])")
#: NUL, what terminals obey, and what turns the direction of a text. A field may repeat them to who typed them.
_CONTROLS: Final = re.compile(rb"[\x00\x1b]|\xe2\x80\xae|\xe2\x81\xa6")
_NUMBER: Final = re.compile(r"-?[0-9][0-9.,\s]*")
_ASSETS: Final = "/console/assets/"
_COOKIES: Final = (
    "__Host-guichet-session=",
    "__Host-guichet-device=",
    "__Host-guichet-passkey=",
    "__Host-guichet-payment=",
    "__Host-guichet-done=",
)


class PageChecks:
    """`foreign`: the merchant of which nobody of the own one may learn anything."""

    def __init__(self, public_url: str, foreign: Stock, secrets: Sequence[str]) -> None:
        self._public_url = public_url
        self._hidden = (foreign.word.encode(), *(each.encode() for each in secrets))
        self._known: dict[bytes, list[str]] = {}

    def check(self, probe: Probe, answers: Sequence[Answer]) -> None:
        """Raises Violation."""
        for raw in answers:
            check_any(raw)
            answer = _plain(raw)
            if is_refusal_of_port(answer) and not _is_html(answer):
                check_refusal_of_port(answer)
                continue
            assert isinstance(probe, PageProbe)
            if probe.whole:
                self._check_allowed(probe, answer)
            self._check_page(probe, answer)
            self._check_hidden(probe, answer)

    def _check_allowed(self, probe: PageProbe, answer: Answer) -> None:
        where = answer.header("location") or ""
        if answer.status not in probe.allowed:
            raise Violation(f"status {answer.status} {where}, not {probe.allowed}: {answer.body[-400:]!r}")
        to_sign_in = where.partition("?")[0] == "/console/sign-in"
        if probe.person and to_sign_in:
            raise Violation(f"the session of {probe.person} has ended")
        if probe.to_sign_in and not to_sign_in:
            raise Violation(f"nobody is signed in, but is sent to {where!r}")
        if where and not re.fullmatch(r"/(console|admin)(?![\w-])[^\\\s]*", where):
            raise Violation(f"a redirect to {where!r}")

    def _check_page(self, probe: PageProbe, answer: Answer) -> None:
        target = probe.target.partition("?")[0]
        if not probe.whole or (target.startswith(_ASSETS) and answer.status == 200):
            return
        if target.startswith(("/console/", "/admin/")) or target in ("/console", "/admin"):
            check_page(answer)
        for name, value in answer.headers:
            if name == "set-cookie":
                self._check_cookie(probe, value)
            if name in {each.lower() for each in PAGE_HEADERS} and _CONTROLS.search(value.encode()):
                raise Violation(f"an odd header: {value!r}")
        kind = answer.header("content-type") or ""
        if _is_html(answer):
            self._check_html(answer)
            control = _CONTROLS.search(answer.body)
            if control and control[0] not in unquote_to_bytes(probe.raw):
                shown = answer.body[max(0, control.start() - 80) : control.end() + 80]
                raise Violation(f"a page of {answer.status} shows a control character: {shown!r}")
        elif kind.startswith("text/csv"):
            _check_csv(answer.body)
        elif answer.body.startswith(b"PK"):
            self._check_sheets(answer.body)

    def _check_cookie(self, probe: PageProbe, value: str) -> None:
        if not value.startswith(_COOKIES) or not all(
            each in value.lower() for each in ("secure", "httponly", "samesite=lax")
        ):
            raise Violation(f"a cookie that is none of ours: {value!r}")
        if not probe.person and value.startswith(_COOKIES[0]) and "max-age=0" not in value.lower():
            raise Violation("a session for somebody who is nobody")

    def _check_html(self, answer: Answer) -> None:
        # Refusals are all alike.
        digest = hashlib.sha256(answer.body).digest()
        if digest not in self._known:
            if len(self._known) > 5000:
                self._known.clear()
            headers = {
                "Content-Type": "text/html",
                "Content-Security-Policy": answer.header("content-security-policy") or "",
            }
            page = Page(answer.status, "", answer.body.decode("utf-8", "replace"), headers, answer.body)
            self._known[digest] = faults_of(page, self._public_url) + _written(answer.body)
        if faults := self._known[digest]:
            raise Violation(f"a page of {answer.status}: {faults[:3]}")

    def _check_hidden(self, probe: PageProbe, answer: Answer) -> None:
        if not probe.hides:
            return
        content = answer.body + "".join(value for _, value in answer.headers).encode()
        for hidden in self._hidden:
            if hidden in content and hidden not in probe.raw:
                at = content.index(hidden)
                raise Violation(f"it shows {hidden!r}: {content[max(0, at - 100) : at + 100]!r}")

    def _check_sheets(self, content: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(content)) as book:
            for name in book.namelist():
                sheet = book.read(name)
                if b"<f>" in sheet or b"<f " in sheet:
                    raise Violation(f"a formula in {name}")
                if any(hidden in sheet for hidden in self._hidden):
                    raise Violation(f"{name} shows what is foreign")


def _written(content: bytes) -> list[str]:
    """What came back as it was typed."""
    patterns = {"markup": _MARKUP, "a calculated template": _CALCULATED}
    found = {name: pattern.search(content) for name, pattern in patterns.items()}
    return [f"{name}: {content[max(0, at.start() - 60) : at.end() + 60]!r}" for name, at in found.items() if at]


def _check_csv(content: bytes) -> None:
    text = content.decode("utf-8-sig")
    for row in csv.reader(io.StringIO(text), delimiter=";" if ";" in text.partition("\n")[0] else ","):
        for cell in row:
            if cell[:1] in ("=", "+", "@", "\t", "\r") or (cell[:1] == "-" and not _NUMBER.fullmatch(cell)):
                raise Violation(f"a formula in a file: {cell[:100]!r}")


def _plain(answer: Answer) -> Answer:
    """The answer as the application wrote it."""
    packed = answer.header("content-encoding") == "gzip"
    return replace(answer, body=gzip.decompress(answer.body)) if packed else answer


def _is_html(answer: Answer) -> bool:
    return (answer.header("content-type") or "").startswith("text/html")
