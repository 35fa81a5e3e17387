"""What errors of `apsw` mean: which are ours (`errors.py`), and which column or file they are about."""

from collections.abc import Sequence
from typing import Final

import apsw
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

#: What says that the file is corrupt.
DAMAGE: Final = (apsw.CorruptError, apsw.NotADBError)
#: What the driver raises while a statement runs. Besides its own: an integer of more than 64 bits, half of a surrogate
#: pair, what is neither text nor number.
DRIVER_ERRORS: Final = (apsw.Error, OverflowError, UnicodeEncodeError, TypeError)

_CAUSES: Final[dict[type[Exception], type[StorageUnavailable]]] = {
    apsw.FullError: DiskFull,
    apsw.ReadOnlyError: ReadOnlyServer,
}


def translate(error: Exception, connection: apsw.Connection) -> StorageError:
    """An error of DRIVER_ERRORS as ours. `connection`: the one that raised it."""
    text = str(error)
    match error:
        case apsw.ConstraintError():
            return ConstraintViolated(_constraint_name(text))
        case apsw.CorruptError() | apsw.NotADBError():
            return DatabaseDamaged(connection.filename, text)
        case apsw.TooBigError() | OverflowError() | UnicodeEncodeError():
            return ValueRefused(type(error).__name__)
    if hasattr(error, "result"):  # SQLite's own; those of the driver have none.
        return _CAUSES.get(type(error), StorageUnavailable)(text)
    return StorageError(text)


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
