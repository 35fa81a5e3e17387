"""What the commands print on the same database, at the time of its clock."""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.cli import child

REFERENCE: Final = "01a202b1-10b7-453a-868b-cad7dfa87efe"
_SETTLE: Final = ("--evidence", "ticket 4711", "--by", "Awa")
#: Each is run without and with `--json`.
COMMANDS: Final[tuple[tuple[str, ...], ...]] = (
    ("incidents",),
    ("doctor",),
    ("providers", "check"),
    ("providers", "check", "--deep"),
    ("providers", "balances"),
    ("ledger", "audit"),
    ("ledger", "margin", "--from", "2026-11-20", "--to", "2026-11-29"),
    ("ledger", "statement", "1", "XOF", "--from", "2026-11-20", "--to", "2026-11-29"),
    ("reconcile", "--runs"),
    ("reconcile", "mtn", "{statement}", "--from", "2026-11-20", "--to", "2026-11-21"),
    ("reconcile", "feexpay", "--fetch", "--from", "2026-11-20", "--to", "2026-11-21"),
    ("approval", "list"),
    ("approval", "show", "1"),
    ("approval", "show", "2"),
    ("approval", "show", "99"),
    ("late-money", "list"),
    ("late-money", "show", "{late}"),
    ("late-money", "show", REFERENCE),
    ("late-money", "resolve", "{late}", "--to", "wallet", *_SETTLE),
    ("dispute", "list"),
    ("audit-log", "list"),
    ("audit-log", "verify"),
    ("delivery", "list", "--since", "2026-11-29", "--status", "pending"),
    ("delivery", "list", "--merchant", "1"),
    ("delivery", "show", REFERENCE),
    ("payment", "settle", REFERENCE, "--failed", *_SETTLE),
    ("payment", "settle", "{pending}", "--succeeded", *_SETTLE),
    ("payment", "settle", "{pending}", "--failed", *_SETTLE),
    ("payment", "settle", "{succeeded}", "--failed", *_SETTLE),
    ("refund", "settle", "{refund}", "--failed", *_SETTLE),
    ("refund", "settle", REFERENCE, "--failed", *_SETTLE),
    ("merchant", "list"),
    ("merchant", "limits", "1"),
    ("mode", "list"),
    ("mode", "list", "--merchant", "1"),
    ("key", "list", "1"),
    ("user", "list"),
    ("user", "list", "--merchant", "1"),
    ("wallet", "show", "1"),
    ("wallet", "status", "1", "XOF", "Actif", "--by", "Awa", "--evidence", "vu"),
    ("clock", "show", "--merchant", "1"),
)
STATEMENT: Final = "reference;amount;status\nnobody;100;SUCCESSFUL\n{succeeded};4000;SUCCESSFUL\n"


def record(environ: Mapping[str, str], now: int, known: Mapping[str, str]) -> str:
    """`now`: microseconds. `known`: references that stand in commands, by what is known of them."""
    shown = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        statement = folder / "statement.csv"
        statement.write_text(STATEMENT.format(**known), encoding="utf-8")
        for words in COMMANDS:
            for line in (words, (*words, "--json")):
                arguments = [word.format(**known, statement=statement.name) for word in line]
                shown += [f"$ guichet {' '.join(line)}", *_run(arguments, environ, folder, now), ""]
    return "\n".join(shown)


def _run(arguments: Sequence[str], environ: Mapping[str, str], folder: Path, now: int) -> list[str]:
    out, err = folder / "out", folder / "err"
    process = child._FORKS.Process(target=_at, args=(now, list(arguments), dict(environ), folder, out, err))
    process.start()
    process.join(90)
    printed = [f"2> {line}" for line in err.read_text(encoding="utf-8").splitlines() if not line.startswith("{")]
    text = out.read_text(encoding="utf-8")
    if arguments[0] == "incidents":
        # Their numbers have gaps.
        text = re.sub(r'(?<="id":)\d+|(?m:^│ \d+ *(?=│))', "{number}", text)
    return [*_shown(text), *printed, f"exit code {process.exitcode}"]


def _shown(text: str) -> list[str]:
    """JSON has a line for each of its values."""
    if text.startswith("{"):
        text = text.replace(":{number}", ":null")
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1).splitlines()
    # Tables are as wide as what is in them.
    return [re.sub(r"([ ─━═])\1+", r"\1\1", line) for line in text.splitlines()]


def _at(now: int, arguments: list[str], environ: dict[str, str], folder: Path, out: Path, err: Path) -> None:
    """In a process of its own, whose clock stands still."""
    time.time_ns = lambda: now * 1000
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    child._main(arguments, environ, folder, child._End(os.open(out, flags)), child._End(os.open(err, flags)))
