"""Every list asks the database a bounded number of times, however many rows it has and shows."""

import pytest

from guichet.settings import Settings
from tests.console.page_statements import statements_of_pages

MOST = 15


@pytest.mark.both_databases
async def test_the_overview_and_the_lists_take_few_statements(settings: Settings) -> None:
    counts = await statements_of_pages(settings)
    assert {name: count for name, count in counts.items() if count > MOST} == {}, counts
