"""The HTTP client of the service. aiohttp, 120 modules and 10 MB, is imported when the first request leaves or in
`open`, and not at the start of a command or before a server listens.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guichet.http_client.address_guard import Network
from guichet.http_client.outcomes import MAX_BODY, NotSent, Response
from guichet.http_client.tls import tls_context

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

    from guichet.http_client.client import AiohttpClient


class HttpClient:
    """`client.AiohttpClient`, which says what the arguments are and what is raised; made at its first use."""

    def __init__(
        self,
        *,
        allow: Sequence[Network] = (),
        ca_file: Path | None = None,
        loopback: bool = False,
        user_agent: str = "Guichet/1.0",
        resolver: "AbstractResolver | None" = None,
    ) -> None:
        """Raises ValueError when `ca_file` cannot be read."""
        if ca_file is not None:
            tls_context(ca_file)
        self._options = {
            "allow": allow,
            "ca_file": ca_file,
            "loopback": loopback,
            "user_agent": user_agent,
            "resolver": resolver,
        }
        self._opening = asyncio.Lock()
        self._client: AiohttpClient | None = None
        self._closed = False

    async def open(self) -> "AiohttpClient":
        """Imports and reads, in a thread, what the first request would wait for: a tenth of a second."""
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(_make, self._options)
                if self._closed:
                    await self._client.aclose()
            return self._client

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,
        guarded: bool = True,
        max_bytes: int = MAX_BODY,
    ) -> Response:
        """One request, sent at most once. Any status is a response. Raises NotSent or Lost."""
        client = self._client or await self.open()
        return await client.request(
            method, url, headers=headers, body=body, timeout=timeout, guarded=guarded, max_bytes=max_bytes
        )

    def stop_connecting(self, tasks: Collection[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
        """Ends the requests of these tasks that are not connected yet: they raise NotSent. Returns their tasks."""
        return self._client.stop_connecting(tasks) if self._client else set()

    async def is_own_fault(self, error: NotSent, url: str) -> bool:
        """Whether a request to `url` failed because of a fault on our side."""
        return await (self._client or await self.open()).is_own_fault(error, url)

    async def unreachable_host(self, url: str) -> str | None:
        """The host of `url` if no guarded request would connect now; None when one could, as far as its name tells."""
        return await (self._client or await self.open()).unreachable_host(url)

    async def aclose(self) -> None:
        """Close every connection. Nothing can be sent afterwards."""
        self._closed = True
        if self._client is not None:
            await self._client.aclose()


def _make(options: dict[str, Any]) -> "AiohttpClient":
    from guichet.http_client.client import AiohttpClient  # noqa: PLC0415 - it imports aiohttp

    return AiohttpClient(**options)
