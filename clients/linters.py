"""Redocly and Spectral, each with its recommended rules, on the served document. They must report nothing."""

import os
import subprocess
from pathlib import Path
from typing import Final

from clients.demo import Demo
from clients.generators import BUILD, FOLDER, StepFailed

_PROGRAMS: Final = FOLDER / "node_modules" / ".bin"
#: Name → command; each says nothing worse than "valid" and ends with 0 when there is nothing to report.
LINTERS: Final = {
    "redocly": [str(_PROGRAMS / "redocly"), "lint", "--extends", "recommended", "--format", "json", "document.json"],
    "spectral": [
        str(_PROGRAMS / "spectral"), "lint", "--ruleset", str(FOLDER / "spectral.yaml"), "--fail-severity", "hint",
        "document.json",
    ],
}  # fmt: skip


def missing() -> list[str]:
    return [] if _PROGRAMS.is_dir() else ["clients/node_modules (make clients/node_modules)"]


def lint(name: str, demo: Demo) -> None:
    """Raises StepFailed with the report, even where there are only warnings."""
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    Path(folder, "document.json").write_bytes(demo.document())
    environment = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    done = subprocess.run(LINTERS[name], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode or '"severity"' in done.stdout:
        raise StepFailed(f"{name}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
