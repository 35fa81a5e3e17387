"""A `guichet serve` whose work is counted, and those who call it."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from bench import servers
from bench.budget.entry import shared
from bench.generator import COUNTER
from bench.loads import Wrong, get, request
from bench.measures.life import collected
from bench.servers import HOST
from guichet.settings import Settings

WARM_UP: Final = 300
#: Seconds.
_PATIENCE: Final = 300
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_SUMMARY: Final = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


@dataclass
class Counted:
    """The service, its process, the numbers that it shares with us (`entry.py`), where Callgrind writes."""

    port: int
    process: asyncio.subprocess.Process
    numbers: memoryview
    home: Path
    sent: int = 0

    async def ready(self) -> None:
        """Until its worker works: under Callgrind that takes longer than a connection may be idle."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                try:
                    await get(self.port, request("GET", "/readyz", ""))
                except Wrong:
                    await asyncio.sleep(0.5)
                else:
                    return

    async def call(self, requests: Sequence[bytes], count: int, at_once: int = 1) -> None:
        """Sends `count` requests, so many at any time; each must be answered by 2xx."""
        turns = iter(range(count))
        async with AsyncExitStack() as stack:
            callers = [await stack.enter_async_context(Caller(self)) for _ in range(at_once)]
            await asyncio.gather(*(caller.call_all(requests, turns) for caller in callers))

    async def live(self, request: bytes, count: int, receiver: int) -> None:
        """One payment after the other, each until its webhook has arrived."""
        async with Caller(self) as caller:
            for turn in range(count):
                await caller.call_all([request], [turn])
                await collected(receiver, 1, 60)

    async def instructions(self, what: str = "") -> int:
        """Since the last time that it was asked or that `counting` began."""
        await self._control(f"--dump={what}")
        dumps = list(self.home.glob("callgrind.*.*"))
        found = [_SUMMARY.search(dump.read_text()) for dump in dumps]
        for dump in dumps:
            dump.unlink()
        return sum(int(each[1]) for each in found if each)

    async def counting(self, *, on: bool) -> None:
        await self._control(f"--instr={'on' if on else 'off'}")

    async def _control(self, option: str) -> None:
        command = ["callgrind_control", option, str(self.process.pid)]
        nowhere = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*command, stdout=nowhere, stderr=nowhere)
        if await process.wait():
            raise RuntimeError("callgrind_control failed")


class Caller:
    """One connection that is kept alive."""

    def __init__(self, service: Counted) -> None:
        self._service = service

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(HOST, self._service.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def call_all(self, requests: Sequence[bytes], turns: Iterable[int]) -> None:
        for turn in turns:
            self._service.sent += 1
            self._service.numbers[0] += 1
            number = b"%0*d" % (len(COUNTER), self._service.sent)
            self._writer.write(requests[turn % len(requests)].replace(COUNTER, number))
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            if not head.startswith(b"HTTP/1.1 2") or length is None:
                raise Wrong(head.decode())
            await self._reader.readexactly(int(length[1]))


@asynccontextmanager
async def counted(
    settings: Settings, *options: str, callgrind: bool = False, from_start: bool = False
) -> AsyncIterator[Counted]:
    """`serve` with these options. `callgrind`: counts its instructions, `from_start` or when it is told to."""
    port, home = servers.free_port(), settings.home
    file = home / "numbers"
    file.write_bytes(bytes(16))
    command = [sys.executable, "-m", "bench.budget.entry", str(file), "serve", "--port", str(port), *options]
    if callgrind:
        begins = "yes" if from_start else "no"
        output = f"--callgrind-out-file={home}/callgrind.%p"
        command = ["valgrind", "--quiet", "--tool=callgrind", f"--instr-atstart={begins}", output, *command]
    environment = {**servers.variables(settings), "PYTHONHASHSEED": "0"}
    async with servers.program(command, port, environment, home / "serve.log") as process:
        yield Counted(port, process, shared(file), home)
