"""What the operators remember: one small SQLite file, so that a restart of the simulator forgets nothing.

`transactions` is what an operator shows; `books` is what it really moved. They are kept apart on purpose: an operator
may answer nonsense about a transaction, its books never lie, and conformance tests are judged by the books.
Amounts are hundredths of the main unit, times are microseconds (`guichet.clock.Instant`).
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

Kind = Literal["debit", "credit"]
State = Literal["pending", "succeeded", "failed", "expired"]

PENDING: Final = "pending"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
EXPIRED: Final = "expired"

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS transactions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    family TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('debit', 'credit')),
    operator TEXT NOT NULL,
    ref TEXT NOT NULL,
    client_ref TEXT,
    phone TEXT,
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency TEXT NOT NULL,
    shown_amount INTEGER,
    shown_currency TEXT,
    state TEXT NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed', 'expired')),
    reason TEXT,
    parent TEXT,
    scenario TEXT NOT NULL,
    plan TEXT,
    plan_reason TEXT,
    due_at INTEGER,
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    callback_url TEXT,
    detail TEXT NOT NULL,
    CONSTRAINT transactions_ref UNIQUE (family, kind, ref)
);
CREATE INDEX IF NOT EXISTS transactions_due ON transactions (due_at) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS transactions_client ON transactions (family, client_ref);
CREATE TABLE IF NOT EXISTS books (
    transaction_id INTEGER PRIMARY KEY REFERENCES transactions (id),
    family TEXT NOT NULL,
    kind TEXT NOT NULL,
    client_ref TEXT,
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS callbacks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    transaction_id INTEGER NOT NULL REFERENCES transactions (id),
    event_id TEXT NOT NULL,
    claim TEXT NOT NULL,
    forged INTEGER NOT NULL,
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    url TEXT,
    answered INTEGER,
    error TEXT
);
CREATE TABLE IF NOT EXISTS tokens (
    token TEXT PRIMARY KEY, family TEXT NOT NULL, scope TEXT NOT NULL, expires_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS replays (
    family TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (family, key)
);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, family TEXT NOT NULL, phone TEXT NOT NULL, body TEXT NOT NULL,
    code TEXT, used INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS forced (
    id INTEGER PRIMARY KEY AUTOINCREMENT, family TEXT NOT NULL, call TEXT NOT NULL, scenario TEXT NOT NULL,
    times INTEGER, after REAL, delay REAL
);
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT, family TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
    status INTEGER, at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One request as an operator holds it.

    `ref` identifies it at the operator, `client_ref` is what its client called it (None where the API has no such
    field). `shown_*` are what answers and callbacks state, which a scenario may falsify. `plan` is the state it moves
    to at `due_at` if nobody decides before; without `due_at` it waits for ever. `detail` is the family's own.
    """

    id: int
    family: str
    kind: Kind
    operator: str
    ref: str
    client_ref: str | None
    phone: str | None
    amount: int
    currency: str
    shown_amount: int | None
    shown_currency: str | None
    state: State
    reason: str | None
    parent: str | None
    scenario: str
    plan: State | None
    plan_reason: str | None
    due_at: int | None
    created_at: int
    decided_at: int | None
    callback_url: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueuedCallback:
    """A notification to send. `claim` is what it says happened, true or not; `forged` makes it unverifiable."""

    id: int
    transaction_id: int
    event_id: str
    claim: str
    forged: bool
    due_at: int | None
    attempts: int
    url: str | None
    answered: int | None
    error: str | None


class DuplicateRef(Exception):
    """The operator already holds a transaction with this identifier."""


