"""Statements of the overview and of each list of the console."""

from pathlib import Path

from bench import servers
from tests.console.page_statements import statements_of_pages


async def measure(home: Path) -> dict[str, float]:
    settings = servers.settings_for(home)
    await servers.prepare(settings)
    return {f"statements of the page {name}": count for name, count in (await statements_of_pages(settings)).items()}
