"""What the two databases can do (`sqlite/`, `postgres/`); `guichet/db/__init__.py` shows how a feature uses it.

Statements are SQLAlchemy Core, written once for both. Each is compiled once per database, and its text is handed to the
driver (`statement_cache.py`): a statement must be a module constant or come from a cached builder. Rows are tuples in
the order of the selected columns. Errors: `errors.py`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Executable

from guichet.domain.records import Record

#: A tuple, or the driver's own class that unpacks and indexes like one.
Row = Any

T = TypeVar("T")


class PoolUse(NamedTuple):
    """Connections of a pool that are in use, and the most it may have."""

    used: int
    most: int


class GroupedWrite(Record, frozen=True):
    """A statement that writes one row, for `Database.write_grouped`: what many tasks write at the same time, each its
    own row, may go as one statement for all of them. `postgres/statements.py` says which statements can.

    `key`: the parameter that tells the rows apart; what the statement returns begins with its value.

    `names`: of an INSERT of whole rows, the parameters in the order of the columns (`Database.insert_grouped`).

    `claim`: runs before it, with the same parameters and in the same transaction, and returns the keys that may be
    written. `release` undoes the claim of a key whose row was not written after all.
    """

    statement: Executable
    key: str
    names: tuple[str, ...] = ()
    claim: Executable | None = None
    release: Executable | None = None


class RowStatement(Record, frozen=True):
    """A statement for one row of a table, and its parameters in the order in which its text on SQLite names them: an
    INSERT names columns in their order, an UPDATE first those that it sets and then those of its condition."""

    statement: Executable
    names: tuple[str, ...]


class Reader(ABC):
    """What can read: a database (committed rows) or a transaction (its own writes too)."""

    __slots__ = ()

    @abstractmethod
    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        """A few rows, read through an index."""

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        """The first row, or None."""
        rows = await self.all(statement, **params)
        return rows[0] if rows else None

    async def one_as(self, kind: Callable[..., T], statement: Executable, /, **params: Any) -> T | None:
        """The first row as an object, made from its columns in their order; None without a row."""
        row = await self.one(statement, **params)
        return kind(*row) if row else None


class Writer(ABC):
    """What can write: a transaction, or a database that makes a transaction of the one statement."""

    __slots__ = ()

    @abstractmethod
    async def write_all(self, statement: Executable, **params: Any) -> list[Row]:
        """All rows that the statement returns."""

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        """The first row that the statement returns, if any."""
        rows = await self.write_all(statement, **params)
        return rows[0] if rows else None

    async def write_as(self, kind: Callable[..., T], statement: Executable, /, **params: Any) -> T | None:
        """As `Reader.one_as`."""
        row = await self.write(statement, **params)
        return kind(*row) if row else None

    @abstractmethod
    async def write_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        """Runs the statement for each of `rows`, all or none, in one round trip; the rows that it returned, in no
        order. Nothing happens for no rows.

        Rows are inserted in their order. No two of `rows` may change the same row of the table: the result would depend
        on the database. `postgres/statements.py` says which statements can be used.
        """


class Transaction(Reader, Writer):
    """Statements that are committed together or not at all. Its block may await nothing but these methods."""

    __slots__ = ()

    async def write_rows(self, statement: RowStatement, rows: Sequence[Sequence[Any]]) -> list[Row]:
        """As `write_many`, of rows whose values stand in the order of `statement.names`: a dict for each row takes as
        long as SQLite takes for a column of it."""
        named = [dict(zip(statement.names, row, strict=True)) for row in rows]
        return await self.write_many(statement.statement, named)


class Database(Reader, Writer):
    """Either database. Every write is durable when its call returns."""

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Commits when the block ends, rolls back when it raises. Never await the network in the block."""

    @abstractmethod
    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        """A read that may take long (lists, counts, audits); it does not block the event loop."""

    async def write_grouped(self, group: GroupedWrite, params: dict[str, Any]) -> Row | None:
        """As `write`. What is written so at the same time shares one statement and one commit where each costs a round
        trip; an error concerns the row that caused it alone. A dict: handing on values by their names takes long."""
        rows = await self.write_group(group, {params[group.key]: params})
        return rows[0] if rows else None

    async def find_grouped(self, statement: Executable, key: str) -> Row | None:
        """The row of this key, where many tasks look for one each: `statement` returns the rows of the keys in its
        parameter `keys`, one for each at most, and their key first. Where a statement costs a round trip, it waits a
        moment (GATHERED_WITHIN) and is shared: only for what nobody waits for."""
        return await self.one(statement, keys=json.dumps([key]))

    async def insert_grouped(self, group: GroupedWrite, row: Sequence[Any]) -> Row | None:
        """As `write_grouped`, of a row whose values stand in the order of `group.names`. The 45 values of a payment as
        a dict take 3 % of its creation on SQLite."""
        return await self.write_grouped(group, dict(zip(group.names, row, strict=True)))

    async def write_group(self, group: GroupedWrite, by_key: dict[Any, dict[str, Any]]) -> list[Row]:
        """Writes these rows in one transaction, only those that the `claim` lets be written. What the statement
        returned."""
        if group.claim is None or group.release is None:
            if len(by_key) > 1:
                return await self.write_many(group.statement, list(by_key.values()))
            (params,) = by_key.values()
            return await self.write_all(group.statement, **params)
        rows: list[Row] = []
        async with self.transaction() as tx:
            waiting = by_key
            while waiting:
                claimed = {row[0] for row in await tx.write_many(group.claim, list(waiting.values()))}
                written = await tx.write_many(group.statement, [waiting[key] for key in sorted(claimed)])
                released = claimed - {row[0] for row in written}
                await tx.write_many(group.release, [waiting[key] for key in released])
                rows += written
                if not released:
                    break
                # Another of these rows may claim what was released.
                waiting = {key: params for key, params in waiting.items() if key not in claimed}
        return rows

    # The rest concerns standbys and other processes. An embedded database has neither, so nothing happens.

    async def write_locally(self, statement: Executable, **params: Any) -> Row | None:
        """As `write`, but durable on this server alone: the commit does not wait for a synchronous standby. Only for
        rows that a check leaves behind, which nobody misses if they are lost with the server."""
        return await self.write(statement, **params)

    async def wait_for_replication(self) -> None:
        """Returns when everything that was committed before is as durable as a commit of ours: on disk, and on the
        synchronous standby if there is one. Reads also see what is on the primary alone so far."""

    def pool_use(self) -> dict[str, PoolUse]:
        """The pools of connections of this process by their names."""
        return {}

    async def announce(self, topic: str) -> None:
        """Sends `topic` to every process that listens on this database."""

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        """Calls `connected` once the process is listening, then `heard` with each topic announced.

        Raises StorageUnavailable when the connection is lost; returns at once where there is nothing to listen to: the
        loops of an embedded database are woken by their own process, and look once a second for another one.
        """


def require(value: T | None) -> T:
    """`value`, which cannot be None here: the row of an INSERT … RETURNING, or of a primary key that is referenced."""
    assert value is not None
    return value
