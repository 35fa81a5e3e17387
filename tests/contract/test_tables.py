"""The parser of docs/contract.md never reads less than what is written."""

import pytest

from tests.contract.tables import TableError, parse, table, tables


def test_a_missing_table_is_an_error() -> None:
    with pytest.raises(TableError, match="has no table named 'errors '"):
        table("errors ")
    with pytest.raises(TableError, match="starts with 'nothing '"):
        tables("nothing")


def test_cells_are_read_without_their_markup() -> None:
    text = "<!-- table: t -->\n\n| A | B | C |\n|---|---|---|\n| `a` | – | `b` and `c` |\n"

    assert parse(text) == {"t": [{"A": "a", "B": "", "C": "`b` and `c`"}]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("| A |\n|---|\n| a |\n", "line 1: this table has no"),
        ("<!-- table: t -->\n| A |\n|---|\n", "needs a header, a rule and at least one row"),
        ("<!-- table: t -->\n| A |\n| a |\n| b |\n", "needs a header, a rule"),
        ("<!-- table: t -->\nwords\n", "needs a header, a rule"),
        ("<!-- table: t -->", "needs a header, a rule"),
        ("<!-- table: t -->\n| A |\n|---|\n| a | b |\n", "line 4: 2 cells under 1 headers"),
        (
            "<!-- table: t -->\n| A |\n|---|\n| a |\n\n<!-- table: t -->\n| A |\n|---|\n| a |\n",
            "line 6: .* second time",
        ),
    ],
)
def test_an_unreadable_table_is_an_error(text: str, sentence: str) -> None:
    with pytest.raises(TableError, match=sentence):
        parse(text)
