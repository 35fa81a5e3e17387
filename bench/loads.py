"""Runs loads against servers and computes statistics of the answers."""

import asyncio
import gzip
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bench.generator import Load, Outcome


@dataclass(frozen=True)
class LoadStats:
    """Statistics of one run: answers a second, and percentiles of their time in milliseconds."""

    per_second: float
    p50: float
    p95: float
    p99: float
    answers: int


#: `python -m bench --requests N`: every load of this process ends after so many requests.
most_requests: int | None = None
#: Seconds then, since the tests run beside it (.ci/run): only that all is answered counts.
_PATIENCE: Final = 120.0


class Wrong(Exception):
    """A server did not answer as it should, so its run has no statistics."""


def request(method: str, path: str, key: str, body: object = None, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole request. `body`: bytes as they are, anything else as JSON."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {key}"]
    lines += [f"{name}: {value}" for name, value in (headers or {"Content-Type": "application/json"}).items()]
    if method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def outcome(load: Load, expected: str = "2") -> Outcome:
    """Raises Wrong when an answer's status does not begin with `expected`, or one never came."""
    load = _shortened(load)
    found = await _run(load)
    wrong = {status: n for status, n in found.statuses.items() if not status.startswith(expected)}
    if wrong or found.missing > 0:
        raise Wrong(f"unexpected answers: {wrong}, {found.missing} missing of {len(found.latencies)}")
    if load.rate is None and load.most is not None and len(found.latencies) != load.most:
        raise Wrong(f"{len(found.latencies)} of {load.most} requests were answered")
    return found


async def overloading(load: Load) -> Outcome:
    """What a server does that may be asked for more than it can: failures are counted, not raised. With few requests
    (`most_requests`) there must be none."""
    return await (_run(load) if most_requests is None else outcome(load))


async def _run(load: Load) -> Outcome:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.generator", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate(msgspec.json.encode(load))
    if process.returncode:
        raise Wrong("the load generator failed")
    found = msgspec.json.decode(said, type=Outcome)
    if not found.latencies:
        raise Wrong("no answer began and ended within the measured seconds: measure longer, or with fewer connections")
    return found


def _shortened(load: Load) -> Load:
    if most_requests is None:
        return load
    if load.rate is None:
        most = min(load.most or most_requests, most_requests)
        return msgspec.structs.replace(load, most=most, seconds=600, warm_up=0)
    rate = max(load.rate, most_requests)  # Within a second.
    seconds = most_requests / rate
    return msgspec.structs.replace(load, rate=rate, seconds=seconds, warm_up=0, patience=_PATIENCE)


async def get(port: int, content: bytes, *, decompress: bool = True, status: int = 200) -> bytes:
    """The body of one answer, which must have this status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(content.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    if b" %d " % status not in head.partition(b"\r\n")[0]:
        raise Wrong(head.decode())
    return gzip.decompress(body) if decompress and b"content-encoding: gzip" in head.lower() else body


async def run(load: Load) -> LoadStats:
    found = await outcome(load)
    return load_stats(found.latencies, found.seconds)


def load_stats(latencies: Sequence[float], seconds: float) -> LoadStats:
    return LoadStats(
        per_second=len(latencies) / seconds,
        p50=percentile(latencies, 50),
        p95=percentile(latencies, 95),
        p99=percentile(latencies, 99),
        answers=len(latencies),
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100).__int__() - 1)] if ordered else float("nan")


def median(runs: Sequence[LoadStats]) -> LoadStats:
    """The median of each statistic over the runs."""
    return LoadStats(
        **{
            name: statistics.median(getattr(each, name) for each in runs)
            for name in ("per_second", "p50", "p95", "p99", "answers")
        }
    )
