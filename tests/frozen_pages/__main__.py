"""`python -m tests.frozen_pages` writes every file anew."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.frozen.service import quiet, sqlite_settings
from tests.frozen_pages.record import FOLDER, record


async def _write(into: Path) -> None:
    into.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        async for name, text in record(await sqlite_settings(Path(folder))):
            (into / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    quiet()
    asyncio.run(_write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
