"""The simulator's SQLite file: a restart of the simulator loses nothing.

The table `transactions` is what a provider shows, the table `books` what it really moved. They are separate on purpose:
a scenario may falsify what a provider shows, never its books, and the conformance tests compare ours with the books.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import apsw

from guichet.clock import NEVER, Instant
from guichet_simulator.models import PENDING, SUCCEEDED, FinalState, QueuedCallback, Transaction

#: Kept in the file as `user_version`. A file of another version is emptied: it only holds play money.
SCHEMA_VERSION: Final = 4
_COLUMNS: Final = ", ".join(Transaction.__struct_fields__)


def undocumented_order(transactions: Sequence[Transaction]) -> list[Transaction]:
    """The order of a history or a search whose provider documents none: the same each time, and never newest first nor
    oldest first where it could be neither, so that a client that relies on one of them fails.
    """
    mixed = sorted(transactions, key=lambda tx: hashlib.sha256(f"{tx.id}:{tx.ref}".encode()).digest())
    newest_first = sorted(transactions, key=lambda tx: -tx.id)
    if len(mixed) > 1 and (mixed == newest_first or (len(mixed) > 2 and mixed == newest_first[::-1])):
        mixed = [*mixed[1:], mixed[0]]
    return mixed


class DuplicateRef(Exception):
    """The provider already has a transaction with this identifier."""


class Store:
    """Plain SQL statements; outside `begin` and `commit`, each one is durable when it returns."""

    def __init__(self, path: Path | None) -> None:
        """`path` None keeps everything in memory."""
        if path is not None:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            path.touch(0o600)  # SQLite gives its files beside it the same mode.
        self._db = apsw.Connection(str(path or ":memory:"))
        self._db.set_busy_timeout(5_000)
        # One plan for each statement: this build of SQLite would make a new one whenever a parameter has another value.
        self._db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY")
        self._create_tables()

    def _create_tables(self) -> None:
        if self._db.pragma("user_version") == SCHEMA_VERSION:
            return
        old = self.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        drops = "".join(f"DROP TABLE IF EXISTS {row['name']};" for row in old)
        schema = (resources.files("guichet_simulator") / "schema.sql").read_text(encoding="utf-8")
        # In one transaction: several processes start on a new file at the same time.
        self._db.execute(f"BEGIN IMMEDIATE; {drops} {schema} ; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")

    def close(self) -> None:
        self._db.close()

    def begin(self) -> None:
        """Makes one transaction of the statements until `commit`. The event loop's next turn ends it at the latest, so
        that other processes may write whenever this one waits."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
            asyncio.get_running_loop().call_soon(self.commit)

    def commit(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        cursor = self._db.execute(sql, args)
        cursor.row_trace = _by_name
        rows: list[Any] = cursor.fetchall()  # What `_by_name` made of them.
        return rows

    def run(self, sql: str, *args: Any) -> int:
        """The number of rows changed."""
        self._db.execute(sql, args)
        return self._db.changes()

    def insert(self, table: str, values: Mapping[str, Any]) -> int:
        """The new row's id."""
        self._db.execute(_insertion(table, values), tuple(values.values()))
        return self._db.last_insert_rowid()

    # Transactions

    def add(self, values: Mapping[str, Any]) -> Transaction:
        """Raises DuplicateRef when the provider already has a transaction with this `ref`."""
        values = {**values, "detail": json.dumps(values.get("detail", {}))}
        sql = f"{_insertion('transactions', values)} RETURNING {_COLUMNS}"
        try:
            [row] = self._db.execute(sql, tuple(values.values())).fetchall()
        except apsw.ConstraintError as fault:
            if "UNIQUE" not in str(fault):
                raise
            raise DuplicateRef(values["ref"]) from fault
        return _transaction(row)

    def get(self, transaction_id: int) -> Transaction:
        [transaction] = self.select("id = ?", transaction_id)
        return transaction

    def known(self, transaction_id: object) -> Transaction | None:
        return next(iter(self.select("id = ?", transaction_id)), None)

    def select(self, where: str, *args: Any) -> list[Transaction]:
        """Newest first. `where` is written in this package and never comes from a request."""
        # "+": SQLite would rather read the whole table in this order than use the index of the condition.
        sql = f"SELECT {_COLUMNS} FROM transactions WHERE {where} ORDER BY +id DESC"  # noqa: S608
        return [_transaction(row) for row in self._db.execute(sql, args)]

    def patch_detail(self, tx: Transaction, **changes: object) -> Transaction:
        self.run("UPDATE transactions SET detail = ? WHERE id = ?", json.dumps(self.get(tx.id).detail | changes), tx.id)
        return self.get(tx.id)

    def set_payer(self, tx: Transaction, phone: str) -> None:
        """Another number than the requested one pays, which is possible on a provider's page."""
        self.run("UPDATE transactions SET phone = ? WHERE id = ?", phone, tx.id)

    def settle(self, tx: Transaction, state: FinalState, reason: str | None, now: Instant) -> bool:
        """Make a pending transaction final, and write `books` if it succeeded. False when it was final already."""
        with self._db:
            changed = self.run(
                "UPDATE transactions SET state = ?, reason = ?, decided_at = ?, due_at = NULL"
                " WHERE id = ? AND state = 'pending'",
                state, reason, now, tx.id,
            )  # fmt: skip
            if changed and state == SUCCEEDED:
                self._add_to_books(tx, now)
        return bool(changed)

    def undo(self, tx: Transaction, state: FinalState, now: Instant) -> None:
        """Turn a final state into its opposite, and `books` with it."""
        with self._db:
            self.run("UPDATE transactions SET state = ?, reason = NULL, decided_at = ? WHERE id = ?", state, now, tx.id)
            self.run("DELETE FROM books WHERE transaction_id = ?", tx.id)
            if state == SUCCEEDED:
                self._add_to_books(tx, now)

    def _add_to_books(self, tx: Transaction, now: Instant) -> None:
        values = {name: getattr(tx, name) for name in ("provider", "kind", "client_ref", "amount", "currency")}
        self.insert("books", {"transaction_id": tx.id, **values, "at": now})

    def plan_decision(self, tx: Transaction, state: FinalState, reason: str | None, due_at: Instant) -> None:
        self.run(
            "UPDATE transactions SET planned_state = ?, planned_reason = ?, due_at = ?"
            " WHERE id = ? AND state = 'pending'",
            state, reason, due_at, tx.id,
        )  # fmt: skip

    def refunded_amount(self, debit: Transaction) -> int:
        """Hundredths that were given back for a debit, pending refunds included."""
        refunds = self.select("kind = 'credit' AND provider = ? AND parent = ?", debit.provider, debit.ref)
        return sum(refund.amount for refund in refunds if refund.state in (PENDING, SUCCEEDED))

    # Callbacks

    def callbacks(self, where: str, *args: Any) -> list[QueuedCallback]:
        """Oldest first."""
        rows = self.rows(f"SELECT * FROM callbacks WHERE {where} ORDER BY due_at, id", *args)  # noqa: S608
        return [_callback(row) for row in rows]

    def claim_callbacks(self, now: Instant, lease: Instant, limit: int) -> list[QueuedCallback]:
        """The `limit` oldest of those that are due, for an attempt that ends before `lease`."""
        rows = self.rows(
            "UPDATE callbacks SET due_at = ?, attempts = attempts + 1 WHERE id IN"
            " (SELECT id FROM callbacks WHERE due_at <= ? ORDER BY due_at, id LIMIT ?) RETURNING *",
            lease, now, limit,
        )  # fmt: skip
        return [_callback(row) for row in sorted(rows, key=itemgetter("id"))]

    def next_due(self) -> Instant:
        [row] = self.rows(
            "SELECT MIN(at) AS at FROM (SELECT MIN(due_at) AS at FROM transactions WHERE state = 'pending'"
            " UNION ALL SELECT MIN(due_at) FROM callbacks WHERE due_at IS NOT NULL)"
        )
        return Instant(row["at"] or NEVER)

    # Settings

    def setting(self, name: str) -> Any:
        rows = self.rows("SELECT value FROM settings WHERE name = ?", name)
        return json.loads(rows[0]["value"]) if rows else None

    def set_setting(self, name: str, value: object) -> None:
        self.run("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", name, json.dumps(value))

    def wipe(self, tables: Iterable[str]) -> None:
        for table in tables:
            self.run(f"DELETE FROM {table}")  # noqa: S608


def _insertion(table: str, values: Mapping[str, Any]) -> str:
    """Names of columns come from this package only; values are always parameters."""
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"  # noqa: S608


def _by_name(cursor: apsw.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {name: value for (name, _), value in zip(cursor.get_description(), row, strict=True)}


def _transaction(row: Sequence[Any]) -> Transaction:
    return Transaction(*[*row[:-1], json.loads(row[-1])])


def _callback(row: Mapping[str, Any]) -> QueuedCallback:
    return QueuedCallback(**{**row, "forged": bool(row["forged"])})
