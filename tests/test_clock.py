"""Dates leave in one form, whatever their year."""

from datetime import UTC, datetime

import pytest

from guichet.clock import from_datetime, iso


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 11, 20, 10, 15, 30, 123456, UTC), "2026-11-20T10:15:30.123456Z"),
        (datetime(2026, 11, 20, tzinfo=UTC), "2026-11-20T00:00:00.000000Z"),
        (datetime(461, 3, 9, 1, 17, 46, tzinfo=UTC), "0461-03-09T01:17:46.000000Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_the_form_of_a_date(moment: datetime, text: str) -> None:
    assert iso(from_datetime(moment)) == text
