"""SQL that the two databases write differently."""

from typing import Any

from sqlalchemy import SelectBase
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import coercions, roles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Boolean, Text


class json_texts(ColumnElement[str]):  # noqa: N801 - reads as a SQL function
    """The texts of a JSON array parameter, as a subquery for IN: the portable form of `= ANY(:array)`."""

    inherit_cache = True

    def __init__(self, parameter: ColumnElement[str]) -> None:
        self.parameter = coercions.expect(roles.ExpressionElementRole, parameter)


class json_numbers(json_texts):  # noqa: N801 - reads as a SQL function
    """The whole numbers of a JSON array parameter, as a subquery for IN."""

    inherit_cache = True


class folded_name(FunctionElement[str]):  # noqa: N801 - reads as a SQL function
    """Two parts of a name with a space between, the letters A to Z small, other letters as they are: the same text in
    both databases, ordered by its bytes. Indexes hold exactly this expression."""

    inherit_cache = True
    name = "folded_name"
    type = Text()


class json_pairs(FunctionElement[Any]):  # noqa: N801 - reads as a SQL function
    """The names and values of a JSON object parameter, as a table with the columns `key` and `value`."""

    inherit_cache = True
    name = "json_pairs"


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


class lock_until_commit(ColumnElement[None]):  # noqa: N801 - reads as a SQL function
    """Waits until no other transaction holds the lock of this text, and holds it until the end of the transaction.

    Statements after this one see what the others committed. SQLite has one writer at a time and needs no lock.
    """

    inherit_cache = True

    def __init__(self, parameter: ColumnElement[str]) -> None:
        self.parameter = coercions.expect(roles.ExpressionElementRole, parameter)


@compiles(lock_until_commit, "sqlite")
def _lock_until_commit_sqlite(element: lock_until_commit, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.parameter, **kw)


@compiles(lock_until_commit, "postgresql")
def _lock_until_commit_postgresql(element: lock_until_commit, compiler: SQLCompiler, **kw: Any) -> str:
    parameter = compiler.process(element.parameter, **kw)
    return f"CAST(pg_advisory_xact_lock(hashtextextended(CAST({parameter} AS text), 0)) AS text)"


@compiles(in_materialized, "sqlite")
def _in_materialized_sqlite(element: in_materialized, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} IN ({compiler.process(element.subquery, **kw)})"


@compiles(in_materialized, "postgresql")
def _in_materialized_postgresql(element: in_materialized, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY (ARRAY({compiler.process(element.subquery, **kw)}))"


@compiles(folded_name, "sqlite")
def _folded_name_sqlite(element: folded_name, compiler: SQLCompiler, **kw: Any) -> str:
    first, last = (compiler.process(part, **kw) for part in element.clauses)
    return f"lower(coalesce({first}, '') || ' ' || coalesce({last}, ''))"


@compiles(folded_name, "postgresql")
def _folded_name_postgresql(element: folded_name, compiler: SQLCompiler, **kw: Any) -> str:
    first, last = (compiler.process(part, **kw) for part in element.clauses)
    return f"""lower((coalesce({first}, '') || ' ' || coalesce({last}, '')) COLLATE "C")"""


@compiles(json_pairs, "sqlite")
def _json_pairs_sqlite(element: json_pairs, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **kw)})"


@compiles(json_pairs, "postgresql")
def _json_pairs_postgresql(element: json_pairs, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_each_text(CAST({compiler.process(element.clauses, **kw)} AS json))"


@compiles(json_texts, "sqlite")
def _json_texts_sqlite(element: json_texts, compiler: SQLCompiler, **kw: Any) -> str:
    parameter = compiler.process(element.parameter, **kw)
    return f"(SELECT value FROM json_each({parameter}))"  # noqa: S608 - the parameter is a placeholder


@compiles(json_texts, "postgresql")
def _json_texts_postgresql(element: json_texts, compiler: SQLCompiler, **kw: Any) -> str:
    return f"(SELECT json_array_elements_text(CAST({compiler.process(element.parameter, **kw)} AS json)))"


@compiles(json_numbers, "postgresql")
def _json_numbers_postgresql(element: json_numbers, compiler: SQLCompiler, **kw: Any) -> str:
    parameter = compiler.process(element.parameter, **kw)
    return f"(SELECT CAST(json_array_elements_text(CAST({parameter} AS json)) AS bigint))"
