"""What storage means to the rest of the house: one interface, two databases behind it.

Statements are SQLAlchemy Core, written once; each is compiled once per database and its text handed straight to the
driver (`sqlite.py`, `postgres.py`). A statement must therefore be a module constant or come from a cached builder.
Rows are tuples in the order of the selected columns.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import ClauseElement, Executable, Index, Insert, PrimaryKeyConstraint, SelectBase, UniqueConstraint
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import coercions, roles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import Boolean

from guichet.db.tables import metadata

#: Tuple-like: it unpacks and indexes. Each driver has a class of its own for it.
Row = Any

T = TypeVar("T")


class StorageError(Exception):
    """The database did not do what was asked; nothing of the transaction was kept."""


class StorageUnavailable(StorageError):
    """The database cannot be reached or stayed busy for too long.

    Where the answer to a write or a commit was lost on the way, it may have happened all the same: whoever repeats it
    must rely on a constraint or a condition, as everything here does.
    """


class ConstraintViolated(StorageError):
    """A named constraint refused a row; `name` is the constraint's."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class Reader(Protocol):
    """Whoever can answer a question: a database (what is committed) or a transaction (its own writes too)."""

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        """A point read: the first row, or None."""

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        """A read of a few rows through an index."""


class Writer(Protocol):
    """Whoever can run one writing statement: a transaction, or a database that makes one of it."""

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        """The first row it returns, if any."""

    async def execute_returning(self, statement: Executable, **params: Any) -> list[Row]:
        """All rows it returns."""

    async def execute_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        """What the statement does for each of `rows`, all or none, in one round trip; none for no rows.

        Rows are inserted in their order. No two of `rows` may change the same row of the table: what happens to it
        then depends on the database. What a statement must be for this stands in `unnested.py`.
        """


class Transaction(Reader, Writer, Protocol):
    """Statements that happen together or not at all. A body awaits nothing but these."""

    async def execute_many_returning(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        """As `execute_many`; what it returned for each of `rows`, in no order."""


class Database(Reader, Writer, Protocol):
    """Either database. Every write is durable when its call returns."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Commits when the block ends, rolls back when it raises; never await the network inside."""

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        """A read that may take long (lists, counts, audits): never on the event loop."""

    async def wait_for_replication(self) -> None:
        """Returns when all that was committed before is where a commit waits to be: on disk, and on a synchronous
        standby where there is one. What stands on the primary alone is seen by every read."""

    def pool_use(self) -> tuple[int, int] | None:
        """Connections of this process in use, and the most there can be; None where there is no pool."""

    async def announce(self, topic: str) -> None:
        """Tells every process that listens on this database; nothing where there is no other process."""

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        """Calls `connected` once from now on nothing is missed, then `heard` with each topic announced.

        Raises StorageUnavailable when the connection is lost; returns at once where nothing can be heard.
        """


def require(value: T | None) -> T:
    """What must be there: the row of an INSERT … RETURNING, of a primary key that is referenced."""
    assert value is not None
    return value


_NUMBER: Final = " RETURNING id"


class Compiled:
    """A statement's text for one database, and how to lay out its parameters and rows."""

    __slots__ = ("_defaults", "_pick", "booleans", "numbers", "text")

    def __init__(self, statement: Executable, dialect: DefaultDialect) -> None:
        assert isinstance(statement, ClauseElement)
        compiled = statement.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        text = str(compiled)
        #: On SQLite, where RETURNING costs two temporary tables, an INSERT that returns no more than the number of its
        #: row is run without: the driver knows the number.
        self.numbers: Final = dialect.name == "sqlite" and isinstance(statement, Insert) and text.endswith(_NUMBER)
        self.text: Final[str] = text.removesuffix(_NUMBER) if self.numbers else text
        self._defaults: Final[dict[str, Any]] = dict(compiled.params)
        self._pick: Final = _in_order(tuple(compiled.positiontup or ()))
        columns = compiled._result_columns
        self.booleans: Final = tuple(i for i, column in enumerate(columns) if isinstance(column.type, Boolean))

    def positional(self, params: dict[str, Any]) -> Sequence[Any]:
        """What is not given has the statement's own value."""
        if params.keys() >= self._defaults.keys():
            return self._pick(params)
        return self._pick({**self._defaults, **params})


def _in_order(names: tuple[str, ...]) -> Callable[[dict[str, Any]], Sequence[Any]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: [values[name] for name in names]


class StatementCache:
    """Compiles each statement object once."""

    def __init__(self, dialect: DefaultDialect) -> None:
        self._dialect = dialect
        self._compiled: dict[Executable, Compiled] = {}

    def __getitem__(self, statement: Executable) -> Compiled:
        compiled = self._compiled.get(statement)
        if compiled is None:
            compiled = self._compiled[statement] = Compiled(statement, self._dialect)
        return compiled


class json_texts(ColumnElement[str]):  # noqa: N801 - reads as a SQL function
    """The texts of a JSON array parameter, as a subquery for IN: the portable form of `= ANY(:array)`."""

    inherit_cache = True

    def __init__(self, parameter: ColumnElement[str]) -> None:
        self.parameter = coercions.expect(roles.ExpressionElementRole, parameter)


class json_numbers(json_texts):  # noqa: N801 - reads as a SQL function
    """The same of an array of whole numbers."""

    inherit_cache = True


class one_of(ColumnElement[bool]):  # noqa: N801 - reads as a SQL operator
    """`column IN (SELECT …)` that the planner may not turn into a join: PostgreSQL reads the subquery once, then each
    row by its key."""

    inherit_cache = True
    type = Boolean()

    def __init__(self, column: ColumnElement[Any], found: SelectBase) -> None:
        self.column = coercions.expect(roles.ExpressionElementRole, column)
        self.found = found

    def self_group(self, against: Any = None) -> "one_of":
        return self  # SQLite would be asked whether it equals 1, and use no index.


@compiles(one_of, "sqlite")
def _one_of_sqlite(element: one_of, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} IN ({compiler.process(element.found, **kw)})"


@compiles(one_of, "postgresql")
def _one_of_postgresql(element: one_of, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY (ARRAY({compiler.process(element.found, **kw)}))"


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


def unique_constraint_on(table: str, columns: Sequence[str]) -> str:
    """The name of the key, unique constraint or unique index over these columns (SQLite reports columns, not names)."""
    found = metadata.tables[table]
    for candidate in (*found.constraints, *found.indexes):
        if isinstance(candidate, PrimaryKeyConstraint | UniqueConstraint | Index) and [
            c.name for c in candidate.columns
        ] == list(columns):
            return str(candidate.name)
    return f"{table}({', '.join(columns)})"
