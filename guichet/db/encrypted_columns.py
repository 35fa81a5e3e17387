"""Every column whose texts are encrypted with `GUICHET_SECRET_KEYS`, for their rotation."""

from collections.abc import AsyncIterator
from typing import Any, Final

from sqlalchemy import Column, bindparam, select, update

from guichet.db.engine import Database
from guichet.db.tables import export_chunks, mails, merchant_document_chunks, staff_jobs, users, webhook_endpoints
from guichet.domain.records import Record


class _Statements:
    """Of one column, by the primary key of its table."""

    def __init__(self, column: Column[Any]) -> None:
        key = [*column.table.primary_key]
        row = [part == bindparam(f"of_{part.name}") for part in key]
        self.name: Final = str(column)
        self.params: Final = [f"of_{part.name}" for part in key]
        self.keys: Final = select(*key).where(column.is_not(None)).order_by(*key)
        self.read: Final = select(column).where(*row)
        changed = update(column.table).where(*row, column == bindparam("old"))
        self.replace: Final = changed.values({column: bindparam("new")}).returning(key[0])


#: A text may move on to another column meanwhile, encrypted as it is: its first column is read first.
_COLUMNS: Final = [
    _Statements(column)
    for column in (
        webhook_endpoints.c.secret,
        webhook_endpoints.c.old_secret,
        users.c.next_totp_secret,
        users.c.totp_secret,
        merchant_document_chunks.c.content,
        export_chunks.c.content,
        mails.c.message,
        staff_jobs.c.parameters,
        staff_jobs.c.result,
    )
]


class EncryptedText(Record, frozen=True):
    """`column`: as in `users.totp_secret`. `key`: the row's primary key."""

    column: str
    key: tuple[Any, ...]
    token: str


async def encrypted_texts(db: Database, table: str = "") -> AsyncIterator[EncryptedText]:
    """All that are stored, or those of one table, one by one. Grows with the database; for the command line."""
    for column in (candidate for candidate in _COLUMNS if candidate.name.startswith(table)):
        for key in await db.scan(column.keys):
            row = await db.one(column.read, **dict(zip(column.params, key, strict=True)))
            if row is not None and row[0] is not None:  # It was removed meanwhile.
                yield EncryptedText(column.name, tuple(key), row[0])


async def replace(db: Database, text: EncryptedText, token: str) -> bool:
    """The same text in another encryption; False when it was changed or removed meanwhile: that stays."""
    column = next(candidate for candidate in _COLUMNS if candidate.name == text.column)
    key = dict(zip(column.params, text.key, strict=True))
    return await db.write(column.replace, **key, old=text.token, new=token) is not None
