"""`--help` of every command: the tree is walked through what the real command prints, from the root down."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.frozen.service import COMMAND, run_command

_WIDTH: Final = "100"
#: The panel of sub-commands, and the first word of each of its lines that names one.
_PANEL: Final = re.compile(r"^╭─ Commands ─+╮\n(.*?)^╰", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"^│ ([a-z][a-z-]*)  ", re.MULTILINE)


def record() -> str:
    """`help.txt`."""
    return "\n".join(f"$ {' '.join([COMMAND, *path])} --help\n{text}" for path, text in _tree(()))


def _tree(path: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    text = _help(path)
    panel = _PANEL.search(text)
    children = _NAME.findall(panel[1]) if panel else []
    return [(path, text), *(each for name in children for each in _tree((*path, name)))]


def _help(path: tuple[str, ...]) -> str:
    """As somebody reads it who has set nothing, without colours and without the spaces at the ends of lines."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(COMMAND.upper())}
    environ = {**inherited, "COLUMNS": _WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    with TemporaryDirectory() as name:
        out, err = Path(name, "out"), Path(name, "err")
        code = run_command([*path, "--help"], environ, Path(name), out, err)
        assert (code, err.read_text()) == (0, ""), (path, code, err.read_text())
        lines = out.read_text(encoding="utf-8").strip("\n").split("\n")
    return "".join(f"{line.rstrip()}\n" for line in lines)
