"""README.md and docs/admin-guide.md say what is: every setting, every command, and nothing that is not."""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from guichet.settings import VARIABLES
from tests.cli.conftest import ROOT, Cli
from tests.cli.tree import leaves, parses

GUIDE = (ROOT / "docs" / "admin-guide.md").read_text(encoding="utf-8")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/admin-guide.md")
SHELL = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def _lines() -> list[tuple[str, str]]:
    """(document, line) for each line of shell that runs `guichet`."""
    found = []
    for document in DOCUMENTS:
        for block in SHELL.findall((ROOT / document).read_text(encoding="utf-8")):
            found += [(document, line.strip()) for line in block.splitlines() if re.search(r"(^|/| )guichet ", line)]
    return [(document, line) for document, line in found if not line.startswith(("export ", "#"))]


def test_the_guide_lists_every_setting() -> None:
    table = GUIDE.split("<!-- table: settings -->")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `GUICHET_")]
    expected = [
        f"| `{each.name}` | {f'`{each.default}`' if each.default else '–'} | {each.meaning} |" for each in VARIABLES
    ]
    assert rows == expected


def test_no_document_names_a_setting_that_does_not_exist() -> None:
    for document in DOCUMENTS:
        named = set(re.findall(r"GUICHET_[A-Z0-9_]+[A-Z0-9]", (ROOT / document).read_text(encoding="utf-8")))
        assert named <= {variable.name for variable in VARIABLES}, document


def test_the_guide_lists_every_command() -> None:
    chapter = GUIDE.split("\n## Every command\n")[1].split("\n## ")[0]
    entries = re.findall(r"^- `guichet ([a-z -]+)`.*?^  ```sh\n(.*?)^  ```", chapter, re.MULTILINE | re.DOTALL)
    assert sorted(path for path, _ in entries) == sorted(path for path, _ in leaves())
    for path, example in entries:
        assert parses(example.strip()) == path


@pytest.mark.parametrize(("document", "line"), _lines())
def test_documented_shell_lines_are_valid_commands(document: str, line: str) -> None:
    if line.endswith("--help"):
        return
    parses(line)


def test_documented_alert_log_lines_exist_in_the_code() -> None:
    table = GUIDE.split("\n## Logs\n")[1].split("\n## ")[0]
    events = re.findall(r"`([a-z]+\.[a-z_]+)`", "".join(re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)))
    assert len(events) > 5
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "guichet").rglob("*.py"))
    for event in events:
        assert re.search(rf'log\.\w+\(\s*"{re.escape(event)}"', source), event


def test_links_of_the_documents_exist() -> None:
    for document in DOCUMENTS:
        path = ROOT / document
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)]+)\)", text):
            file, _, anchor = target.partition("#")
            assert not file or (path.parent / file).exists(), f"{document}: {target}"
            if not file:
                titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
                assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, target


def test_the_backup_command_copies_everything(sqlite_cli: Cli, tmp_path: Path) -> None:
    (code,) = re.findall(r'^python3 -c "(.+)"$', GUIDE, re.MULTILINE)
    made = sqlite_cli("merchant", "create", "Awa", "--json").json
    (tmp_path / "var").symlink_to(sqlite_cli.folder)
    with sqlite_cli.running("serve"):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    copy = sqlite3.connect(tmp_path / "backup.db")
    assert copy.execute("SELECT id, name FROM merchants").fetchall() == [(made["id"], "Awa")]
    copy.close()
