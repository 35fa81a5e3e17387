"""What a payment asks of PostgreSQL: a proxy before the server reads the protocol that goes through it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from bench import servers
from bench.budget.service import counted
from bench.measures.life import PAID, receiver
from bench.measures.posting import create

#: Requests before those that are counted.
WARM_UP: Final = 100
#: Seconds.
IDLE: Final = 4


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
                found |= await _of_one(server, traffic, partial(service.call, [post], count), "a POST", count)
            async with counted(settings) as service:
                paid = create(merchant.key, phone_number=PAID)
                service.sent = 1_000_000
                await service.live(paid, WARM_UP, port)
                lives = partial(service.live, paid, count, port)
                found |= await _of_one(server, traffic, lives, "a whole life", count)
    return found


async def _state(server: str, traffic: Traffic) -> tuple[float, ...]:
    """Statements, round trips, bytes of WAL and seconds since some moment."""
    position = await servers.sql(server, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
    return traffic.statements, traffic.round_trips, int(position[0][0]), time.monotonic()


async def _of_one(
    server: str, traffic: Traffic, work: Callable[[], Awaitable[None]], name: str, count: int
) -> dict[str, float]:
    """Without what the service does by the second, as it is measured beforehand."""
    states = [await _state(server, traffic)]
    for each in (lambda: asyncio.sleep(IDLE), work):
        await each()
        states.append(await _state(server, traffic))
    idle, busy = ([new - old for old, new in zip(*pair, strict=True)] for pair in pairwise(states))
    names = ("statements", "round trips", "bytes of WAL")
    return {
        f"PostgreSQL: {what} of {name}": (all_of_it - beside * busy[-1] / idle[-1]) / count
        for what, beside, all_of_it in zip(names, idle, busy, strict=False)
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
