"""The simulator's SQLite file: a restart of the simulator loses nothing.

The table `transactions` is what a provider shows, the table `books` what it really moved. They are separate on purpose:
a scenario may falsify what a provider shows, never its books, and the conformance tests compare ours with the books.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any, Final

import apsw

from guichet.clock import Instant
from guichet_simulator.models import PENDING, SUCCEEDED, FinalState, Kind, QueuedCallback, Transaction

#: Kept in the file as `user_version`. A file of another version is emptied: it only holds play money.
SCHEMA_VERSION: Final = 4
_COLUMNS: Final = tuple(field.name for field in fields(Transaction))


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
    """Plain SQL statements; each one is durable when it returns."""

    def __init__(self, path: Path | None) -> None:
        """`path` None keeps everything in memory."""
        if path is not None:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            path.touch(0o600)  # SQLite gives its files beside it the same mode.
        self._db = apsw.Connection(str(path or ":memory:"))
        self._db.row_trace = _by_name
        self._db.set_busy_timeout(5_000)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
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

    def rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        rows: list[Any] = self._db.execute(sql, args).fetchall()  # What `_by_name` made of them.
        return rows

    def run(self, sql: str, *args: Any) -> int:
        """The number of rows changed."""
        self._db.execute(sql, args)
        return self._db.changes()

    def insert(self, table: str, values: Mapping[str, Any]) -> int:
        """The new row's id. Names of columns come from this package only; values are always parameters."""
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        self._db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values()))  # noqa: S608
        return self._db.last_insert_rowid()

    # Transactions

    def add(self, values: Mapping[str, Any]) -> Transaction:
        """Raises DuplicateRef when the provider already has a transaction with this `ref`."""
        try:
            row = self.insert("transactions", {**values, "detail": json.dumps(values.get("detail", {}))})
        except apsw.ConstraintError as fault:
            if "UNIQUE" not in str(fault):
                raise
            raise DuplicateRef(values["ref"]) from fault
        return self.get(row)

    def get(self, transaction_id: int) -> Transaction:
        [transaction] = self.select("id = ?", transaction_id)
        return transaction

    def find(self, provider: str, kind: Kind, ref: str, resource: str, company: str) -> Transaction | None:
        where = "provider = ? AND kind = ? AND resource = ? AND ref = ? AND company = ?"
        return next(iter(self.select(where, provider, kind, resource, ref, company)), None)

    def select(self, where: str, *args: Any) -> list[Transaction]:
        """Newest first. `where` is written in this package and never comes from a request."""
        # "+": SQLite would rather read the whole table in this order than use the index of the condition.
        sql = f"SELECT * FROM transactions WHERE {where} ORDER BY +id DESC"  # noqa: S608
        return [_transaction(row) for row in self.rows(sql, *args)]

    def patch_detail(self, tx: Transaction, **changes: object) -> Transaction:
        self.run("UPDATE transactions SET detail = ? WHERE id = ?", json.dumps(self.get(tx.id).detail | changes), tx.id)
        return self.get(tx.id)

    def set_payer(self, tx: Transaction, phone: str) -> None:
        """Another number than the requested one pays, which is possible on a provider's page."""
        self.run("UPDATE transactions SET phone = ? WHERE id = ?", phone, tx.id)

    def settle(self, tx: Transaction, state: FinalState, reason: str | None, now: Instant) -> bool:
        """Make a pending transaction final, and write `books` if it succeeded. False when it was final already."""
        self._db.execute("BEGIN IMMEDIATE")
        changed = self.run(
            "UPDATE transactions SET state = ?, reason = ?, decided_at = ?, due_at = NULL"
            " WHERE id = ? AND state = 'pending'",
            state, reason, now, tx.id,
        )  # fmt: skip
        if changed and state == SUCCEEDED:
            values = {name: getattr(tx, name) for name in ("provider", "kind", "client_ref", "amount", "currency")}
            self.insert("books", {"transaction_id": tx.id, **values, "at": now})
        self._db.execute("COMMIT")
        return bool(changed)

    def undo(self, tx: Transaction, state: FinalState, now: Instant) -> None:
        """Turn a final state into its opposite, and `books` with it."""
        self._db.execute("BEGIN IMMEDIATE")
        self.run("UPDATE transactions SET state = ?, reason = NULL, decided_at = ? WHERE id = ?", state, now, tx.id)
        self.run("DELETE FROM books WHERE transaction_id = ?", tx.id)
        if state == SUCCEEDED:
            values = {name: getattr(tx, name) for name in ("provider", "kind", "client_ref", "amount", "currency")}
            self.insert("books", {"transaction_id": tx.id, **values, "at": now})
        self._db.execute("COMMIT")

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

    def callbacks(self, where: str, *args: Any, limit: int = -1) -> list[QueuedCallback]:
        """Oldest first, at most `limit` unless it is negative."""
        sql = f"SELECT * FROM callbacks WHERE {where} ORDER BY due_at, id LIMIT {limit}"  # noqa: S608
        return [QueuedCallback(**{**row, "forged": bool(row["forged"])}) for row in self.rows(sql, *args)]

    def next_due(self) -> Instant | None:
        [row] = self.rows(
            "SELECT MIN(at) AS at FROM (SELECT MIN(due_at) AS at FROM transactions WHERE state = 'pending'"
            " UNION ALL SELECT MIN(due_at) FROM callbacks WHERE due_at IS NOT NULL)"
        )
        at: Instant | None = row["at"]
        return at

    # Settings

    def setting(self, name: str) -> Any:
        rows = self.rows("SELECT value FROM settings WHERE name = ?", name)
        return json.loads(rows[0]["value"]) if rows else None

    def set_setting(self, name: str, value: object) -> None:
        self.run("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", name, json.dumps(value))

    def wipe(self, tables: Iterable[str]) -> None:
        for table in tables:
            self.run(f"DELETE FROM {table}")  # noqa: S608


def _by_name(cursor: apsw.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {name: value for (name, _), value in zip(cursor.get_description(), row, strict=True)}


def _transaction(row: Mapping[str, Any]) -> Transaction:
    values = {name: row[name] for name in _COLUMNS}
    return Transaction(**{**values, "detail": json.loads(values["detail"])})
