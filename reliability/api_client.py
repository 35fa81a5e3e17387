"""Calls of merchants and customers that survive what a trial breaks: they are repeated until somebody answers."""

import asyncio
import random
import ssl
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import msgspec

#: Seconds: longer than a request waits for a slow initiation (20), as the contract advises.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=40, sock_connect=5)
_PAUSES: Final = (0.05, 0.1, 0.2, 0.5)
#: Answers after which the same request may be sent again (docs/contract.md, "Errors").
AGAIN: Final = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Response:
    """`retries`: how many attempts before this one had no answer, or one that asks to try again."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    retries: int

    @property
    def data(self) -> Any:
        return msgspec.json.decode(self.body)["data"]

    @property
    def error_code(self) -> str:
        return str(msgspec.json.decode(self.body)["error"]["code"])


@dataclass
class ApiClient:
    """Sends each request to one of `base_urls`, and to the next one if that does not answer.

    `statuses` counts all answers and failures; `longest_outage` is the longest time in seconds without any answer while
    requests were waiting.
    """

    base_urls: Sequence[str]
    connections: int = 100
    #: What certificates are checked with; None: the system's authorities.
    tls: ssl.SSLContext | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    #: Answers that should not be, in words.
    faults: list[str] = field(default_factory=list)
    longest_outage: float = 0.0
    _session: aiohttp.ClientSession | None = None
    _last_answer_at: float = 0.0
    _calls: int = 0

    async def __aenter__(self) -> "ApiClient":
        connector = aiohttp.TCPConnector(limit=self.connections, ssl=self.tls or True)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar()
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def call(
        self,
        method: str,
        path: str,
        key: str | None = None,
        json: object = None,
        form: Mapping[str, str] | None = None,
        patience: float = 120.0,
        again: Collection[int] = AGAIN,
        more_headers: Mapping[str, str] | None = None,
    ) -> Response | None:
        """The first answer whose status is not in `again`; None if there was none for `patience` seconds. Without
        patience it is sent once."""
        headers = {"Accept-Encoding": "identity", **(more_headers or {})}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        body: Any = None if json is None else msgspec.json.encode(json)
        if body is not None:
            headers["Content-Type"] = "application/json"
        with self._waiting():
            return await self._repeat(method, path, headers, body if form is None else form, patience, again)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        if not self._calls:  # Nobody had asked, so nobody was left without an answer.
            self._last_answer_at = time.monotonic()
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    async def _repeat(
        self, method: str, path: str, headers: Mapping[str, str], body: Any, patience: float, again: Collection[int]
    ) -> Response | None:
        deadline = time.monotonic() + patience
        at, retries = random.randrange(len(self.base_urls)), 0
        while True:
            url = self.base_urls[(at + retries) % len(self.base_urls)] + path
            response = await self._send(method, url, headers, body, retries, again)
            if response is not None:
                return response
            if time.monotonic() > deadline:
                self.statuses["given up"] += 1
                return None
            await asyncio.sleep(_PAUSES[min(retries, len(_PAUSES) - 1)])
            retries += 1

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: Any, retries: int, again: Collection[int]
    ) -> Response | None:
        assert self._session is not None
        try:
            async with self._session.request(method, url, data=body, headers=headers, allow_redirects=False) as got:
                content = await got.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.statuses[type(error).__name__] += 1
            return None
        self.statuses[str(got.status)] += 1
        now = time.monotonic()
        self.longest_outage = max(self.longest_outage, now - self._last_answer_at)
        self._last_answer_at = now
        if got.status == 500 and b'"reference"' in content:
            # An answer like a 402: no route works, and the payment that it names is stored as failed.
            return Response(got.status, content, got.headers, retries)
        if got.status == 500:
            self.faults.append(f"{method} {url}: 500 {content[:200]!r}")
        if got.status in again:
            return None
        return Response(got.status, content, got.headers, retries)
