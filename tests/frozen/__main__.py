"""`python -m tests.frozen` writes every file anew."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.frozen import answers, commands, examples, guide, libraries, openapi, webhooks
from tests.frozen.recording import FOLDER
from tests.frozen.service import EXAMPLES_FILE, Settings, quiet, sqlite_settings


async def _on_a_new_database(record: Callable[[Settings], Awaitable[str]]) -> str:
    with TemporaryDirectory() as folder:
        return await record(await sqlite_settings(Path(folder)))


async def _write() -> None:
    recorded = await _on_a_new_database(examples.record)
    EXAMPLES_FILE.write_text(recorded, encoding="utf-8")
    for file in guide.FILES:
        text = guide.refreshed(file.read_text(encoding="utf-8"), json.loads(recorded))
        file.write_text(text, encoding="utf-8")
        (EXAMPLES_FILE.parent / file.name).write_text(text, encoding="utf-8")
    # The OpenAPI document shows the examples, so it is recorded after them.
    for module, name in ((openapi, "openapi.json"), (webhooks, "webhooks.json"), (answers, "answers.json")):
        (FOLDER / name).write_text(await _on_a_new_database(module.record), encoding="utf-8")
    for file, text in libraries.files().items():
        file.write_text(text, encoding="utf-8")
    (FOLDER / "help.txt").write_text(commands.record(), encoding="utf-8")


def main() -> None:
    quiet()
    asyncio.run(_write())


if __name__ == "__main__":
    main()
