"""docs/architecture.md shows the ways as they are; `python -m bench.ways --write` writes them anew."""

import asyncio

from bench.ways.page import PAGE, markdown, sections
from bench.ways.ways import record


def test_the_architecture_page_shows_the_ways_as_they_are() -> None:
    shown = sections(PAGE.read_text(encoding="utf-8"))
    recorded = markdown(asyncio.run(record()))
    assert list(shown) == list(recorded)
    for name, text in recorded.items():
        assert shown[name].splitlines() == text.splitlines(), f"the way of a {name}"
