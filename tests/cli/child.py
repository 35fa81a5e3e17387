"""The command in processes of its own, forked from one that has imported everything already: starting Python some
hundred times would take minutes. Everything after the imports is what `python -m guichet` does. (The processes that
`serve --workers` starts are started by Python itself.)
"""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from guichet.cli import main
from tests.cli.tree import leaves

# The command loads each module when it is needed; here all are, before the fork.
list(leaves())
for _name in ("api.app", "checkout.app", "server.http_server", "server.processes", "worker"):
    import_module(f"guichet.{_name}")
for _name in ("guichet_simulator.app", "redis.asyncio", "uvicorn.protocols.http.httptools_impl", "uvloop"):
    import_module(_name)
# A page of memory that the garbage collector marks in a child is copied for it.
gc.collect()
gc.freeze()
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


class Child:
    """A running command, with what `subprocess.Popen` offers of it. Output that has no file is a pipe."""

    def __init__(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        out: Path | None = None,
        err: Path | None = None,
    ) -> None:
        self.args = ["guichet", *arguments]
        self.stdout, out_end = _pipe(out)
        self.stderr, err_end = _pipe(err)
        self._process = _FORKS.Process(target=_main, args=(list(arguments), dict(environ), folder, out_end, err_end))
        self._process.start()
        for end in (out_end, err_end):
            end.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if failed is not None:
            self.kill()  # A test that failed must not wait for a command that goes on running.
        for stream in (self.stdout, self.stderr):
            if stream:
                stream.close()
        self.wait()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What is left of both outputs, until their ends."""
        with ThreadPoolExecutor(2) as readers:
            out, err = (readers.submit(stream.read if stream else str) for stream in (self.stdout, self.stderr))
            self.wait(timeout)
            return out.result(timeout), err.result(timeout)

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # It has ended, and its exit code is still on its way to us.
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_command(arguments: Sequence[str], environ: Mapping[str, str], folder: Path, out: Path, err: Path) -> int | None:
    """The exit code; what it printed is in `out` and `err`. None when it took longer than a minute."""
    child = Child(arguments, environ, folder, out, err)
    try:
        return child.wait(60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return None


class _End:
    """A file descriptor to write to, which is passed to the child."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __reduce__(self) -> Any:
        return _received, (DupFd(self.fd),)

    def close(self) -> None:
        os.close(self.fd)


def _received(passed: Any) -> _End:
    return _End(passed.detach())


def _pipe(path: Path | None) -> tuple[TextIO | None, _End]:
    if path is not None:
        return None, _End(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND))
    reading, writing = os.pipe()
    return os.fdopen(reading, encoding="utf-8"), _End(writing)


def _main(arguments: list[str], environ: dict[str, str], folder: Path, out: _End, err: _End) -> None:
    for number, end in ((1, out), (2, err)):
        os.dup2(end.fd, number)
        end.close()
    # Tests that run in the background inherit an ignored SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    sys.argv = ["guichet", *arguments]
    main()
