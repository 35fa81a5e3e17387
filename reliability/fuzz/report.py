"""What the trial prints, and writes into docs/reliability.md."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Final

from reliability.fuzz.exchange import Sent
from reliability.fuzz.trial import Found

_PAGE: Final = Path("docs/reliability.md")
_BEGIN: Final = "<!-- figures: fuzz -->"
_END: Final = "<!-- /figures -->"
_LIBRARIES: Final = ("uvicorn", "httptools", "starlette", "aiohttp", "schemathesis", "hypothesis")


def table(found: Sequence[Found]) -> str:
    """Markdown: one column for each database."""
    rows: list[tuple[str, list[str]]] = [
        ("Requests sent", [number(each.sent.kinds.total()) for each in found]),
        ("Hostile answers to our own calls", [number(_hostile_answers(each)) for each in found]),
        ("Answers 5xx", [number(server_errors(each.sent)) for each in found]),
        ("Answers outside the envelope, or broken", [str(int(each.violated is not None)) for each in found]),
        ("Errors in the service's log, wrong payments, other faults", [str(len(each.faults)) for each in found]),
        ("Live payments afterwards", [_states(each.agreement.payments) for each in found]),
        ("Live refunds afterwards", [_states(each.agreement.refunds) for each in found]),
        ("Audit of the ledger", ["clean" if each.audit_is_clean else "not clean" for each in found]),
        (
            "Resident memory before → after, MB",
            [change(each.before.megabytes, each.after.megabytes) for each in found],
        ),
        ("Descriptors before → after", [f"{each.before.descriptors} → {each.after.descriptors}" for each in found]),
    ]
    for kind in sorted({kind for each in found for kind in each.sent.kinds}):
        rows.append((f"Requests: {kind}", [number(each.sent.kinds[kind]) for each in found]))
    for status in sorted({status for each in found for status in each.sent.statuses}):
        rows.append((f"Answered: {status}", [number(each.sent.statuses[status]) for each in found]))
    for kind in sorted({kind for each in found for kind in each.answered}):
        rows.append((f"Our calls answered by {kind}", [number(each.answered.get(kind, 0)) for each in found]))
    return markdown([each.database for each in found], rows)


def markdown(columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """`rows`: a name and a cell for each column."""
    lines = ["| |" + "".join(f" {each} |" for each in columns), "|---|" + "---:|" * len(columns)]
    return "\n".join([*lines, *(f"| {name} |" + "".join(f" {cell} |" for cell in cells) for name, cells in rows)])


def write(found: Sequence[Found], seed: int, seconds: float) -> None:
    """Puts the figures into the section "Hostile input"."""
    put(_BEGIN, f"{said(seed, seconds, _LIBRARIES)}\n\n{table(found)}")


def said(seed: int, seconds: float, libraries: Sequence[str]) -> str:
    """When, with what and for how long."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    versions = ", ".join(f"{name} {version(name)}" for name in libraries)
    day = datetime.now(UTC).date().isoformat()
    return (
        f"{day}, commit {commit.strip()}, seed {seed}, {seconds / 60:.0f} minutes on one machine; "
        f"Python {python_version()}, {versions}."
    )


def put(begin: str, figures: str) -> None:
    """Replaces what stands between the marker and the next end of figures."""
    page = _PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(begin)
    after = rest.partition(_END)[2]
    _PAGE.write_text(f"{before}{begin}\n\n{figures}\n\n{_END}{after}", encoding="utf-8")


def number(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def _hostile_answers(found: Found) -> int:
    return sum(count for kind, count in found.answered.items() if kind != "genuine")


def server_errors(sent: Sent) -> int:
    return sum(count for status, count in sent.statuses.items() if status.startswith("5"))


def _states(states: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def change(before: float, after: float) -> str:
    return f"{before:.1f} → {after:.1f}"
