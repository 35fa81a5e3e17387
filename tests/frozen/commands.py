"""`--help` of every command: the tree is walked through what the real command prints, from the root down."""

import os
import re
from typing import Final

from tests.frozen.service import COMMAND, printed_by_each

#: The words of a command.
Path = tuple[str, ...]

_WIDTH: Final = "100"
#: The panel of sub-commands, and the first word of each of its lines that names one.
_PANEL: Final = re.compile(r"^╭─ Commands ─+╮\n(.*?)^╰", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"^│ ([a-z][a-z-]*)  ", re.MULTILINE)


def record() -> str:
    """`help.txt`."""
    texts: dict[Path, str] = {}
    asked: list[Path] = [()]
    while asked:  # One level of the tree after the other.
        texts |= zip(asked, _helps(asked), strict=True)
        asked = [(*path, name) for path in asked for name in _children(texts[path])]
    return "\n".join(f"$ {' '.join([COMMAND, *path])} --help\n{text}" for path, text in _in_order((), texts))


def _children(text: str) -> list[str]:
    panel = _PANEL.search(text)
    return _NAME.findall(panel[1]) if panel else []


def _in_order(path: Path, texts: dict[Path, str]) -> list[tuple[Path, str]]:
    below = [each for name in _children(texts[path]) for each in _in_order((*path, name), texts)]
    return [(path, texts[path]), *below]


def _helps(paths: list[Path]) -> list[str]:
    """As somebody reads it who has set nothing, without colours and without the spaces at the ends of lines."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(COMMAND.upper())}
    environ = {**inherited, "COLUMNS": _WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    texts = printed_by_each([[*path, "--help"] for path in paths], environ)
    return ["".join(f"{line.rstrip()}\n" for line in text.strip("\n").split("\n")) for text in texts]
