"""Live payments through the production layout, at rates that it may not reach: their time, and the processor's."""

import os
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.generator import Load
from bench.layout import Layout, production_layout
from bench.loads import outcome, overloading, percentile
from bench.measures.life import collected, receiver
from bench.measures.posting import create_live
from bench.servers import HOST

LABEL: Final = "live payments in the documented production layout"
#: Payments a second.
RATES: Final = (50.0, 100.0, 200.0)
#: The rate that must be reached; milliseconds of p99, and of the primary's processor for each payment.
_MUST: Final = (200.0, 150.0, 3.0)
_CONNECTIONS: Final = 128
#: Payments a second, and seconds, before what is measured: each connection of the primary plans a statement up to six
#: times, so that fifty payments left a second or two of planning to the first rates.
_WARM_UP: Final = (50.0, 16.0)
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Run:
    """Milliseconds; `processor`: of each part, a payment."""

    p50: float
    p99: float
    sent: int
    failed: int
    processor: dict[str, float]


@dataclass(frozen=True)
class Live:
    """The medians of the rounds at one rate; `failed` of `sent`: of all rounds."""

    rate: float
    p50: float
    p99: float
    sent: int
    failed: int
    processor: dict[str, float]

    def cells(self) -> tuple[str, str, bool | None]:
        """Must reach, measured, reached."""
        rate, p99, primary = _MUST
        parts = ", ".join(f"{name} {each:.1f}" for name, each in self.processor.items())
        measured = (
            f"p50 {self.p50:.0f} ms, p99 {self.p99:.0f} ms, {self.failed} of {self.sent} failed; "
            f"ms of the processor a payment: {parts}"
        )
        if self.rate != rate:
            return "p50, p99, failures, the primary's processor", measured, None
        reached = self.p99 <= p99 and not self.failed and self.processor["primary"] <= primary
        return f"p99 ≤ {p99:g} ms, none failed, primary ≤ {primary:g} ms a payment", measured, reached


async def measure(home: Path, seconds: float, rounds: int) -> list[Live]:
    """Each rate in turn, for twice `seconds`. A payment is over when its webhook has arrived."""
    async with receiver() as port, production_layout(home, f"http://{HOST}:{port}/hook") as layout:
        warm_up = _load(layout, *_WARM_UP, 0)
        await collected(port, len((await outcome(warm_up)).latencies), 20)
        runs: dict[float, list[_Run]] = {rate: [] for rate in RATES}
        for turn in range(rounds):
            for number, rate in enumerate(RATES):
                load = _load(layout, rate, 2 * seconds, 1 + turn * len(RATES) + number)
                runs[rate].append(await _one(layout, port, load))
    return [_medians(rate, found) for rate, found in runs.items()]


def _load(layout: Layout, rate: float, seconds: float, number: int) -> Load:
    requests, first = [create_live(layout.merchant.live_key)], number * 1_000_000
    return Load(HOST, layout.port, requests, seconds, 0, _CONNECTIONS, rate, first=first, ca_file=str(layout.ca_file))


async def _one(layout: Layout, receiver_port: int, load: Load) -> _Run:
    before = _processor(layout)
    sent = await overloading(load)
    accepted = sent.statuses.get("201", 0)
    await collected(receiver_port, accepted, 20)
    used = {name: 1000 * (after - before[name]) / accepted for name, after in _processor(layout).items()}
    count = len(sent.latencies) + sent.missing
    return _Run(percentile(sent.latencies, 50), percentile(sent.latencies, 99), count, count - accepted, used)


def _medians(rate: float, runs: list[_Run]) -> Live:
    def median(name: str) -> float:
        return float(statistics.median(getattr(each, name) for each in runs))

    processor = {name: statistics.median(each.processor[name] for each in runs) for name in runs[0].processor}
    sent, failed = sum(each.sent for each in runs), sum(each.failed for each in runs)
    return Live(rate, median("p50"), median("p99"), sent, failed, processor)


def _processor(layout: Layout) -> dict[str, float]:
    """Seconds that each part has used so far."""
    return {name: sum(map(processor_seconds, pids)) for name, pids in layout.processes.items()}


def processor_seconds(pid: int) -> float:
    """Of a process and all that it started, also what has ended."""
    folder = Path("/proc", str(pid))
    # The program's name, in brackets, may have spaces. utime, stime, and those of children that were waited for.
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    children = (folder / "task" / str(pid) / "children").read_text().split()
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(_or_nothing, children))


def _or_nothing(pid: str) -> float:
    """A process that ends just now is its parent's from then on."""
    try:
        return processor_seconds(int(pid))
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
