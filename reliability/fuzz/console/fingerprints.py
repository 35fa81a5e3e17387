"""What the tables hold, to compare before and after: rows that hostile requests may not have changed."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import select

from guichet.context import AppContext
from guichet.db.tables import metadata

#: What reading leaves behind: when somebody was seen last (second factors are given by the trial itself), seeds that no
#: telephone has confirmed, and what the staff has read (a row of the audit log for each).
_READING: Final[Mapping[str, frozenset[str]]] = {
    "user_sessions": frozenset({"last_seen_at", "factor_at"}),
    # The page of a pending payment asks its provider.
    "payments": frozenset({"next_poll_at", "poll_count", "lease_expires_at", "asked_at"}),
    "users": frozenset({"totp_secret", "next_totp_secret", "updated_at"}),
}
_LOGS: Final = frozenset({"audit_log", "audit_log_head", "write_probe"})

#: Rows of each table, by table.
Rows = dict[str, Counter[str]]


async def rows_of(ctx: AppContext) -> Rows:
    """All rows of all tables but logs. Cost: as many rows as the trial has made."""
    found: Rows = {}
    for table in metadata.sorted_tables:
        if table.name not in _LOGS:
            left_out = _READING.get(table.name, frozenset())
            columns = [column for column in table.c if column.name not in left_out]
            found[table.name] = Counter(repr(tuple(row)) for row in await ctx.db.scan(select(*columns)))
    return found


async def rows_of_merchant(ctx: AppContext, merchant_id: int, users: Collection[int]) -> Rows:
    """The rows of one merchant and of its people."""
    found: Rows = {}
    for table in metadata.sorted_tables:
        owners: dict[str, Collection[int]] = {"merchant_id": [merchant_id], "user_id": users}
        if table.name in ("merchants", "users"):
            owners = {"id": [merchant_id] if table.name == "merchants" else users}
        owned = [(number, owners[each.name]) for number, each in enumerate(table.c) if each.name in owners]
        if owned and table.name not in _LOGS:
            rows = [tuple(row) for row in await ctx.db.scan(select(table))]
            theirs = (row for row in rows if any(row[number] in values for number, values in owned))
            found[table.name] = Counter(map(repr, theirs))
    return found


def differences(before: Rows, after: Rows) -> list[str]:
    """A line for each table that is not as it was, with the first rows that came or went."""
    found = []
    for name, rows in after.items():
        came, went = rows - before[name], before[name] - rows
        if came or went:
            found.append(f"{name}: {_first(came, '+')} {_first(went, '-')}")
    return found


def _first(rows: Counter[str], sign: str) -> str:
    shown = " ".join(f"{sign}{row[:300]}" for row in list(rows)[:2])
    return f"{shown} ({sign}{rows.total()})" if rows else ""
