"""An answer's head and body leave together.

uvicorn writes them apart, and uvloop sends each write at once: two packets, two system calls, two wake-ups of whoever
waits for them.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Sending(HttpToolsProtocol):
    """uvicorn's protocol over a transport that sends once for each turn of the loop."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(_Together(transport))  # type: ignore[arg-type]


class _Together(asyncio.Transport):
    """What is written in one turn is sent as one. Everything else is the transport's own."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: list[bytes] = []
        self._call_soon = asyncio.get_running_loop().call_soon
        self.is_closing = transport.is_closing  # type: ignore[method-assign]
        self.get_extra_info = transport.get_extra_info  # type: ignore[method-assign]
        self.pause_reading = transport.pause_reading  # type: ignore[method-assign]
        self.resume_reading = transport.resume_reading  # type: ignore[method-assign]
        self.set_protocol = transport.set_protocol  # type: ignore[method-assign]

    def write(self, data: Any) -> None:
        if not self._held:
            self._call_soon(self._send)
        self._held.append(data)

    def _send(self) -> None:
        if self._held:
            held, self._held = self._held, []
            self._transport.write(b"".join(held))

    def close(self) -> None:
        self._send()
        self._transport.close()
