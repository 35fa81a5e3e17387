"""A running `guichet demo`, and the data folder of one that has ended."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.child import Child
from tests.cli.conftest import Cli, clean_environ
from tests.made_once import made_once
from tests.patience import PATIENCE
from tests.ports import free_port


@contextmanager
def demo(cli: Cli, *arguments: object) -> Iterator[tuple[str, list[str], Child]]:
    """A running demo: what it printed, the commands it offers, its process."""
    with cli.start("demo", "--port", free_port(), *arguments) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not (lines and "Ctrl-C" in lines[-1]):
                line = process.stdout.readline()
                assert line, process.communicate()
                lines.append(line)
            text = "".join(lines)
            yield text, [line for line in lines if line.startswith("curl ")], process
        finally:
            process.kill()


def stopped(process: Child) -> float:
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in err, err
    return time.monotonic() - started


@pytest.fixture(scope="session")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder that a demo left, to copy: making its month takes two thirds of a start."""

    def make(folder: Path) -> None:
        with demo(Cli(clean_environ(folder / "var"), folder)) as (_, _, process):
            stopped(process)

    return made_once(tmp_path_factory, "demonstrated", make) / "var"
