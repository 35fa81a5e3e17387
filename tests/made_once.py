"""What takes seconds to make is made by one runner for all of them."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder that `make` filled, in this runner or in another one: only to read, or to copy."""
    base = temporary.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    made, unfinished = base / name, base / f"{name}.unfinished"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            unfinished.mkdir(exist_ok=True)
            make(unfinished)
            unfinished.rename(made)
    return made