class Store:
    """Plain statements, each durable when it returns."""

    def __init__(self, path: Path | None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False, timeout=5)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def rows(self, sql: str, *args: object) -> list[sqlite3.Row]:
        return self._db.execute(sql, args).fetchall()

    def run(self, sql: str, *args: object) -> int:
        """The number of rows changed."""
        return self._db.execute(sql, args).rowcount

    def insert(self, table: str, values: dict[str, Any]) -> int:
        """The new row's id. Column names come from this package only, values are always parameters."""
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        cursor = self._db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values()))  # noqa: S608
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    # Transactions

    def add(self, values: dict[str, Any]) -> Transaction:
        """Raises DuplicateRef when the operator already holds this identifier."""
        try:
            row = self.insert("transactions", {**values, "detail": json.dumps(values.get("detail", {}))})
        except sqlite3.IntegrityError as fault:
            if "UNIQUE" not in str(fault):
                raise
            raise DuplicateRef(values["ref"]) from fault
        return self.get(row)

    def get(self, transaction_id: int) -> Transaction:
        [found] = self.select("id = ?", transaction_id)
        return found

    def find(self, family: str, kind: Kind, ref: str) -> Transaction | None:
        return next(iter(self.select("family = ? AND kind = ? AND ref = ?", family, kind, ref)), None)

    def select(self, where: str, *args: object) -> list[Transaction]:
        """Newest first. `where` is written in this package, never by a caller over HTTP."""
        sql = f"SELECT * FROM transactions WHERE {where} ORDER BY id DESC"  # noqa: S608
        return [_transaction(row) for row in self.rows(sql, *args)]

    def patch_detail(self, tx: Transaction, **changes: object) -> Transaction:
        self.run("UPDATE transactions SET detail = ? WHERE id = ?", json.dumps(self.get(tx.id).detail | changes), tx.id)
        return self.get(tx.id)

    def settle(self, tx: Transaction, state: State, reason: str | None, now: int) -> bool:
        """The one way out of `pending`, and the only writer of `books`; False when somebody else was first."""
        self._db.execute("BEGIN IMMEDIATE")
        changed = self.run(
            "UPDATE transactions SET state = ?, reason = ?, decided_at = ?, due_at = NULL"
            " WHERE id = ? AND state = 'pending'",
            state, reason, now, tx.id,
        )  # fmt: skip
        if changed and state == SUCCEEDED:
            self.insert(
                "books",
                {
                    "transaction_id": tx.id,
                    "family": tx.family,
                    "kind": tx.kind,
                    "client_ref": tx.client_ref,
                    "amount": tx.amount,
                    "currency": tx.currency,
                    "at": now,
                },
            )
        self._db.execute("COMMIT")
        return bool(changed)

    def replan(self, tx: Transaction, state: State, reason: str | None, due_at: int) -> None:
        self.run(
            "UPDATE transactions SET plan = ?, plan_reason = ?, due_at = ? WHERE id = ? AND state = 'pending'",
            state, reason, due_at, tx.id,
        )  # fmt: skip

    def returned(self, debit: Transaction) -> int:
        """Hundredths given back or being given back for a debit."""
        live = self.select("kind = 'credit' AND family = ? AND parent = ?", debit.family, debit.ref)
        return sum(credit.amount for credit in live if credit.state in (PENDING, SUCCEEDED))

    # Callbacks

    def callbacks(self, where: str, *args: object) -> list[QueuedCallback]:
        """Oldest first."""
        sql = f"SELECT * FROM callbacks WHERE {where} ORDER BY due_at, id"  # noqa: S608
        return [QueuedCallback(**{**dict(row), "forged": bool(row["forged"])}) for row in self.rows(sql, *args)]

    def next_due(self) -> int | None:
        """When the next transaction or callback falls due."""
        [row] = self.rows(
            "SELECT MIN(at) AS at FROM (SELECT MIN(due_at) AS at FROM transactions WHERE state = 'pending'"
            " UNION ALL SELECT MIN(due_at) FROM callbacks WHERE due_at IS NOT NULL)"
        )
        at: int | None = row["at"]
        return at

    def setting(self, name: str) -> Any:
        found = self.rows("SELECT value FROM settings WHERE name = ?", name)
        return json.loads(found[0]["value"]) if found else None

    def set_setting(self, name: str, value: object) -> None:
        self.run("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", name, json.dumps(value))

    def wipe(self, tables: Iterable[str]) -> None:
        for table in tables:
            self.run(f"DELETE FROM {table}")  # noqa: S608


_COLUMNS: Final = tuple(field.name for field in fields(Transaction))


def _transaction(row: sqlite3.Row) -> Transaction:
    values = {name: row[name] for name in _COLUMNS}
    return Transaction(**{**values, "detail": json.loads(values["detail"])})
