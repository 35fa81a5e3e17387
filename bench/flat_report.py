"""Seeds and measures growing numbers of payments side by side, and writes `bench/results_flat.md`."""

from pathlib import Path
from typing import Final

from bench import seed, servers
from bench.flat import RATE, Grown, measure
from bench.results import machine
from guichet.settings import Settings

FLAT: Final = Path(__file__).parent / "results_flat.md"


async def growing(sizes: list[int], rounds: int, *, sqlite: bool, postgresql: bool) -> None:
    parts = []
    with servers.folder() as home:
        if sqlite:
            of = [(n, servers.settings_for(home / str(n))) for n in sizes]
            parts.append(await _grown("SQLite", of, rounds))
        if postgresql:
            with servers.postgres() as server:
                of = [
                    (n, servers.settings_for(home / "pg", await servers.new_database(server, f"flat_{n}")))
                    for n in sizes
                ]
                parts.append(await _grown("PostgreSQL", of, rounds))
    _write(parts, rounds)


async def _grown(name: str, of: list[tuple[int, Settings]], rounds: int) -> str:
    seeded = [(count, settings, await seed.seed(settings, count)) for count, settings in of]
    return _table(name, await measure(seeded, rounds))


def _write(parts: list[str], rounds: int) -> None:
    head = (
        f"# Cost as the payments grow\n\n{machine()}\n\nOne merchant holds all payments (`python -m bench flat`). "
        f"Open loop, {RATE:g} requests a second, all sizes at the same time, median of {rounds} rounds. "
        "Target: at most 2.\n\n"
    )
    FLAT.write_text(head + "\n\n".join(parts) + "\n")
    print(FLAT.read_text())


def _table(title: str, found: Grown) -> str:
    """Markdown: milliseconds at each size, and the largest against the smallest."""
    sizes = sorted(next(iter(found.values())))
    heads = " | ".join(f"{size:,}".replace(",", " ") for size in sizes)
    lines = [
        f"| {title}: p95 (p50) in ms | {heads} | p95, largest ÷ smallest | p50, the same | at most 2 |",
        "|---|" + "---|" * (len(sizes) + 3),
    ]
    for name, by in found.items():
        cells = " | ".join(f"{by[size].p95:.1f} ({by[size].p50:.1f})" for size in sizes)
        most, least = by[sizes[-1]], by[sizes[0]]
        times = most.p95 / least.p95
        verdict = "yes" if times <= 2 else "**no**"
        lines.append(f"| {name} | {cells} | {times:.2f} | {most.p50 / least.p50:.2f} | {verdict} |")
    return "\n".join(lines)
