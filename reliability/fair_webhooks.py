"""How long a good merchant's webhooks wait for their first attempt beside merchants whose servers hang.

    python -m reliability.fair_webhooks [--hanging 50] [--backlog 200] [--rate 20] [--seconds 20] [--port 22100]

On both databases: one service with its worker, first with the good merchant alone, then with the others beside it, each
with a backlog towards a server that never answers. The clock starts when an event is queued and stops when the good
merchant's server has the request. Loopback only; it ends by itself.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from bench import servers
from bench.loads import percentile
from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import Service, service
from guichet.clock import SystemClock
from guichet.domain.ids import MerchantId
from guichet.logs import configure_logs
from guichet.settings import Settings
from guichet.webhooks import outbox

_HEAD: Final = b"X-Service-Delivery: "
_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class _Receiver:
    """A merchant's server: notes when each delivery arrived, and answers at once or never."""

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers
        self.arrived: dict[str, float] = {}
        self._open: set[asyncio.StreamWriter] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                delivery = head.partition(_HEAD)[2].partition(b"\r\n")[0].decode()
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                await reader.readexactly(length)
                self.arrived[delivery] = asyncio.get_running_loop().time()
                if self._answers:
                    writer.write(_OK)
                    await writer.drain()
        self._open.discard(writer)
        writer.close()


@asynccontextmanager
async def _listening(receiver: _Receiver, port: int) -> AsyncIterator[None]:
    server = await asyncio.start_server(receiver, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()


async def _queue(opened: Service, merchant: MerchantId, url: str, count: int) -> list[str]:
    now = SystemClock().now()
    new = [outbox.new_event(merchant, "test", "webhook.test", {"message": "…"}, now) for _ in range(count)]
    async with opened.ctx.db.transaction() as tx:
        await outbox.queue_events(tx, new, url)
    opened.ctx.wakeups.deliveries.set()
    return [each.reference for each in new]


async def _good(
    opened: Service, merchant: MerchantId, url: str, receiver: _Receiver, wanted: argparse.Namespace
) -> str:
    """p50, p99 and the longest wait in milliseconds of `rate` webhooks a second for `seconds`."""
    loop = asyncio.get_running_loop()
    queued: dict[str, float] = {}
    for _ in range(int(wanted.rate * wanted.seconds)):
        began = loop.time()
        (reference,) = await _queue(opened, merchant, url, 1)
        queued[reference] = began
        await asyncio.sleep(max(0.0, 1 / wanted.rate - (loop.time() - began)))
    async with asyncio.timeout(60):
        while not queued.keys() <= receiver.arrived.keys():
            await asyncio.sleep(0.01)
    waits = [(receiver.arrived[each] - began) * 1000 for each, began in queued.items()]
    return f"p50 {percentile(waits, 50):.1f} ms, p99 {percentile(waits, 99):.1f} ms, longest {max(waits):.1f} ms"


async def _measure(settings: Settings, name: str, wanted: argparse.Namespace) -> None:
    good, hanging = _Receiver(answers=True), _Receiver(answers=False)
    async with _listening(good, wanted.port), _listening(hanging, wanted.port + 1), service(settings) as opened:
        merchant, _ = await create_merchant(opened.ctx, "Good")
        url = f"http://127.0.0.1:{wanted.port}/hook"
        worker = opened.worker()
        worker.start()
        print(f"{name}, alone: {await _good(opened, merchant.id, url, good, wanted)}", flush=True)
        for number in range(wanted.hanging):
            other, _ = await create_merchant(opened.ctx, f"Hanging {number}")
            address = f"http://shop{number}.localhost:{wanted.port + 1}/hook"
            await _queue(opened, other.id, address, wanted.backlog)
        measured = await _good(opened, merchant.id, url, good, wanted)
        beside = f"{wanted.hanging} merchants that hang ({len(hanging.arrived)} attempts)"
        print(f"{name}, beside {beside}: {measured}", flush=True)
        await worker.stop(grace=0)


async def main(wanted: argparse.Namespace) -> None:
    configure_logs("error", machine_readable=True)
    with servers.folder() as home, servers.postgres() as server:
        databases = {
            "SQLite": servers.settings_for(home / "sqlite"),
            "PostgreSQL": servers.settings_for(home / "postgresql", await servers.new_database(server, "fair")),
        }
        for name, settings in databases.items():
            await servers.prepare(settings, 0)
            await _measure(settings, name, wanted)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hanging", type=int, default=50)
    parser.add_argument("--backlog", type=int, default=200)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--port", type=int, default=22100)
    asyncio.run(main(parser.parse_args()))
