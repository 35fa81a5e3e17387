"""Compares the lines of a provider's statement with the payments and refunds of its accounts.

Payments and refunds of the period are read in steps, by id. A line that matched none of them is then looked up by its
references. Only the statement is held in memory, and other tasks run between a few lines and the next.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final
from uuid import UUID

from msgspec import structs
from sqlalchemy import ColumnElement, Executable, Select, and_, bindparam, literal_column, select

from guichet.clock import DAY, HOUR, Instant, earlier, later
from guichet.db.engine import Database, Row
from guichet.db.lists.ids_by_date import IdsByDate
from guichet.db.sql_functions import columns, is_listed
from guichet.db.tables import late_results, late_returns, payments, refunds
from guichet.domain.money import round_to_currency
from guichet.domain.payments import SubjectType, request_reference
from guichet.domain.reconciliation import (
    DISPUTE,
    MATCHED,
    MISSING_HERE,
    PAYMENT,
    REFUND,
    ComparedSubject,
    ComparisonNote,
    Finding,
    Line,
    StatementIndex,
)
from guichet.ledger.audit.subject_statements import late_result_of

_STEP: Final = 1000
#: Lines, or payments and refunds, that are worked on before other tasks run: less than a millisecond.
_AT_ONCE: Final = 50
#: Ids are in the order of dates, except for rows created at the same time. A refund may be executed long after its
#: request.
_SLACK: Final = HOUR
_REFUND_SLACK: Final = 92 * DAY
_ALWAYS: Final = 2**62


_PAYMENTS: Final[Select[Any]] = select(
    *columns(payments, "id", "merchant_id", "reference", "provider_reference", "provider_account", "status"),
    *columns(payments, "total_amount", "currency", "created_at", "operator"),
    late_results.c.stage,
    literal_column("0").label("request_number"),
    literal_column("NULL").label("payment_reference"),
    literal_column("NULL").label("payment_provider_reference"),
).outerjoin(late_results, late_result_of(PAYMENT, payments))
_REFUNDS: Final[Select[Any]] = select(
    *columns(refunds, "id", "merchant_id", "reference", "provider_reference", "provider_account", "status", "amount"),
    *columns(refunds, "currency", "processed_at"),
    payments.c.operator,
    late_results.c.stage,
    refunds.c.request_number,
    payments.c.reference.label("payment_reference"),
    payments.c.provider_reference.label("payment_provider_reference"),
    # Of the request by which a failed refund was made good.
    late_results.c.return_reference,
).select_from(
    refunds.join(
        payments, and_(payments.c.id == refunds.c.payment_id, payments.c.merchant_id == refunds.c.merchant_id)
    ).outerjoin(late_results, late_result_of(REFUND, refunds))
)
_SELECTED: Final = {PAYMENT: (payments, _PAYMENTS), REFUND: (refunds, _REFUNDS)}


def _of_accounts(column: Any) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = is_listed(column, "provider_accounts")
    return condition


_MADE: Final[dict[str, Executable]] = {
    kind: selected.where(
        table.c.id > bindparam("after"), table.c.id <= bindparam("last"), _of_accounts(table.c.provider_account)
    )
    .order_by(table.c.id)
    .limit(_STEP)
    for kind, (table, selected) in _SELECTED.items()
}
#: Those that a line may name, by our reference and by the provider's.
_BY_OUR_REFERENCE: Final[dict[str, Executable]] = {
    kind: selected.where(_of_accounts(table.c.provider_account), table.c.reference == bindparam("ours"))
    for kind, (table, selected) in _SELECTED.items()
}
_BY_THEIR_REFERENCE: Final[dict[str, Executable]] = {
    kind: selected.where(
        _of_accounts(table.c.provider_account),
        is_listed(table.c.provider_reference, "theirs"),
        table.c.provider_reference.is_not(None),  # Or the index, which leaves out NULL, would not be used.
    )
    for kind, (table, selected) in _SELECTED.items()
}
#: Some providers name a refund by the payment that it gives back.
_REFUND_OF_PAYMENT: Final = _REFUNDS.where(
    _of_accounts(refunds.c.provider_account), payments.c.reference == bindparam("ours")
)
#: A late payment that went back to its payer under this reference of ours.
_RETURNED: Final = _PAYMENTS.join(late_returns, late_returns.c.late_result_id == late_results.c.id).where(
    _of_accounts(payments.c.provider_account), late_returns.c.reference == bindparam("ours")
)
#: A payment by one reference of the provider's: for a list of them SQLite would read the table.
_PAID: Final = _PAYMENTS.where(
    _of_accounts(payments.c.provider_account),
    payments.c.provider_reference == bindparam("theirs"),
    payments.c.provider_reference.is_not(None),
)
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
    statement = await _indexed(lines, kinds)
    names = json.dumps(sorted(provider_accounts))
    for kind in kinds:
        seen = 0
        async for subject in _subjects(db, kind, names, since, until):
            seen += 1
            if seen % _AT_ONCE == 0:
                await asyncio.sleep(0)
            within = (since or 0) <= subject.at <= (until or _ALWAYS)
            for finding in statement.match(subject, expected=within):
                yield finding
            if seen % _STEP == 0:
                progress(f"{seen} {kind}s")
    for line in statement.unmatched():
        named = await _subject_of_line(db, line, names)
        if named is not None:
            for finding in statement.match(named, expected=False):
                yield finding
        else:
            yield await _not_ours(db, line, names)


async def _indexed(lines: Sequence[Line], kinds: Sequence[SubjectType]) -> StatementIndex:
    statement = StatementIndex()
    for number, line in enumerate(lines, 1):
        if line.kind in kinds:
            statement.add(line)
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return statement


async def _subjects(
    db: Database, kind: SubjectType, names: str, since: Instant | None, until: Instant | None
) -> AsyncIterator[ComparedSubject]:
    slack = _SLACK if kind == PAYMENT else _REFUND_SLACK
    after = 0 if since is None else await _IDS[kind].first_at(db, earlier(since, slack)) - 1
    last = _ALWAYS if until is None else await _IDS[kind].first_at(db, later(until, _SLACK))
    while rows := await db.scan(_MADE[kind], after=after, last=last, provider_accounts=names):
        for row in rows:
            yield _read_subject(kind, row)
        after = rows[-1][0]


async def _subject_of_line(db: Database, line: Line, names: str) -> ComparedSubject | None:
    assert line.kind != DISPUTE  # Those are not compared.
    reference = next((text for text in map(_as_uuid, line.references) if text), _NOBODY)
    rows = await db.scan(_BY_OUR_REFERENCE[line.kind], provider_accounts=names, ours=reference)
    rows = rows or await db.scan(
        _BY_THEIR_REFERENCE[line.kind], provider_accounts=names, theirs=json.dumps(line.references)
    )
    if line.kind == REFUND:
        rows = rows or await db.scan(_REFUND_OF_PAYMENT, provider_accounts=names, ours=reference)
    return _read_subject(line.kind, rows[0]) if rows else None


async def _not_ours(db: Database, line: Line, names: str) -> Finding:
    """A line that names no payment or refund of its kind. Money that left may be a late payment on its way back, or a
    refund of a payment that somebody made without us."""
    payment = await _given_back(db, line, names) if line.kind == REFUND else None
    if payment is None:
        return Finding(MISSING_HERE, line, None, ComparisonNote.UNKNOWN_HERE())
    if payment.late_stage == "returned":
        return Finding(MATCHED, structs.replace(line, fee=None), payment)
    return Finding(MISSING_HERE, line, payment, ComparisonNote.REFUNDED_ELSEWHERE())


async def _given_back(db: Database, line: Line, names: str) -> ComparedSubject | None:
    """The payment that a refund gives back, by its references or by ours of a return."""
    uuids = [text for text in map(_as_uuid, line.references) if text]
    for statement, name, references in (
        (_RETURNED, "ours", uuids),
        (_BY_OUR_REFERENCE[PAYMENT], "ours", uuids),
        (_PAID, "theirs", line.references),
    ):
        for reference in references:
            if rows := await db.scan(statement, provider_accounts=names, **{name: reference}):
                return _read_subject(PAYMENT, rows[0])
    return None


def _read_subject(kind: SubjectType, row: Row) -> ComparedSubject:
    (number, merchant_id, reference, provider_reference, provider_account, status, amount, currency, at, *rest) = row
    operator, late_stage, request_number, *others = rest
    more = [other for other in others if other]
    if request_number:
        more.append(request_reference(reference, request_number))
    return ComparedSubject(
        kind=kind,
        id=number,
        merchant_id=merchant_id,
        reference=reference,
        provider_reference=provider_reference,
        provider_account=provider_account,
        status=status,
        amount=round_to_currency(amount, currency),
        currency=currency,
        at=Instant(at or 0),
        operator=operator,
        more_references=tuple(more),
        late_stage=late_stage,
    )


def _as_uuid(text: str) -> str | None:
    try:
        return str(UUID(text.strip()))
    except ValueError:
        return None
