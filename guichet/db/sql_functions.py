"""SQL that many statements share, or that the two databases write differently."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import BindParameter, FromClause, SelectBase, bindparam
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.dialects.sqlite.dml import OnConflictClause
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import coercions, roles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import BigInteger, Boolean, Integer, String, Text, TypeEngine, Uuid

#: INSERT … ON CONFLICT of SQLAlchemy's SQLite dialect: PostgreSQL's would import the dialect of PostgreSQL with its
#: drivers, two megabytes, in a server on SQLite. Both say the same, but for a conflict with a constraint of a given
#: name, which only PostgreSQL knows.
upsert: Final = sqlite_insert
#: PostgreSQL's compiler asks for the name of that constraint.
OnConflictClause.constraint_target = None  # type: ignore[attr-defined]


def columns(rows: FromClause, *names: str) -> list[ColumnElement[Any]]:
    return [rows.c[name] for name in names]


def params(*names: str) -> dict[str, BindParameter[Any]]:
    """The values of these columns, each from the parameter of its name."""
    return {name: bindparam(name) for name in names}


def new_columns(rows: FromClause) -> list[str]:
    """The columns of a new row: all but the id, which the database gives."""
    return [name for name in rows.c.keys() if name != "id"]  # noqa: SIM118 - not a dict


def new_row(rows: FromClause) -> dict[str, BindParameter[Any]]:
    """The values of an INSERT, each from the parameter of its column's name."""
    return params(*new_columns(rows))


def values_of(rows: FromClause, row: object) -> dict[str, Any]:
    """The parameters of `new_row`: the attributes of an object."""
    return {name: getattr(row, name) for name in new_columns(rows)}


def equal(rows: FromClause, *names: str, **others: str) -> list[ColumnElement[bool]]:
    """These columns have the values of the parameters of their names; `others`, of those that are named."""
    params = {name: name for name in names} | others
    return [rows.c[name] == bindparam(param) for name, param in params.items()]


class _Function(FunctionElement[Any]):
    """`sqlite`, `postgresql`: what each database reads, with `{0}` for the first argument, `{all}` for all of them."""

    inherit_cache = True
    sqlite: str
    postgresql: str


@compiles(_Function)
def _write_function(element: _Function, compiler: SQLCompiler, **kw: Any) -> str:
    pattern = element.sqlite if compiler.dialect.name == "sqlite" else element.postgresql
    arguments = [compiler.process(argument, **kw) for argument in element.clauses]
    return pattern.format(*arguments, all=", ".join(arguments))


#: What PostgreSQL makes of the values of a JSON array before it compares them with a column of this type.
_LISTED_AS: Final[Mapping[type[TypeEngine[Any]], str]] = {Integer: "bigint", Uuid: "uuid", String: "text"}


class is_listed(_Function):  # noqa: N801 - reads as a SQL operator
    """Whether the column's value is in the JSON array of a parameter: the portable form of `= ANY(:array)`. PostgreSQL
    reads the array once and finds each row by its key: for `IN`, which it believes to have a hundred values, it may
    read all of a table that is not much larger."""

    inherit_cache = True
    type = Boolean()
    sqlite = "{0} IN (SELECT value FROM json_each({1}))"

    def __init__(self, column: ColumnElement[Any], parameter: str) -> None:
        super().__init__(column, bindparam(parameter))
        listed = next(name for kind, name in _LISTED_AS.items() if isinstance(column.type, kind))
        self.postgresql = f"{{0}} = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST({{1}} AS json)) AS {listed})))"

    def self_group(self, against: Any = None) -> "is_listed":
        return self  # As `in_materialized`.


class json_pairs(_Function):  # noqa: N801 - reads as a SQL function
    """The names and values of a JSON object parameter, as a table with the columns `key` and `value`."""

    inherit_cache = True
    sqlite = "json_each({0})"
    postgresql = "json_each_text(CAST({0} AS json))"


class json_row(_Function):  # noqa: N801 - reads as a SQL function
    """Its arguments as a JSON array."""

    inherit_cache = True
    sqlite = "json_array({all})"
    postgresql = "json_build_array({all})"


class json_rows(_Function):  # noqa: N801 - reads as a SQL function
    """The text of a JSON array of the JSON in each row. A thread of SQLite's asks for the interpreter at each row that
    it hands over, and may wait while a page is written."""

    inherit_cache = True
    type = Text()
    sqlite = "json_group_array(json({0}))"
    postgresql = "CAST(COALESCE(json_agg({0}), '[]') AS text)"


class lock_until_commit(_Function):  # noqa: N801 - reads as a SQL function
    """Waits until no other transaction holds the lock of this text, and holds it until the end of the transaction.

    Statements after this one see what the others committed. SQLite has one writer at a time and needs no lock.
    """

    inherit_cache = True
    sqlite = "{0}"
    postgresql = "CAST(pg_advisory_xact_lock(hashtextextended(CAST({0} AS text), 0)) AS text)"


class transaction_id(_Function):  # noqa: N801 - reads as a SQL function
    """The number of this transaction, in the order in which transactions began to write."""

    inherit_cache = True
    type = BigInteger()
    sqlite = "0"
    postgresql = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"


class oldest_transaction(_Function):  # noqa: N801 - reads as a SQL function
    """Every transaction with a lower number has ended, so that nothing of it can still appear. SQLite has one writer at
    a time: what is committed is in the order of its ids."""

    inherit_cache = True
    type = BigInteger()
    sqlite = "1"
    postgresql = "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"


class in_materialized(ColumnElement[bool]):  # noqa: N801 - reads as a SQL operator
    """`column IN (SELECT …)` that the planner may not turn into a join: PostgreSQL reads the subquery once, then finds
    each row by its key."""

    inherit_cache = True
    type = Boolean()

    def __init__(self, column: ColumnElement[Any], subquery: SelectBase) -> None:
        self.column = coercions.expect(roles.ExpressionElementRole, column)
        self.subquery = subquery

    def self_group(self, against: Any = None) -> "in_materialized":
        return self  # In SQLAlchemy's own form SQLite compares the result with 1, and uses no index.


@compiles(in_materialized)
def _write_in(element: in_materialized, compiler: SQLCompiler, **kw: Any) -> str:
    pattern = "{0} IN ({1})" if compiler.dialect.name == "sqlite" else "{0} = ANY (ARRAY({1}))"
    return pattern.format(compiler.process(element.column, **kw), compiler.process(element.subquery, **kw))
