"""What commands print: text and tables for people, JSON for programs, errors on stderr."""

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.json import encode
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.table import Table
from rich.text import Text

from guichet.domain.messages import Message
from guichet.printable import printable, printable_json

#: Columns when stdout is not a terminal: wide enough for any table, so that a pipe receives whole lines.
_PIPE_WIDTH: Final = 200


class _SafeConsole(Console):
    """A console on which nothing that others wrote can act: a text is one line with every control shown as an escape,
    and is never read as markup. What has lines or colours of our own is a `Text` or a table."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(printable(part) if isinstance(part, str) else part for part in objects), **options)

    def status(self, status: RenderableType, **options: Any) -> Status:
        """rich reads a status as markup unless it is a `Text`."""
        return super().status(Text(printable(status)) if isinstance(status, str) else status, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Whatever is printed comes through here, the cells of tables too. Control segments are rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text, keep="\n"))


console = _SafeConsole(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
error_console = _SafeConsole(stderr=True, soft_wrap=True)


def json_text(value: object) -> str:
    """JSON on one line, in which a terminal finds nothing to obey."""
    return printable_json(encode(value).decode())


def print_json(value: object) -> None:
    sys.stdout.write(json_text(value) + "\n")


def with_sentence(name: str, message: Message | None) -> dict[str, object]:
    """A message for `--json`: its sentence under `name`, its code and its facts."""
    if message is None:
        return {name: None, "code": None, "facts": None}
    return {name: str(message), "code": message.code, "facts": message.facts}


def show_rows(
    member: str, rows: Sequence[Mapping[str, object]], columns: Mapping[str, str], *, as_json: bool, **others: object
) -> None:
    """`--json`: the rows under `member`, after `others`. Otherwise a table; `columns`: name in a row → title."""
    if as_json:
        print_json({**others, member: rows})
    else:
        print_table([*columns.values()], [[row[name] for name in columns] for row in rows])


def show_done(value: object, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        console.print(sentence)


def show_facts(facts: Mapping[str, object], *, as_json: bool) -> None:
    """One object, or a line for each of its members."""
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        console.print(f"{name}: {'' if value is None else value}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = Table(*columns, header_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else printable(_cell(cell)) for cell in row))
    console.print(table)


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def command_name() -> str:
    """How a user can start this command again in the same shell."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{sys.executable} -m guichet"
    return started.name if shutil.which(started.name) == str(started) else str(started)
