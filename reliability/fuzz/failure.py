"""The file of a failure: the request that was answered wrongly, for `--replay`."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from reliability.fuzz.exchange import Violated
from reliability.fuzz.known import Known
from reliability.fuzz.recorded import Probe


def save(
    path: Path, seed: int, faults: Sequence[str], violated: Violated | None, known: Known, calls: Sequence[str]
) -> None:
    """`violated`: the request, if one was answered wrongly. `calls`: our last calls and their answers, which may be the
    reason of every other fault."""
    saved: dict[str, Any] = {"seed": seed, "faults": list(faults), "known": dict(known), "last_calls": list(calls)}
    if violated is not None:
        probe = violated.probe
        saved |= {
            "number": violated.number,
            "kind": probe.kind,
            "method": probe.method,
            "target": probe.target,
            "raw": base64.b64encode(probe.raw).decode(),
            # What a kind of requests adds: which answers are right.
            "rule": {each.name: getattr(probe, each.name) for each in fields(probe)[len(fields(Probe)) :]},
            "answers": [repr(answer) for answer in violated.answers],
        }
    path.write_text(json.dumps(saved, indent=1))


def saved_kind(path: Path) -> str:
    """The kind of the saved request, empty if none was answered wrongly."""
    return str(json.loads(path.read_text()).get("kind", ""))


def saved_rule(path: Path) -> dict[str, Any]:
    """What the saved request had besides the fields of every request, by name."""
    rule: dict[str, Any] = json.loads(path.read_text())["rule"]
    return rule


def saved_probe(path: Path, known: Mapping[str, str]) -> Probe:
    """The saved request, with the names of this run in place of those that it used."""
    saved = json.loads(path.read_text())
    raw, target = base64.b64decode(saved["raw"]), saved["target"]
    for name, value in saved["known"].items():
        raw = raw.replace(value.encode(), known[name].encode())
        target = target.replace(value, known[name])
    return Probe(saved["kind"], raw, saved["method"], target)
