"""The tree of commands as it really is."""

import shlex
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from typer.main import get_command

from guichet.cli import app

#: What typer builds; its own copy of click has no public name.
Command = Any


@cache
def root() -> Command:
    """Its commands are built when they are first looked up: once for all tests that only parse and look."""
    return get_command(app)


def leaves(command: Command = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    """("merchant create", command) for every command that does something."""
    command = root() if command is None else command
    children = getattr(command, "commands", None)
    if children is None:
        yield " ".join(path), command
        return
    for name, child in children.items():
        yield from leaves(child, (*path, name))


def parses(line: str) -> str:
    """Parses (without running) one line of shell that runs `guichet`; the path of the command it runs."""
    words = [word for word in shlex.split(line, comments=True) if not word.startswith("GUICHET_")]
    words = words[: words.index(">")] if ">" in words else words
    assert words.pop(0).endswith("guichet"), line
    command, path = root(), []
    while hasattr(command, "commands"):
        path.append(words.pop(0))
        command = command.commands[path[-1]]
    with TemporaryDirectory() as folder, chdir(folder):
        for word in words:
            if word.endswith((".csv", ".jsonl")):
                Path(word).touch()  # an example may name a file
        command.make_context(" ".join(path), words)
    return " ".join(path)
