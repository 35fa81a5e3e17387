"""Compares the lines of a provider's statement with the payments and refunds of its accounts.

Payments and refunds of the period are read in steps, by id. A line that matched none of them is then looked up by its
references. Only the statement is held in memory.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Executable, Table, bindparam, or_, select

from guichet.clock import DAY, HOUR, Instant, earlier, later
from guichet.db.engine import Database, Row
from guichet.db.ids_by_date import IdsByDate
from guichet.db.sql_functions import json_texts
from guichet.db.tables import payments, refunds
from guichet.domain.money import round_to_currency
from guichet.domain.payments import SubjectType
from guichet.domain.reconciliation import MISSING_HERE, PAYMENT, REFUND, Finding, Line, Ours, StatementIndex

_STEP: Final = 1000
#: Ids are in the order of dates, except for rows created at the same time. A refund may be executed long after its
#: request.
_SLACK: Final = HOUR
_REFUND_SLACK: Final = 92 * DAY
_ALWAYS: Final = 2**62


def _columns(table: Table, amount: str, at: str) -> list[Any]:
    names = (
        "id",
        "merchant_id",
        "reference",
        "provider_reference",
        "provider_account",
        "status",
        amount,
        "currency",
        at,
    )
    return [table.c[name] for name in names]


_SELECTED: Final = {
    PAYMENT: (payments, _columns(payments, "total_amount", "created_at")),
    REFUND: (refunds, _columns(refunds, "amount", "processed_at")),
}


def _theirs(table: Table) -> Any:
    return table.c.provider_account.bool_op("IN")(json_texts(bindparam("provider_accounts")))


_MADE: Final[dict[str, Executable]] = {
    kind: select(*columns)
    .where(table.c.id > bindparam("after"), table.c.id <= bindparam("last"), _theirs(table))
    .order_by(table.c.id)
    .limit(_STEP)
    for kind, (table, columns) in _SELECTED.items()
}
_NAMED: Final[dict[str, Executable]] = {
    kind: select(*columns).where(
        _theirs(table),
        or_(
            table.c.reference == bindparam("ours"),
            table.c.provider_reference.bool_op("IN")(json_texts(bindparam("theirs"))),
        ),
    )
    for kind, (table, columns) in _SELECTED.items()
}
_IDS: Final = {kind: IdsByDate(table) for kind, (table, _) in _SELECTED.items()}
_NOBODY: Final = str(UUID(int=0))


async def reconcile(
    db: Database,
    lines: list[Line],
    provider_accounts: Sequence[str],
    since: Instant | None,
    until: Instant | None,
    kinds: Sequence[SubjectType],
    progress: Callable[[str], None],
) -> AsyncIterator[Finding]:
    """Every finding, matched ones too. Ours from outside `since` to `until` need not be in the statement."""
    statement = StatementIndex([line for line in lines if line.kind in kinds])
    names = json.dumps(sorted(provider_accounts))
    for kind in kinds:
        seen = 0
        async for ours in _made(db, kind, names, since, until):
            seen += 1
            within = (since or 0) <= ours.at <= (until or _ALWAYS)
            for finding in statement.match(ours, expected=within):
                yield finding
            if seen % _STEP == 0:
                progress(f"{seen} {kind}s")
    for line in statement.unmatched():
        found = await _named(db, line, names)
        if found is None:
            yield Finding(MISSING_HERE, line, None, "unknown here")
            continue
        for finding in statement.match(found, expected=False):
            yield finding


async def _made(
    db: Database, kind: SubjectType, names: str, since: Instant | None, until: Instant | None
) -> AsyncIterator[Ours]:
    slack = _SLACK if kind == PAYMENT else _REFUND_SLACK
    after = 0 if since is None else await _IDS[kind].first_at(db, earlier(since, slack)) - 1
    last = _ALWAYS if until is None else await _IDS[kind].first_at(db, later(until, _SLACK))
    while rows := await db.scan(_MADE[kind], after=after, last=last, provider_accounts=names):
        for row in rows:
            yield _ours(kind, row)
        after = rows[-1][0]


async def _named(db: Database, line: Line, names: str) -> Ours | None:
    ours = next((text for text in map(_as_uuid, line.references) if text), _NOBODY)
    rows = await db.scan(_NAMED[line.kind], provider_accounts=names, ours=ours, theirs=json.dumps(line.references))
    return _ours(line.kind, rows[0]) if rows else None


def _ours(kind: SubjectType, row: Row) -> Ours:
    number, merchant_id, reference, provider_reference, provider_account, status, amount, currency, at = row
    asked = round_to_currency(amount, currency)
    at = Instant(at or 0)
    return Ours(kind, number, merchant_id, reference, provider_reference, provider_account, status, asked, currency, at)


def _as_uuid(text: str) -> str | None:
    try:
        return str(UUID(text.strip()))
    except ValueError:
        return None
