"""Runs one compiled statement on a `sqlite3` connection, and translates the driver's values and errors."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from guichet.db.engine import Row
from guichet.db.sqlite_errors import DRIVER_ERRORS, translate
from guichet.db.statement_cache import CompiledStatement

#: Without an adapter of its own, each None parameter costs two exceptions that the driver raises and swallows.
sqlite3.register_adapter(type(None), {None: None}.get)


def execute(connection: sqlite3.Connection, compiled: CompiledStatement, values: Sequence[Any]) -> list[Row]:
    """The rows that the statement returns. Raises StorageError."""
    try:
        cursor = connection.execute(compiled.text, values)
        rows: list[Row] = cursor.fetchall()
    except DRIVER_ERRORS as error:
        raise translate(error, connection) from error
    if compiled.booleans and rows:
        return [_with_booleans(row, compiled.booleans) for row in rows]
    return rows


def execute_many(connection: sqlite3.Connection, compiled: CompiledStatement, rows: Sequence[Sequence[Any]]) -> None:
    """Runs a statement that returns nothing once for each row of values. Raises like `execute`."""
    try:
        connection.executemany(compiled.text, rows)
    except DRIVER_ERRORS as error:
        raise translate(error, connection) from error


def _with_booleans(row: Row, positions: tuple[int, ...]) -> Row:
    values = list(row)
    for position in positions:
        if values[position] is not None:
            values[position] = bool(values[position])
    return values
