"""Runs statements on an `apsw` connection, and translates the driver's values and errors."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

import apsw
from sqlalchemy import Executable
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.engine.default import DefaultDialect

from guichet.db.engine import Row, RowStatement, Transaction
from guichet.db.sqlite.errors import DRIVER_ERRORS, translate
from guichet.db.statement_cache import CompiledStatement, ConstantsInText, StatementCache


class _Compiler(ConstantsInText, SQLiteCompiler):
    """SQLite's own."""


def _dialect() -> DefaultDialect:
    dialect = sqlite_dialect(paramstyle="qmark")
    dialect.statement_compiler = _Compiler
    return dialect


#: Shared by every database that this process opens: the text of a statement depends on the dialect alone.
STATEMENTS: Final = StatementCache(_dialect())
#: How many rows one statement takes, the larger numbers first; a text for each number of rows would fill the cache.
#: Each INSERT looks for the table's highest id among those of all tables and writes it back, each UPDATE makes a
#: temporary table of the values that a CHECK admits; either costs more than a row. And each statement with a trigger or
#: RETURNING copies every page that it changes before the first change, to undo itself alone: for one payment, the pages
#: of ten indexes, half of what its INSERT takes.
_SIZES: Final = (64, 32, 16, 8, 4, 2, 1)
MOST_TOGETHER: Final = _SIZES[0]
#: An INSERT of one row whose parameters are its values.
_INSERT: Final = re.compile(r"(INSERT INTO [^?]* VALUES )(\((?:\?, )*\?\))([^?]*)")
#: An UPDATE without a subquery. What it returns are columns of the table, without parameters.
_UPDATE: Final = re.compile(
    r"(UPDATE \w+ SET )((?:(?!SELECT).)*)(\sWHERE )((?:(?!SELECT|RETURNING).)*)((?:RETURNING [\w, ]+)?)\s*", re.DOTALL
)


class SqliteTransaction(Transaction):
    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = STATEMENTS[statement]
        return execute(self._connection, compiled, compiled.positional(params))

    write_all = all  # noqa: A003 - the method above

    async def write_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        compiled = STATEMENTS[statement]
        return execute_many(self._connection, compiled, [compiled.positional(params) for params in rows])

    async def write_rows(self, statement: RowStatement, rows: Sequence[Sequence[Any]]) -> list[Row]:
        compiled = STATEMENTS[statement.statement]
        assert compiled.names == statement.names
        return execute_many(self._connection, compiled, rows)


def execute(
    connection: apsw.Connection, compiled: CompiledStatement, values: Sequence[Any], text: str | None = None
) -> list[Row]:
    """The rows that the statement returns. Raises StorageError. `text`: that for more than one row."""
    try:
        rows: list[Row] = connection.execute(text or compiled.text, values).fetchall()
    except DRIVER_ERRORS as error:
        raise translate(error, connection) from error
    if compiled.booleans and rows:
        return [_with_booleans(row, compiled.booleans) for row in rows]
    return rows


def execute_many(connection: apsw.Connection, compiled: CompiledStatement, rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Runs the statement once for each row of values; the rows that it returned. Raises like `execute`."""
    returned, start = [], 0
    while start < len(rows):
        end = start + how_many_together(compiled, len(rows) - start)
        returned += execute_together(connection, compiled, rows[start:end])
        start = end
    return returned


def execute_together(
    connection: apsw.Connection, compiled: CompiledStatement, rows: Sequence[Sequence[Any]]
) -> list[Row]:
    """Runs the statement for as many rows as `how_many_together` says, all or none; the rows that it returned. Raises
    like `execute`."""
    if len(rows) == 1:
        return execute(connection, compiled, rows[0])
    text = _of_many_rows(compiled.text)[len(rows)]
    return execute(connection, compiled, [*chain.from_iterable(rows)], text)


def how_many_together(compiled: CompiledStatement, rows: int) -> int:
    """How many of these rows one run of the statement may take, at least one."""
    return next(size for size in _of_many_rows(compiled.text) if size <= rows)


@cache
def _of_many_rows(text: str) -> Mapping[int, str]:
    """The statement for each number of rows that it may take at once, the largest first."""
    if parts := _INSERT.fullmatch(text):
        head, row, tail = parts.groups()
        return {size: f"{head}{', '.join([row] * size)}{tail}" for size in _SIZES}
    if parts := _UPDATE.fullmatch(text):
        return {size: _update_from(parts, size) if size > 1 else text for size in _SIZES}
    return {1: text}


def _update_from(parts: re.Match[str], size: int) -> str:
    """The UPDATE for `size` rows: each parameter becomes a column of a table that has a row for each of them."""
    update, changes, where, condition, returning = parts.groups()
    columns = [f"p{position}" for position in range(f"{changes}{condition}".count("?"))]
    names = iter(columns)
    changes, condition = (re.sub(r"\?", lambda _: f"given.{next(names)}", part) for part in (changes, condition))
    row = f"({', '.join('?' * len(columns))})"
    given = f"WITH given({', '.join(columns)}) AS (VALUES {', '.join([row] * size)}) "
    return f"{given}{update}{changes} FROM given{where}{condition}{returning}"


def _with_booleans(row: Row, positions: tuple[int, ...]) -> Row:
    values = list(row)
    for position in positions:
        if values[position] is not None:
            values[position] = bool(values[position])
    return values
