"""Runs one compiled statement on a `sqlite3` connection, and translates the driver's errors and values."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Index, PrimaryKeyConstraint, UniqueConstraint

from guichet.db.engine import Row
from guichet.db.errors import ConstraintViolated, StorageUnavailable
from guichet.db.statement_cache import CompiledStatement
from guichet.db.tables import metadata

#: Without an adapter of its own, each None parameter costs two exceptions that the driver raises and swallows.
sqlite3.register_adapter(type(None), {None: None}.get)


def execute(connection: sqlite3.Connection, compiled: CompiledStatement, values: Sequence[Any]) -> list[Row]:
    """The rows that the statement returns. Raises ConstraintViolated, StorageUnavailable."""
    try:
        cursor = connection.execute(compiled.text, values)
        rows: list[Row] = cursor.fetchall()
    except sqlite3.Error as error:
        raise _translated(error) from error
    if compiled.booleans and rows:
        return [_with_booleans(row, compiled.booleans) for row in rows]
    return rows


def execute_many(connection: sqlite3.Connection, compiled: CompiledStatement, rows: Sequence[Sequence[Any]]) -> None:
    """Runs a statement that returns nothing once for each row of values. Raises like `execute`."""
    try:
        connection.executemany(compiled.text, rows)
    except sqlite3.Error as error:
        raise _translated(error) from error


def _translated(error: sqlite3.Error) -> Exception:
    if isinstance(error, sqlite3.IntegrityError):
        return ConstraintViolated(_constraint_name(str(error)))
    return StorageUnavailable(str(error)) if isinstance(error, sqlite3.OperationalError) else error


def _with_booleans(row: Row, positions: tuple[int, ...]) -> Row:
    values = list(row)
    for position in positions:
        if values[position] is not None:
            values[position] = bool(values[position])
    return values


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
    found = metadata.tables[table]
    for candidate in (*found.constraints, *found.indexes):
        if isinstance(candidate, PrimaryKeyConstraint | UniqueConstraint | Index) and [
            c.name for c in candidate.columns
        ] == list(columns):
            return str(candidate.name)
    return f"{table}({', '.join(columns)})"
