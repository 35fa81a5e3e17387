"""docs/architecture.md shows the ways as they are; `python -m tests.call_trace --write` writes them anew."""

import asyncio

from tests.call_trace.page import PAGE, markdown, sections
from tests.call_trace.ways import record


def test_the_architecture_page_shows_the_ways_as_they_are() -> None:
    shown = sections(PAGE.read_text(encoding="utf-8"))
    recorded = markdown(asyncio.run(record()))
    assert list(shown) == list(recorded)
    for name, text in recorded.items():
        assert shown[name].splitlines() == text.splitlines(), f"the way of a {name}"
