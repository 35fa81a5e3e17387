"""The commands of docs/operations/postgresql.md, failover.md, switchover.md and pgbouncer.md, as they stand there.

A block of commands that begins with `# on db-a, as root` is one step: a machine, a user, and what that user types.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reliability.processes import ROOT

OPERATIONS: Final = ROOT / "docs" / "operations"
SETUP: Final = OPERATIONS / "postgresql.md"
FAILOVER: Final = OPERATIONS / "failover.md"
SWITCHOVER: Final = OPERATIONS / "switchover.md"
PGBOUNCER: Final = OPERATIONS / "pgbouncer.md"
_BLOCK: Final = re.compile(r"^```sh\n# on ([\w, -]+), as (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TITLE: Final = re.compile(r"^(#+) (.+)$", re.MULTILINE)
#: What the pages call the two database hosts; "the other way round, exchange a and b".
_EXCHANGED: Final = {
    "db-a": "db-b",
    "db-b": "db-a",
    "guichet_a": "guichet_b",
    "guichet_b": "guichet_a",
    "10.77.0.11": "10.77.0.12",
    "10.77.0.12": "10.77.0.11",
}
_NAMES: Final = re.compile("|".join(map(re.escape, _EXCHANGED)))


@dataclass(frozen=True)
class Step:
    """`machines`: the names of those on which `user` types `commands`."""

    machines: tuple[str, ...]
    user: str
    commands: str

    def exchanged(self) -> "Step":
        """The same step where db-b is the primary at first."""
        return replace(
            self,
            machines=tuple(_EXCHANGED.get(each, each) for each in self.machines),
            commands=_NAMES.sub(lambda name: _EXCHANGED[name[0]], self.commands),
        )


def steps(page: Path, title: str) -> list[Step]:
    """The steps under this title of the page, those under the titles below it included."""
    found = [
        Step(tuple(re.split(r", | and ", machines)), user, commands)
        for machines, user, commands in _BLOCK.findall(_section(page, title))
    ]
    if not found:
        raise RuntimeError(f'{page.name} has no commands under "{title}"')
    return found


def _section(page: Path, title: str) -> str:
    text = page.read_text(encoding="utf-8")
    blank = _CODE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    titles = list(_TITLE.finditer(blank))
    start = next((at for at, each in enumerate(titles) if each[2] == title), None)
    if start is None:
        raise RuntimeError(f'{page.name} has no title "{title}"')
    level = len(titles[start][1])
    end = next((each.start() for each in titles[start + 1 :] if len(each[1]) <= level), len(text))
    return text[titles[start].end() : end]
