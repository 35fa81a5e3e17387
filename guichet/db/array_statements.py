"""PostgreSQL runs a statement faster once for many rows than many times for one: the rows come as arrays, one for each
parameter, and stand in the statement as a table."""

from collections.abc import Sequence
from typing import Any, Final, cast

from sqlalchemy import Delete, Executable, Insert, Select, Text, Update, bindparam, column, func, insert, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.asyncpg import dialect as postgresql_dialect
from sqlalchemy.sql import visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BindParameter
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.types import NullType, String, TypeEngine

_DIALECT: Final = postgresql_dialect()  # type: ignore[no-untyped-call]
#: The place of each row among those given.
_PLACE: Final = "place"


class ArrayStatements:
    """Makes the statement for many rows out of the one for a single row, once for each.

    An INSERT must give each column a parameter of its name; it inserts in the order of the rows. A parameter of an
    UPDATE or a DELETE must have a type, by the column it meets or by its own `type_`.
    """

    def __init__(self) -> None:
        self._made: dict[Executable, Executable] = {}

    def __getitem__(self, statement: Executable) -> Executable:
        made = self._made.get(statement)
        if made is None:
            made = self._made[statement] = _for_rows(statement)
        return made


def arrays(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The parameters of such a statement."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def _for_rows(statement: Executable) -> Executable:
    assert isinstance(statement, Insert | Update | Delete)
    given = _table_of(_types(statement))
    if isinstance(statement, Insert):
        return _inserting(statement, given)

    def in_table(element: Any, **_: Any) -> Any:
        return given.c[element.key] if isinstance(element, BindParameter) and element.required else None

    return cast(Update | Delete, visitors.replacement_traverse(statement, {}, in_table))


def _types(statement: Insert | Update | Delete) -> dict[str, TypeEngine[Any]]:
    compiled = statement.compile(dialect=_DIALECT)
    assert isinstance(compiled, SQLCompiler)
    types = {name: parameter.type for name, parameter in compiled.binds.items() if parameter.required}
    untyped = [name for name, type_ in types.items() if isinstance(type_, NullType)]
    assert not untyped, f"parameters without a type: {untyped}"
    # A cast to VARCHAR(n) cuts off in silence what a column would refuse.
    return {name: Text() if isinstance(type_, String) else type_ for name, type_ in types.items()}


def _table_of(types: dict[str, TypeEngine[Any]]) -> TableValuedAlias:
    rows = func.unnest(*(bindparam(name, type_=ARRAY(type_)) for name, type_ in types.items()))
    columns = (column(name, type_) for name, type_ in types.items())
    return rows.table_valued(*columns, with_ordinality=_PLACE).render_derived("given")


def _inserting(statement: Insert, given: TableValuedAlias) -> Insert:
    names = [name for name in given.c.keys() if name != _PLACE]  # noqa: SIM118 - not a dict
    rows: Select[Any] = select(*(given.c[name] for name in names)).order_by(given.c[_PLACE])
    made = insert(statement.table).from_select(names, rows, include_defaults=False)
    made._post_values_clause = statement._post_values_clause  # ON CONFLICT
    return made
