"""Contenders in turn, round after round, and the ratio of two of them in the same rounds."""

import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.generator import Load
from bench.loads import LoadStats, run
from bench.servers import HOST, Target

CONNECTIONS: Final = 32

#: One run: seconds, number of the round.
Runner = Callable[[float, int], Awaitable[LoadStats]]
#: The runs of each contender, in the order of the rounds.
Runs = dict[str, list[LoadStats]]


def against(target: Target, *contents: bytes) -> Runner:
    """One closed-loop run; the counter goes on from run to run, so that no external_id comes twice."""

    async def once(seconds: float, turn: int) -> LoadStats:
        load = Load(HOST, target.port, list(contents), seconds, 1.0, CONNECTIONS, first=turn * 10_000_000)
        return await run(load)

    return once


async def interleaved(contenders: Mapping[str, Runner], seconds: float, rounds: int) -> Runs:
    """A B C A B C …: what the machine does to one it does to all."""
    found: Runs = {name: [] for name in contenders}
    for turn in range(rounds):
        for name, once in contenders.items():
            found[name].append(await once(seconds, turn + 1))
    return found


@dataclass(frozen=True)
class Ratio:
    """Of two rates that were measured in the same rounds. `times`: the median of the rounds' ratios; `spread`: how far
    apart these lie, as a part of it; `mine`, `other`: the medians of the rates."""

    times: float
    spread: float
    mine: float
    other: float


def paired(mine: Sequence[float], other: Sequence[float]) -> Ratio:
    ratios = [one / two for one, two in zip(mine, other, strict=True)]
    times = statistics.median(ratios)
    spread = (max(ratios) - min(ratios)) / times
    return Ratio(times, spread, statistics.median(mine), statistics.median(other))


def rates(runs: Sequence[LoadStats]) -> list[float]:
    return [each.per_second for each in runs]
