"""Names: a resolver with scripted answers, and a name server on a real UDP socket."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from aiohttp import AsyncResolver
from aiohttp.abc import AbstractResolver, ResolveResult

HEADER = struct.Struct("!6H")
_SERVFAIL, _NXDOMAIN = 2, 3


class ScriptedResolver(AbstractResolver):
    """Name service under the test's control: each name has a list of answers, the last one repeated."""

    def __init__(self, **names: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(found) for name, found in names.items()}
        self.lookups: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.lookups.append(host)
        found = self._answers.get(host)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "name unknown")
        addresses = found.pop(0) if len(found) > 1 else found[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""


class FakeNameServer(asyncio.DatagramProtocol):
    """Answers `shop.test` with 127.0.0.2, `*.failing.test` with SERVFAIL, `*.unknown.test` with NXDOMAIN, and never
    answers anything else. `lookups` counts queries by name."""

    def __init__(self) -> None:
        self.lookups: dict[str, int] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # asyncio's own is no subclass

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        identifier, *_ = HEADER.unpack_from(data)
        name, end = _read_name(data, HEADER.size)
        (kind,) = struct.unpack_from("!H", data, end)
        self.lookups[name] = self.lookups.get(name, 0) + 1
        for ending, code in ((".failing.test", _SERVFAIL), (".unknown.test", _NXDOMAIN)):
            if name.endswith(ending):
                head = HEADER.pack(identifier, 0x8180 | code, 1, 0, 0, 0)
                self._transport.sendto(head + data[HEADER.size : end + 4], addr)
        if name != "shop.test":
            return
        # An A record; for AAAA no record at all. The name of the record points to the question's (0xC00C).
        record = struct.pack("!3HIH4s", 0xC00C, 1, 1, 60, 4, socket.inet_aton("127.0.0.2")) if kind == 1 else b""
        head = HEADER.pack(identifier, 0x8180, 1, 1 if record else 0, 0, 0)
        self._transport.sendto(head + data[HEADER.size : end + 4] + record, addr)


def _read_name(data: bytes, start: int) -> tuple[str, int]:
    """A domain name in a query, and the position after it."""
    labels = []
    while size := data[start]:
        labels.append(data[start + 1 : start + 1 + size].decode().lower())
        start += 1 + size
    return ".".join(labels), start + 1


@asynccontextmanager
async def name_server() -> AsyncIterator[tuple[FakeNameServer, AsyncResolver]]:
    """With a resolver that queries it."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(FakeNameServer, local_addr=("127.0.0.1", 0))
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 1024 * 1024)
    port = transport.get_extra_info("sockname")[1]
    try:
        yield protocol, AsyncResolver(nameservers=[f"127.0.0.1:{port}"])
    finally:
        transport.close()
