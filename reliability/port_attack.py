"""Hostile connections against a real `guichet serve`: thousands that never finish a request, and endless heads.

`python -m reliability.port_attack` runs every variant: one address and many, with and without TLS, one process and two.
For each it prints how much memory the server grew, how long others waited meanwhile, and what was left afterwards
(docs/reliability.md, "Hostile connections"). Everything stays on the loopback interface and ends by itself.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import signal
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

import trustme

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.db import migrate
from guichet.server.connection_limits import BODY, HEAD, REFUSED
from guichet.settings import load, with_development_key
from reliability.processes import clean_environ

#: What an incomplete request may be: nothing at all, or a part of the head.
PARTIAL: Final = (
    b"",
    b"GET /v1/balance HTTP/1.1\r\nHost: localhost\r\nX-Filler: " + b"a" * 4000,
)
#: Or the head of a body that never comes.
NO_BODY: Final = b"POST /v1/payments HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n{"
#: Seconds after which an attack that does not end is given up.
PATIENCE: Final = 180
#: In the variants with TLS, so many attackers finish the handshake: each costs the attacker a key exchange, too.
FULL_HANDSHAKES: Final = 600
GROWTH_ALLOWED: Final = 32
ENDLESS_HEADS: Final = 20


@dataclass(frozen=True)
class Attack:
    """`addresses`: how many addresses of 127.0.0.0/8 it comes from; sizes of heads are in megabytes."""

    port: int
    tls: bool
    addresses: int
    connections: int
    largest_head: int
    large_heads: int
    bodies: bool

    def source(self, number: int) -> str:
        if self.addresses == 1:
            return "127.0.0.1"
        host = number % self.addresses
        return f"127.1.{host // 250}.{host % 250 + 1}"

    async def run(self, finished: Event, stop: Event) -> None:
        """`finished`: everything was sent; the connections are held until `stop`."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        held: list[object] = []
        heads = [
            asyncio.create_task(self._endless_head(megabytes))
            for megabytes in [self.largest_head, *[self.large_heads] * ENDLESS_HEADS]
        ]
        for first in range(0, self.connections, 200):
            numbers = range(first, min(first + 200, self.connections))
            held += await asyncio.gather(*(self._half_open(number) for number in numbers), return_exceptions=True)
        await asyncio.gather(*heads)
        finished.set()
        while not stop.is_set():
            await asyncio.sleep(0.1)

    async def _half_open(self, number: int) -> object:
        """A connection that is kept and never closed by the attacker."""
        loop = asyncio.get_running_loop()
        kinds = (*PARTIAL, NO_BODY) if self.bodies else PARTIAL
        text = kinds[number % len(kinds)]
        if self.tls and number < FULL_HANDSHAKES:
            pair = await asyncio.open_connection(
                "127.0.0.1", self.port, ssl=_trusting_anybody(), local_addr=(self.source(number), 0)
            )
            pair[1].write(text)
            return pair
        connection = socket.socket()
        connection.setblocking(False)
        connection.bind((self.source(number), 0))
        await loop.sock_connect(connection, ("127.0.0.1", self.port))
        if text and self.tls:
            text = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + text[:200]  # The beginning of a ClientHello.
        with suppress(OSError):
            await loop.sock_sendall(connection, text)
        return connection

    async def _endless_head(self, megabytes: int) -> None:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(
                "127.0.0.1",
                self.port,
                ssl=_trusting_anybody() if self.tls else None,
                local_addr=(self.source(megabytes), 0),
            )
            writer.write(b"GET /v1/balance HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")
            for _ in range(megabytes * 16):
                writer.write(b"a" * 65536)
                await writer.drain()


def _run_attack(attack: Attack, finished: Event, stop: Event) -> None:
    asyncio.run(attack.run(finished, stop))


def _trusting_anybody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass
class Others:
    """A merchant who pays meanwhile, once on a new connection and once on a kept one, in turn."""

    port: int
    tls: bool
    key: str
    new: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    async def pay_until(self, done: asyncio.Event) -> None:
        kept: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while not done.is_set():
            try:
                began = time.perf_counter()
                opened = await self._connect()
                await self._pay(*opened)
                self.new.append(time.perf_counter() - began)
                opened[1].close()
                kept = kept or await self._connect()
                began = time.perf_counter()
                await self._pay(*kept)
                self.kept.append(time.perf_counter() - began)
            except (OSError, EOFError, ValueError) as error:
                self.failed.append(repr(error))
                kept = None
            await asyncio.sleep(0.01)
        if kept:
            kept[1].close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = _trusting_anybody() if self.tls else None
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context)

    async def _pay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"amount": 5000, "operator": "mtn", "phone_number": "22997001234"}).encode()
        head = f"POST /v1/payments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        if not answer.startswith(b"HTTP/1.1 201"):
            raise ValueError(answer[:40])


