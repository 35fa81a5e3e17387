"""A merchant's server for the bench, as cheap as it can be: reads a request, notes when it came, answers.

    python -m bench.receiver PORT [SECONDS_BEFORE_EACH_ANSWER]

`GET /notes` hands over (and forgets) `[[arrived_at, delivery, settled_at or null], …]` in seconds since the epoch;
any other request is noted when it carries `X-Service-Delivery` and answered 200. It also serves as the trivial server
that shows what the load generator itself can do.
"""

import asyncio
import re
import sys
import time
from datetime import datetime
from typing import Any, Final, cast

import msgspec
import uvloop

_DELIVERY: Final = re.compile(rb"\r\n[Xx]-[Ss]ervice-[Dd]elivery: *([^\r]+)")
_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: *(\d+)")
_UPDATED: Final = re.compile(rb'"updated_at":"([^"]+)"')
_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"

notes: list[tuple[float, str, str | None]] = []


class Receiver(asyncio.Protocol):
    hang = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own, no subclass
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._take():
            pass

    def _take(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self._buffer[: end + 2]
        length = _LENGTH.search(head)
        size = end + 4 + (int(length[1]) if length else 0)
        if len(self._buffer) < size:
            return False
        request, self._buffer = self._buffer[:size], self._buffer[size:]
        self._answer(head, request)
        return True

    def _answer(self, head: bytes, request: bytes) -> None:
        if head.startswith(b"GET /notes"):
            self._transport.write(_json(_taken()))
            return
        if delivery := _DELIVERY.search(head):
            updated = _UPDATED.search(request)
            notes.append((time.time(), delivery[1].decode(), updated[1].decode() if updated else None))
        if self.hang:
            asyncio.get_running_loop().call_later(self.hang, self._late)
        else:
            self._transport.write(_OK)

    def _late(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_OK)


def _taken() -> list[Any]:
    taken, notes[:] = list(notes), []
    return [(at, delivery, datetime.fromisoformat(text).timestamp() if text else None) for at, delivery, text in taken]


def _json(value: object) -> bytes:
    body = msgspec.json.encode(value)
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def main(port: int, hang: float) -> None:
    Receiver.hang = hang
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))
