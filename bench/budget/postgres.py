"""What a payment asks of PostgreSQL: a proxy before the server reads the protocol that goes through it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bench import servers
from bench.budget.service import counted
from bench.measures.life import PAID, receiver
from bench.measures.posting import create

#: Requests before those that are counted.
WARM_UP = 50


@dataclass
class Traffic:
    """`statements`: executed. `round_trips`: waits for the server."""

    statements: int = 0
    round_trips: int = 0

    def read(self, kind: bytes) -> None:
        self.statements += kind in (b"E", b"Q")
        self.round_trips += kind in (b"S", b"Q", b"H")


async def measure(home: Path, count: int) -> dict[str, float]:
    found: dict[str, float] = {}
    with servers.postgres() as server:
        for setting in ("autovacuum = off", "full_page_writes = off", "checkpoint_timeout = '1h'"):
            await servers.sql(server, f"ALTER SYSTEM SET {setting}")
        await servers.sql(server, "SELECT pg_reload_conf()")
        url = await servers.new_database(server, "budget")
        async with receiver() as port, proxy(url) as (address, traffic):
            settings = servers.settings_for(home, address)
            merchant = (await servers.prepare(settings, webhook=f"http://127.0.0.1:{port}/hook"))[0]
            async with counted(settings, "--no-worker") as service:
                post = create(merchant.key)
                await service.call([post], WARM_UP)
                before = await _state(server, traffic)
                await service.call([post], count)
                found |= await _difference("a POST", before, server, traffic, count)
            async with counted(settings) as service:
                paid = create(merchant.key, phone_number=PAID)
                service.sent = 1_000_000
                await service.live(paid, WARM_UP, port)
                before = await _state(server, traffic)
                await service.live(paid, count, port)
                found |= await _difference("a whole life", before, server, traffic, count)
    return found


async def _state(server: str, traffic: Traffic) -> tuple[int, int, int]:
    position = await servers.sql(server, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
    return traffic.statements, traffic.round_trips, int(position[0][0])


async def _difference(
    name: str, before: tuple[int, int, int], server: str, traffic: Traffic, count: int
) -> dict[str, float]:
    after = await _state(server, traffic)
    names = ("statements", "round trips", "bytes of WAL")
    return {
        f"PostgreSQL: {what} of {name}": (new - old) / count
        for what, old, new in zip(names, before, after, strict=True)
    }


@asynccontextmanager
async def proxy(url: str) -> AsyncIterator[tuple[str, Traffic]]:
    """The address to use in place of `url`, and what goes through it."""
    parts, traffic, port = urlsplit(url), Traffic(), servers.free_port()
    folder = parse_qs(parts.query)["host"][0]

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")
        back = asyncio.create_task(_copied(theirs, writer))
        try:
            await _requests(reader, ours, traffic)
        except (asyncio.IncompleteReadError, ConnectionError):
            ours.close()
        await back

    server = await asyncio.start_server(connected, servers.HOST, port)
    async with server:
        yield f"postgresql://{parts.username}@{servers.HOST}:{port}{parts.path}", traffic


async def _requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, traffic: Traffic) -> None:
    started = False
    while True:
        kind = await reader.readexactly(1) if started else b""
        size = await reader.readexactly(4)
        body = await reader.readexactly(int.from_bytes(size) - 4)
        writer.write(kind + size + body)
        if started:
            traffic.read(kind)
        else:  # A question for TLS or the like comes before the message that starts the session: version 3.
            started = body[:2] == b"\x00\x03"


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while content := await reader.read(65536):
        writer.write(content)
    writer.close()