@dataclass(frozen=True)
class Processes:
    """The server's processes."""

    pids: tuple[int, ...]

    @classmethod
    def of(cls, parent: int) -> "Processes":
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return cls((parent, *map(int, children)))

    def memory(self) -> float:
        """Resident megabytes."""
        lines = (line for pid in self.pids for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def descriptors(self) -> int:
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in self.pids)


@contextmanager
def _certificate(folder: Path) -> Iterator[Path]:
    file = folder / "server.pem"
    trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(file))
    yield file


@asynccontextmanager
async def _server(folder: Path, port: int, *, tls: bool, workers: int) -> AsyncIterator[tuple[Processes, str]]:
    environ = {"GUICHET_HOME": str(folder), "GUICHET_RATE_LIMIT": "0", "GUICHET_LOG_LEVEL": "error"}
    settings = with_development_key(load(environ))
    await migrate.upgrade(settings)
    async with service(settings) as opened:
        _, keys = await create_merchant(opened.ctx, "Others")
    arguments = ["-m", "guichet", "serve", "--port", str(port), "--workers", str(workers)]
    with _certificate(folder) as file, (folder / "log").open("wb") as log:
        arguments += ["--ssl-certfile", str(file)] if tls else []
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, env={**clean_environ(), **environ}, stdout=log, stderr=log
        )
        try:
            await _serving(port, tls=tls)
            await asyncio.sleep(3)  # All processes of --workers.
            yield Processes.of(process.pid), keys["test"]
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def _serving(port: int, *, tls: bool) -> None:
    for _ in range(200):
        with suppress(OSError):
            context = _trusting_anybody() if tls else None
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = await reader.readline()
            writer.close()
            if answer:
                return
        await asyncio.sleep(0.2)
    raise TimeoutError("the server did not start")


async def trial(attack: Attack, *, workers: int) -> bool:
    """One variant; True if the promise held."""
    with tempfile.TemporaryDirectory() as folder:
        async with _server(Path(folder), attack.port, tls=attack.tls, workers=workers) as (processes, key):
            calm = await _others(attack, key, seconds=5)
            memory, descriptors = processes.memory(), processes.descriptors()
            context = multiprocessing.get_context("spawn")
            finished, stop = context.Event(), context.Event()
            attacker = context.Process(target=_run_attack, args=(attack, finished, stop))
            attacker.start()
            meanwhile, done, peak = Others(attack.port, attack.tls, key), asyncio.Event(), 0.0
            paying = asyncio.create_task(meanwhile.pay_until(done))
            began = time.monotonic()
            while not finished.is_set() and time.monotonic() < began + PATIENCE:
                peak = max(peak, processes.memory())
                await asyncio.sleep(0.1)
            took = time.monotonic() - began
            done.set()
            await paying
            await asyncio.sleep((BODY if attack.bodies else HEAD).seconds + REFUSED.seconds + 1)
            left = processes.descriptors() - descriptors
            stop.set()
            attacker.join(30)
            attacker.kill()
    growth = peak - memory
    where = f"{'TLS' if attack.tls else 'plain'}, {attack.addresses} addresses, {workers} processes"
    print(f"{where}: the attack took {took:.0f} s; grew {growth:.1f} MB (from {memory:.0f}); {left} descriptors left")
    for name, others in (("calm", calm), ("attack", meanwhile)):
        kept, new = _percentiles(others.kept), _percentiles(others.new)
        print(f"  {name:<7} {len(others.new)} payments, new {new}, kept {kept}, {len(others.failed)} failed")
    print("  ", meanwhile.failed[:3], flush=True)
    return growth <= GROWTH_ALLOWED and not meanwhile.failed


async def _others(attack: Attack, key: str, seconds: float) -> Others:
    others, done = Others(attack.port, attack.tls, key), asyncio.Event()
    paying = asyncio.create_task(others.pay_until(done))
    await asyncio.sleep(seconds)
    done.set()
    await paying
    return others


def _percentiles(seconds: list[float]) -> str:
    ordered = sorted(seconds) or [0.0]
    p50, p99 = (ordered[len(ordered) * each // 100] * 1000 for each in (50, 99))
    return f"p50 {p50:.1f} p99 {p99:.1f} max {ordered[-1] * 1000:.0f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=21500)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--addresses", type=int, nargs="+", default=[1, 1000])
    parser.add_argument("--tls", choices=("yes", "no", "both"), default="both")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--bodies", action="store_true", help="a third of the connections sends all but the body")
    given = parser.parse_args()
    kept = True
    for workers in given.workers:
        for tls in {"yes": (True,), "no": (False,), "both": (False, True)}[given.tls]:
            for addresses in given.addresses:
                attack = Attack(
                    given.port, tls, addresses, given.connections, largest_head=200, large_heads=60, bodies=given.bodies
                )
                kept &= asyncio.run(trial(attack, workers=workers))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
