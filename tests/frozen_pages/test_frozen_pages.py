"""What pages and commands show now is what the files say; `python -m tests.frozen_pages` writes them anew."""

import asyncio
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.frozen.service import sqlite_settings
from tests.frozen_pages.record import FOLDER, record

pytestmark = pytest.mark.timeout(600)
_SHOWN = 200


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    async def all_files(folder: Path) -> dict[str, str]:
        return {name: text async for name, text in record(await sqlite_settings(folder))}

    return asyncio.run(all_files(tmp_path_factory.mktemp("frozen")))


def test_no_file_is_left_over(recorded: dict[str, str]) -> None:
    assert recorded.keys() == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_what_is_shown_is_what_was_shown(recorded: dict[str, str], name: str) -> None:
    before = (FOLDER / name).read_text(encoding="utf-8")
    if recorded[name] != before:
        changed = unified_diff(before.splitlines(), recorded[name].splitlines(), "before", "now", lineterm="", n=12)
        pytest.fail("\n".join([name, *list(changed)[:_SHOWN]]), pytrace=False)
