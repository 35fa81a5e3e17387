"""Passes a webhook on to a developer's own server, and shows what it answers."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer
from rich.text import Text

from guichet.domain.events import ANSWER_TIMEOUT
from guichet.http_client import HttpClient, HttpClientError, Lost
from guichet.printable import printable

#: Bytes of an answer that are shown.
_SHOWN: Final = 200


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise typer.BadParameter("an http or https address is expected, such as http://localhost:3000/hook.")
    return text


ForwardTo = Annotated[
    str | None,
    typer.Option("--forward-to", parser=_address, metavar="URL", help="Your own server; http and localhost will do."),
]


@dataclass(frozen=True, slots=True)
class Forwarded:
    """What a developer's server did with one event. `status`: None when it gave none; then `text` says why, otherwise
    it is the beginning of the body."""

    status: int | None
    milliseconds: int
    text: str

    @property
    def acknowledged(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def line(self) -> Text:
        status = "no answer" if self.status is None else str(self.status)
        line = Text.assemble("          → ", (status, "green" if self.acknowledged else "red"))
        return line.append(f"  {self.milliseconds} ms  {printable(self.text)}".rstrip())


def forwarding_client() -> HttpClient:
    """Reaches this machine too, with certificates that nobody verifies there."""
    return HttpClient(loopback=True)


async def forward(client: HttpClient, url: str, headers: Mapping[str, str], body: bytes) -> Forwarded:
    """Posts an event once, to an address that the developer chose. Never raises for what the server does."""
    began = time.perf_counter()
    status: int | None
    try:
        response = await client.request(
            "POST", url, headers=headers, body=body, timeout=ANSWER_TIMEOUT, guarded=False, max_bytes=_SHOWN
        )
        status, text = response.status, response.body.decode(errors="replace")
    except Lost as error:
        status, text = error.status, str(error)
    except HttpClientError as error:
        status, text = None, str(error)
    return Forwarded(status, round((time.perf_counter() - began) * 1000), text)
