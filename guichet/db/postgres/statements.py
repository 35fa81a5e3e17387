"""What PostgreSQL needs of a statement: the schema in the name of every table, and a form for many rows.

What a statement means may not depend on `search_path`. Behind PgBouncer a connection keeps what an earlier client set
on it: after a `pg_dump` the path is empty, and every statement of Guichet that came to this connection failed
(docs/decisions.md, "Schema named").

A statement for one row becomes one for many, which runs in one round trip: its parameter is a JSON document with an
object for each row, and `json_to_recordset` makes a table of it (docs/decisions.md, "Array statements").
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec
from sqlalchemy import (
    JSON,
    Delete,
    Executable,
    Insert,
    Integer,
    LargeBinary,
    Select,
    Subquery,
    TableClause,
    Text,
    Update,
    bindparam,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg, PGIdentifierPreparer_asyncpg
from sqlalchemy.sql import visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BindParameter
from sqlalchemy.types import NullType, String, TypeEngine

from guichet.db.errors import ValueRefused
from guichet.db.statement_cache import ConstantsInText, StatementCache

#: The parameters of a statement for many rows, and the column that numbers them in their order.
_ROWS: Final = "rows"
_COUNT: Final = "count_of_rows"
_POSITION: Final = "position"
#: The schema of Guichet's tables and functions.
SCHEMA: Final = "public"


class _NamingTheSchema(PGIdentifierPreparer_asyncpg):
    def schema_for_object(self, named: Any) -> str | None:  # type: ignore[override]
        """Only tables have a schema: subqueries, aliases and rows of a function do not."""
        return SCHEMA if isinstance(named, TableClause) else named.schema


class _Compiler(ConstantsInText, PGDialect_asyncpg.statement_compiler):  # type: ignore[misc,valid-type]
    """PostgreSQL's own."""


class PostgresDialect(PGDialect_asyncpg):
    preparer = _NamingTheSchema
    statement_compiler = _Compiler
    supports_statement_cache = True


_DIALECT: Final = PostgresDialect()  # type: ignore[no-untyped-call]
#: Shared by every database that this process opens: the text of a statement depends on the dialect alone.
STATEMENTS: Final = StatementCache(_DIALECT)


class ArrayStatements(dict[Executable, Executable]):
    """By the statement for one row, the statement for many; each is made when it is first used.

    An INSERT must have a parameter for each column, of the column's name; it inserts in the order of the rows. A
    parameter of an UPDATE or a DELETE must have a type: that of the column it is compared with, or its own `type_`. No
    parameter may be bytes, which JSON does not have.
    """

    def __missing__(self, statement: Executable) -> Executable:
        for_many = self[statement] = _for_rows(statement)
        return for_many


def encode_rows(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The parameters of the statement for many rows. Raises ValueRefused for a value that no column can hold."""
    try:
        encoded = msgspec.json.encode([{**row, _POSITION: at} for at, row in enumerate(rows)])
    except (TypeError, OverflowError, UnicodeEncodeError) as error:  # Not its text: logs would show the value.
        raise ValueRefused(type(error).__name__) from None
    return {_ROWS: encoded.decode(), _COUNT: len(rows)}


def _for_rows(statement: Executable) -> Executable:
    assert isinstance(statement, Insert | Update | Delete)
    rows_table = _table_of(_types(statement))

    def in_table(element: Any, **_: Any) -> Any:
        return rows_table.c[element.key] if isinstance(element, BindParameter) and element.required else None

    if isinstance(statement, Insert):
        return _inserting(statement, rows_table, in_table)
    return cast(Update | Delete, visitors.replacement_traverse(statement, {}, in_table))


def _types(statement: Insert | Update | Delete) -> dict[str, TypeEngine[Any]]:
    compiled = statement.compile(dialect=_DIALECT)
    assert isinstance(compiled, SQLCompiler)
    types = {name: parameter.type for name, parameter in compiled.binds.items() if parameter.required}
    unusable = [name for name, type_ in types.items() if isinstance(type_, NullType | LargeBinary)]
    assert not unusable, f"parameters without a type, or bytes: {unusable}"
    # Without a length: a cast to VARCHAR(n) would silently cut off a text that the column would refuse.
    return {name: Text() if isinstance(type_, String) else type_ for name, type_ in types.items()}


def _table_of(types: dict[str, TypeEngine[Any]]) -> Subquery:
    columns = [column(name, type_) for name, type_ in types.items()]
    rows = func.json_to_recordset(bindparam(_ROWS, type_=JSON()))
    table = rows.table_valued(*columns, column(_POSITION, Integer())).render_derived("listed", with_types=True)
    # With a limit the planner expects ten rows and finds each by its key; otherwise a hundred, for which it prefers to
    # read all of a table that looks small. It may not know the limit: for one row it would plan each statement anew,
    # since a plan for all would look ten times as expensive.
    limit = select(bindparam(_COUNT, type_=Integer())).scalar_subquery()
    return select(*table.c).limit(limit).subquery("given")


def _inserting(statement: Insert, rows_table: Subquery, in_table: Callable[..., Any]) -> Insert:
    if statement.select is not None:  # INSERT … SELECT of one row under a condition.
        names = statement._select_names or []
        rows = cast(Select[Any], visitors.replacement_traverse(cast(Select[Any], statement.select), {}, in_table))
    else:
        names = [name for name in rows_table.c.keys() if name != _POSITION]  # noqa: SIM118 - not a dict
        rows = select(*(rows_table.c[name] for name in names))
    ordered = rows.order_by(rows_table.c[_POSITION])
    made = insert(statement.table).from_select(names, ordered, include_defaults=False)
    made._post_values_clause = statement._post_values_clause  # ON CONFLICT
    return made.returning(*statement._returning) if statement._returning else made
