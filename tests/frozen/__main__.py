"""`python -m tests.frozen` writes every file anew."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.frozen import answers, commands, openapi, webhooks
from tests.frozen.recording import FOLDER
from tests.frozen.service import quiet, sqlite_settings


async def _record() -> dict[str, str]:
    recorded = {"help.txt": commands.record()}
    for module, name in ((openapi, "openapi.json"), (webhooks, "webhooks.json"), (answers, "answers.json")):
        with TemporaryDirectory() as folder:
            recorded[name] = await module.record(await sqlite_settings(Path(folder)))
    return recorded


def main() -> None:
    quiet()
    for name, text in asyncio.run(_record()).items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
