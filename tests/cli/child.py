"""One run of the command in a process of its own, forked from one that has imported everything already: starting
Python a hundred times would take minutes. Everything after the imports is what `python -m guichet` does.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path

from guichet.cli import main
from tests.cli.tree import leaves

list(leaves())  # The command loads each module when it is needed; here all are, before the fork.
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


def run_command(arguments: Sequence[str], environ: Mapping[str, str], folder: Path, out: Path, err: Path) -> int | None:
    """The exit code; what it printed is in `out` and `err`. None when it took longer than a minute."""
    child = _FORKS.Process(target=_main, args=(list(arguments), dict(environ), folder, out, err))
    child.start()
    child.join(60)
    child.kill()
    child.join()
    code = child.exitcode
    child.close()
    return code


def _main(arguments: list[str], environ: dict[str, str], folder: Path, out: Path, err: Path) -> None:
    for number, path in ((1, out), (2, err)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    sys.argv = ["guichet", *arguments]
    main()
