"""One page of a long list, always with the newest row first, and the addresses of the pages beside it.

Pages are cut at a row that both neighbours know. `?before=` its key shows the rows that are older than it, `?after=`
the next newer ones; without either the page begins at the newest row. A row that is gone still marks its place.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import PlainValidator

from guichet.clock import Instant
from guichet.db.lists.pages import RowKey
from guichet.domain.records import Record
from guichet.pages.fields import Fields, Lenient, RowId, row_id

#: No row has an id above it.
ABOVE_ALL: Final = 2**63 - 1

Key = TypeVar("Key")
Row = TypeVar("Row")


class Cursor(Record, Generic[Key], frozen=True):
    """At most one of the two is not None."""

    before: Key | None = None
    after: Key | None = None

    @property
    def key(self) -> Key | None:
        return self.before if self.after is None else self.after

    @property
    def is_newer(self) -> bool:
        """Whether the page holds the rows that came next after the key."""
        return self.after is not None


class Pager(Record, frozen=True):
    """The addresses of the pages with newer and with older rows; None where there is none."""

    newer: str | None = None
    older: str | None = None

    def older_only(self) -> "Pager":
        """For a list that goes one way."""
        return Pager(older=self.older)


class ListPage(Record, Generic[Row], frozen=True):
    rows: list[Row]
    has_newer: bool
    has_older: bool

    @classmethod
    def cut(cls, rows: Sequence[Row], size: int, cursor: Cursor[Any]) -> "ListPage[Row]":
        """From rows that were read with the cursor, newest first: one more than `size` if others follow."""
        more = len(rows) > size
        if cursor.is_newer:
            return cls(list(rows[-size:]), has_newer=more, has_older=True)
        return cls(list(rows[:size]), has_newer=cursor.before is not None, has_older=more)

    def pager(self, key: Callable[[Row], object], address: Callable[..., str]) -> Pager:
        """`address`: of the list with its filters, and with more of a query."""
        if not self.rows:
            return Pager()
        newest, oldest = str(key(self.rows[0])), str(key(self.rows[-1]))
        newer = address(after=newest) if self.has_newer else None
        return Pager(newer, address(before=oldest) if self.has_older else None)


def row_key(text: Any) -> RowKey:
    """`1700000000000000.42` as the key of a row of a list by time. Raises ValueError."""
    created_at, _, number = str(text).partition(".")
    parts = row_id(created_at), row_id(number)
    if parts[0] is None or parts[1] is None:
        raise ValueError
    return RowKey(Instant(parts[0]), parts[1])


def row_key_text(key: RowKey) -> str:
    return f"{key.created_at}.{key.id}"


#: The place of a row in a list by time.
Place = Annotated[RowKey, PlainValidator(row_key)]


class ById(Fields):
    """The query of a list in the order of its ids."""

    before: Lenient[RowId] = None
    after: Lenient[RowId] = None

    @property
    def cursor(self) -> Cursor[int]:
        return Cursor(self.before if self.after is None else None, self.after)


class ByTime(Fields):
    """The query of a list in the order of time. Raises ValidationError for an invalid place."""

    before: Place | None = None
    after: Place | None = None

    @property
    def cursor(self) -> Cursor[RowKey]:
        return Cursor(self.before if self.after is None else None, self.after)
