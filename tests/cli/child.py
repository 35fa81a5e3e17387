"""The command in processes of its own, forked from one that has imported everything already (fork_server.py): starting
Python some hundred times would take minutes. Everything after the imports is what `python -m guichet` does. Also the
processes that `serve --workers` starts are forks, unless WORKERS_START_PYTHON is set.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from multiprocessing import forkserver, get_context
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, TextIO

from guichet.cli import main
from guichet.server import processes

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.cli.fork_server"])
WORKERS_START_PYTHON = "WORKERS_START_PYTHON"
#: Variables, in seconds: between two looks of a worker that nobody wakes, until Redis counts as away, and until a
#: request is told that no connection to PostgreSQL was free.
POLLS_EVERY, REDIS_ANSWERS_IN, CONNECTION_FREE_IN = "POLLS_EVERY", "REDIS_ANSWERS_IN", "CONNECTION_FREE_IN"
_TIMES: Final = {
    POLLS_EVERY: (("guichet.worker.queue_loop", "POLL_INTERVAL"), ("guichet.worker.worker", "POLL_INTERVAL")),
    REDIS_ANSWERS_IN: (("guichet.server.redis_windows", "REDIS_TIMEOUT"),),
    CONNECTION_FREE_IN: tuple((f"guichet.db.postgres.{module}", "ACQUIRE_TIMEOUT") for module in ("pool", "grouped")),
}


class Child:
    """A running command, with what `subprocess.Popen` offers of it. Output that has no file is a pipe."""

    def __init__(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        out: Path | IO[bytes] | None = None,
        err: Path | IO[bytes] | None = None,
        *,
        own_session: bool = False,
    ) -> None:
        self.args = ["guichet", *arguments]
        self.stdout, out_end = _pipe(out)
        self.stderr, err_end = _pipe(err)
        run = (list(arguments), dict(environ), folder, out_end, err_end, own_session)
        if WORKERS_START_PYTHON in environ:
            self._process = FORKS.Process(target=run_main, args=run)
        else:
            self._process = FORKS.Process(target=_supervising, args=(server_of_forks(), *run))
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


class End:
    """A file descriptor to write to, which is passed to the child."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def of(cls, file: Path) -> "End":
        """A new file."""
        return cls(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND))

    def __reduce__(self) -> Any:
        return _received, (DupFd(self.fd),)

    def close(self) -> None:
        os.close(self.fd)


def server_of_forks() -> dict[str, Any]:
    """Where the server of forks is, which is started if it does not run; from Python 3.14 on with a key."""
    forkserver._forkserver.ensure_running()
    known = vars(forkserver._forkserver)
    return {name: known[name] for name in ("_forkserver_address", "_forkserver_authkey") if name in known}


def use_server_of_forks(server: dict[str, Any]) -> None:
    """Of another process, which ends it: to start one takes two seconds of processor."""
    # Whoever starts it passes the end of a pipe to each fork, so that the server lives as long as that is open.
    nothing = os.open(os.devnull, os.O_RDONLY)
    vars(forkserver._forkserver).update(server, _forkserver_alive_fd=nothing, ensure_running=lambda: None)


def _received(passed: Any) -> End:
    return End(passed.detach())


def _pipe(target: Path | IO[bytes] | None) -> tuple[TextIO | None, End]:
    """A path is a new file."""
    if isinstance(target, Path):
        return None, End.of(target)
    if target is not None:
        return None, End(os.dup(target.fileno()))
    reading, writing = os.pipe()
    return os.fdopen(reading, encoding="utf-8"), End(writing)


def run_main(
    arguments: list[str], environ: dict[str, str], folder: Path, out: End, err: End, own_session: bool = False
) -> None:
    """The command, in this process."""
    if own_session:
        os.setsid()
    for number, end in ((1, out), (2, err)):
        os.dup2(end.fd, number)
        end.close()
    # Tests that run in the background inherit an ignored SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(0)
    os.environ.clear()
    os.environ.update(environ)
    for name in _TIMES.keys() & environ.keys():
        for module, constant in _TIMES[name]:
            setattr(import_module(module), constant, float(environ[name]))
    os.chdir(folder)
    sys.argv = ["guichet", *arguments]
    main()


def _supervising(server: dict[str, Any], *arguments: Any) -> None:
    """A command that may start processes, by the same server of forks."""
    vars(forkserver._forkserver).update(server, ensure_running=lambda: None)
    processes._start = _Worker.start  # type: ignore[assignment]
    run_main(*arguments)


class _Worker:
    """A process of `serve --workers`, with what `guichet.server.processes` uses of asyncio's."""

    def __init__(self, command: list[str], descriptors: tuple[int, int]) -> None:
        reading, self._stdin = os.pipe()
        ends = [End(fd) for fd in (1, 2, reading, *descriptors)]
        arguments = (command[3:], dict(os.environ), Path.cwd(), *ends)
        self._process = FORKS.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        os.close(reading)
        assert self._process.pid is not None
        self.pid = self._process.pid

    @classmethod
    async def start(cls, command: list[str], descriptors: tuple[int, int]) -> "_Worker":
        return cls(command, descriptors)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    async def wait(self) -> None:
        while self.returncode is None:
            await asyncio.sleep(0.01)

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _work(
    arguments: list[str], environ: dict[str, str], folder: Path, out: End, err: End, stdin: End, *inherited: End
) -> None:
    os.dup2(stdin.fd, 0)
    stdin.close()
    at = arguments.index("--inherit") + 1
    arguments[at : at + 2] = [str(end.fd) for end in inherited]
    run_main(arguments, environ, folder, out, err, own_session=True)
