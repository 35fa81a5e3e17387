"""Commands that end by themselves, one after the other in a process that stays: a process for each of them takes three
times as long. A server, or what a test stops, has a process of its own (`child.Child`)."""

import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli.child import FORKS, End, run_main
from tests.patience import PATIENCE


@dataclass(frozen=True)
class _Command:
    arguments: list[str]
    environ: dict[str, str]
    folder: Path
    out: Path
    err: Path


class _Shell:
    def __init__(self) -> None:
        self._ours, theirs = FORKS.Pipe()
        self._process = FORKS.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, command: _Command) -> int | None:
        """None when it did not end; the shell has ended then."""
        self._ours.send(command)
        if self._ours.poll(PATIENCE):
            code: int = self._ours.recv()
            return code
        self._process.kill()
        self._process.join()
        self._ours.close()
        return None


#: Those that wait for a command; several threads may run some at once.
_idle: list[_Shell] = []


def run_command(arguments: Sequence[str], environ: Mapping[str, str], folder: Path, out: Path, err: Path) -> int | None:
    """The exit code; what it printed is in `out` and `err`. None when it did not end."""
    shell = _idle.pop() if _idle else _Shell()
    code = shell.run(_Command(list(arguments), dict(environ), folder, out, err))
    if code is not None:
        _idle.append(shell)
    return code


def printed_by_each(commands: Sequence[Sequence[str]], environ: Mapping[str, str]) -> list[str]:
    """What these commands print. Each ends with exit code 0, and says nothing on stderr."""
    printed = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        out, err = folder / "out", folder / "err"
        for command in commands:
            code = run_command(command, environ, folder, out, err)
            assert (code, err.read_text()) == (0, ""), command
            printed.append(out.read_text())
    return printed


def _serve(commands: Connection) -> None:
    """Until whoever sends them has ended."""
    while True:
        try:
            command: _Command = commands.recv()
        except EOFError:
            return
        commands.send(_exit_code(command))


def _exit_code(command: _Command) -> int:
    """What a process of its own would end with, once nothing of the command runs that would keep that from ending."""
    code: object = None
    try:
        run_main(command.arguments, command.environ, command.folder, End.of(command.out), End.of(command.err))
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # A server that refused to start has taken it.
    sys.stdout.flush()
    sys.stderr.flush()
    assert code is None or isinstance(code, int)
    return code or 0
