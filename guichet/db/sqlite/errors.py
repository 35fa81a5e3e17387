"""What errors of `sqlite3` mean: which are ours (`errors.py`), and which column or file they are about."""

import sqlite3
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Index, PrimaryKeyConstraint, UniqueConstraint

from guichet.db.errors import (
    ConstraintViolated,
    DatabaseDamaged,
    DiskFull,
    ReadOnlyServer,
    StorageError,
    StorageUnavailable,
    ValueRefused,
)
from guichet.db.tables import metadata

#: What the driver raises while a statement runs. The last two: an integer of more than 64 bits, half of a surrogate
#: pair.
DRIVER_ERRORS: Final = (sqlite3.Error, OverflowError, UnicodeEncodeError)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def translate(error: Exception, connection: sqlite3.Connection) -> StorageError:
    """An error of DRIVER_ERRORS as ours. `connection`: the one that raised it."""
    if not isinstance(error, sqlite3.Error) or isinstance(error, sqlite3.DataError):
        return ValueRefused(type(error).__name__)
    if isinstance(error, sqlite3.IntegrityError):
        return ConstraintViolated(_constraint_name(str(error)))
    if is_damage(error):
        return DatabaseDamaged(_file_of(connection), str(error))
    if result_code(error) == sqlite3.SQLITE_FULL:
        return DiskFull(str(error))
    if result_code(error) == sqlite3.SQLITE_READONLY:
        return ReadOnlyServer(str(error))
    return StorageUnavailable(str(error)) if isinstance(error, sqlite3.OperationalError) else StorageError(str(error))


def result_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 for an error of the Python module itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether it says that the file is corrupt."""
    return result_code(error) in _DAMAGED


def _file_of(connection: sqlite3.Connection) -> str:
    """The path of the database's file. The statement does not read the file."""
    try:
        (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    except sqlite3.Error:
        return "of GUICHET_DATABASE_URL"
    else:
        return str(path)


def _constraint_name(message: str) -> str:
    """From SQLite's `CHECK constraint failed: ck_name`, or `UNIQUE constraint failed: payments.merchant_id, …`, which
    names the columns only."""
    subject = message.partition(": ")[2]
    if message.startswith("UNIQUE") and "." in subject:
        table = subject.partition(".")[0]
        return _unique_constraint_on(table, [part.partition(".")[2] for part in subject.split(", ")])
    return subject or message


def _unique_constraint_on(table: str, columns: Sequence[str]) -> str:
    """The name of the primary key, unique constraint or unique index over these columns."""
    violated = metadata.tables[table]
    for candidate in (*violated.constraints, *violated.indexes):
        if isinstance(candidate, PrimaryKeyConstraint | UniqueConstraint | Index) and [
            c.name for c in candidate.columns
        ] == list(columns):
            return str(candidate.name)
    return f"{table}({', '.join(columns)})"
