"""Sends hostile requests, many at once, and checks every answer."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from reliability.fuzz.checks import Violation, check
from reliability.fuzz.recorded import Probe
from reliability.fuzz.sockets import Answer, BrokenAnswer, Connection

_CONNECTIONS: Final = 24
#: Raises Violation for an answer that must not be.
Judge = Callable[[Probe, Sequence[Answer]], None]


@dataclass(eq=False)
class Violated(Exception):
    """The first request that was answered wrongly."""

    number: int
    probe: Probe
    reason: str
    answers: Sequence[Answer] = ()


@dataclass
class Sent:
    """What was sent and answered."""

    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)

    def count(self, probe: Probe, answers: Sequence[Answer]) -> None:
        self.kinds[probe.kind] += 1
        self.statuses.update(str(answer.status) for answer in answers)
        if not answers:
            self.statuses["closed or silent"] += 1


async def exchange(connection: Connection, probe: Probe) -> Sequence[Answer]:
    """What comes back for one request. Raises BrokenAnswer."""
    return [await connection.ask(probe.raw, probe.method)] if probe.whole else await connection.provoke(probe.raw)


async def send(
    port: int,
    probes: Iterable[tuple[int, Probe]],
    sent: Sent,
    progress: Callable[[], None],
    judge: Judge = check,
) -> None:
    """Sends every probe, many at once. Raises Violated."""
    waiting = iter(probes)
    async with asyncio.TaskGroup() as group:
        for _ in range(_CONNECTIONS):
            group.create_task(_sender(port, waiting, sent, progress, judge))


async def _sender(
    port: int, waiting: Iterator[tuple[int, Probe]], sent: Sent, progress: Callable[[], None], judge: Judge
) -> None:
    connection = Connection(port)
    try:
        for number, probe in waiting:
            answers: Sequence[Answer] = ()
            try:
                answers = await exchange(connection, probe)
                judge(probe, answers)
            except (Violation, BrokenAnswer, OSError) as error:
                raise Violated(number, probe, f"{type(error).__name__}: {error}", answers) from None
            sent.count(probe, answers)
            progress()
    finally:
        await connection.close()
