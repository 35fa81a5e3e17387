"""The table of a run's figures, and where docs/reliability.md shows it."""

import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from guichet import __version__
from guichet.db.engine import require
from reliability.chaos.trial import Trial
from reliability.processes import ROOT

DOCUMENT: Final = ROOT / "docs" / "reliability.md"
_BEGIN: Final = "<!-- chaos: figures -->\n"
_END: Final = "<!-- /chaos -->"
_ROWS: Final = (
    "payments acknowledged",
    "kills",
    "of them",
    "debits at the providers",
    "lost or twice",
    "other differences",
    "refunds that succeeded",
    "webhook events, each once by id",
    "attempts refused, hung up on or repeated",
    "callbacks forged, untimely or of strangers",
    "late money decided",
    "acts in the console, each in the audit log",
    "forms of the console without an answer",
    "of them sent again",
    "money acts approved by a second person",
    "jobs of the staff, each asked for by one form",
    "of them begun again",
    "of them given up, the log says why",
    "margins added up again",
    "customers forgotten, their payments",
    "exports of the console, read",
    "mails, each under one id",
    "ended by people, because no provider gives a proof",
    "still open, each with an open incident or at the provider",
    "seconds of traffic",
    "seconds until all was settled",
    "longest restart, seconds",
    "longest time without any answer, seconds",
)


def version() -> str:
    """The version and the commit of what ran."""
    command = ["git", "describe", "--always", "--dirty"]
    git = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return f"{__version__} ({git.stdout.strip() or 'no commit'})"


def table(trials: Sequence[Trial], command: str, seconds: float) -> str:
    """The figures of a run in Markdown. `command` runs it again; `seconds`: how long it took in all."""
    columns = [_figures(trial) for trial in trials]
    names = [trial.plan.database for trial in trials]
    lines = [
        f"{datetime.now(UTC):%Y-%m-%d}, seed {trials[0].plan.seed}, version {version()}, {os.cpu_count()} cores, "
        f"{seconds / 60:.0f} minutes in all: `{command}`",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    lines += [f"| {row} | {' | '.join(column[row] for column in columns)} |" for row in _ROWS]
    return "\n".join(lines) + "\n"


def write(text: str, document: Path = DOCUMENT) -> None:
    """Replaces the figures of the last run in the document."""
    before, _, rest = document.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    document.write_text(f"{before}{_BEGIN}{text}{_END}{after}", encoding="utf-8")


def _figures(trial: Trial) -> dict[str, str]:
    found, journal, killer = trial.comparison, trial.journal, require(trial.killer)
    statistics, callbacks, staff = (
        require(trial.receiver).statistics,
        require(trial.forger).counts,
        require(trial.staff),
    )
    people = require(trial.people).journal
    told = sum(count for what, count in callbacks.items() if "callbacks" in what)
    late = sum(count for what, count in staff.counts.items() if what.startswith("late money") and "refused" not in what)
    wrong = sum(len(details) for kind, details in found.differences.items() if "lost" in kind or "twice" in kind)
    values = (
        _number(journal.payments),
        _number(trial.kills),
        _listed(killer.counts),
        _number(found.figures["debits"]),
        _number(wrong),
        _number(found.difference_count - wrong),
        _number(found.figures["refunds succeeded"]),
        _number(found.figures["events"]),
        _number(sum(count for what, count in statistics.items() if what != "accept")),
        _number(told),
        _number(late),
        _number(sum(deed.least for deed in people.deeds.values())),
        _number(people.counts["forms without an answer"]),
        _number(people.counts["forms sent again"]),
        _number(found.figures["money acts approved"]),
        _number(found.figures["jobs done"] + found.figures["jobs failed"]),
        _number(found.figures["jobs begun again"]),
        _number(found.figures["jobs failed"]),
        _number(found.figures["margins compared"]),
        f"{_number(found.figures['customers forgotten'])}, {_number(found.figures['payments anonymised'])}",
        _number(found.figures["exports read"]),
        _number(found.figures["mails sent"]),
        _number(staff.counts["ended by hand"]),
        _number(found.explained.total()),
        f"{trial.traffic_took:.0f}",
        f"{trial.settling_took:.0f}",
        f"{max(killer.longest_restart.values(), default=0):.1f}",
        f"{require(trial.api).longest_outage:.1f}",
    )
    return dict(zip(_ROWS, values, strict=True))


def _number(value: int) -> str:
    return f"{value:,}".replace(",", " ")


def _listed(counts: Counter[str]) -> str:
    """How often each kind of process was killed: `serve-27013` and `serve-27014` are both servers."""
    kinds: Counter[str] = Counter()
    for name, count in sorted(counts.items()):
        kinds[name.partition("-")[0]] += count
    return ", ".join(f"{kind} {count}" for kind, count in kinds.items())
