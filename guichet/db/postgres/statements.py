"""What PostgreSQL needs of a statement: the schema in the name of every table, and a form for many rows.

What a statement means may not depend on `search_path`. Behind PgBouncer a connection keeps what an earlier client set
on it: after a `pg_dump` the path is empty, and every statement of Guichet that came to this connection failed
(docs/decisions.md, "Schema named").

A statement for one row becomes one for many, which runs in one round trip: each parameter is an array with one element
for each row, and `unnest` makes a table of the arrays.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

from sqlalchemy import (
    Delete,
    Executable,
    Insert,
    Select,
    TableClause,
    Text,
    Update,
    bindparam,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg, PGIdentifierPreparer_asyncpg
from sqlalchemy.sql import visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BindParameter
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.types import NullType, String, TypeEngine

from guichet.db.statement_cache import StatementCache

#: The column that numbers the rows of many in their order.
_POSITION: Final = "position"
#: The schema of Guichet's tables and functions.
SCHEMA: Final = "public"


class _NamingTheSchema(PGIdentifierPreparer_asyncpg):
    def schema_for_object(self, named: Any) -> str | None:  # type: ignore[override]
        """Only tables have a schema: subqueries, aliases and rows of a function do not."""
        return SCHEMA if isinstance(named, TableClause) else named.schema


class PostgresDialect(PGDialect_asyncpg):
    """Compiles a statement for asyncpg."""

    preparer = _NamingTheSchema
    supports_statement_cache = True


_DIALECT: Final = PostgresDialect()  # type: ignore[no-untyped-call]
#: Shared by every database that this process opens: the text of a statement depends on the dialect alone.
STATEMENTS: Final = StatementCache(_DIALECT)


class ArrayStatements(dict[Executable, Executable]):
    """By the statement for one row, the statement for many; each is made when it is first used.

    An INSERT must have a parameter for each column, of the column's name; it inserts in the order of the rows. A
    parameter of an UPDATE or a DELETE must have a type: that of the column it is compared with, or its own `type_`.
    """

    def __missing__(self, statement: Executable) -> Executable:
        for_many = self[statement] = _for_rows(statement)
        return for_many


def arrays(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The parameters of the statement for many rows."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def _for_rows(statement: Executable) -> Executable:
    assert isinstance(statement, Insert | Update | Delete)
    rows_table = _table_of(_types(statement))
    if isinstance(statement, Insert):
        return _inserting(statement, rows_table)

    def in_table(element: Any, **_: Any) -> Any:
        return rows_table.c[element.key] if isinstance(element, BindParameter) and element.required else None

    return cast(Update | Delete, visitors.replacement_traverse(statement, {}, in_table))


def _types(statement: Insert | Update | Delete) -> dict[str, TypeEngine[Any]]:
    compiled = statement.compile(dialect=_DIALECT)
    assert isinstance(compiled, SQLCompiler)
    types = {name: parameter.type for name, parameter in compiled.binds.items() if parameter.required}
    untyped = [name for name, type_ in types.items() if isinstance(type_, NullType)]
    assert not untyped, f"parameters without a type: {untyped}"
    # Without a length: a cast to VARCHAR(n) would silently cut off a text that the column would refuse.
    return {name: Text() if isinstance(type_, String) else type_ for name, type_ in types.items()}


def _table_of(types: dict[str, TypeEngine[Any]]) -> TableValuedAlias:
    rows = func.unnest(*(bindparam(name, type_=ARRAY(type_)) for name, type_ in types.items()))
    columns = (column(name, type_) for name, type_ in types.items())
    return rows.table_valued(*columns, with_ordinality=_POSITION).render_derived("given")


def _inserting(statement: Insert, rows_table: TableValuedAlias) -> Insert:
    names = [name for name in rows_table.c.keys() if name != _POSITION]  # noqa: SIM118 - not a dict
    rows: Select[Any] = select(*(rows_table.c[name] for name in names)).order_by(rows_table.c[_POSITION])
    made = insert(statement.table).from_select(names, rows, include_defaults=False)
    made._post_values_clause = statement._post_values_clause  # ON CONFLICT
    return made
