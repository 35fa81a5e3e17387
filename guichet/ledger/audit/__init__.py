"""The audit of the ledger: recomputes everything, and names the first wrong row that each check finds.

It reads committed rows while the service runs. So each comparison is either one statement, which sees one instant, or
ends at a posting id (the horizon) before which no row can appear any more. Memory: one number for each account, however
many rows there are.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import insert, select

from guichet.clock import Clock, Instant
from guichet.db.engine import Database
from guichet.db.sql_functions import new_row, values_of
from guichet.db.tables import ledger_audits
from guichet.domain.chain_heads import LEDGER_FAULTS, ChainFault, HeadComparison, KnownHead, KnownHeads
from guichet.domain.messages import Message, Moment, encode
from guichet.domain.posting_rules import FLOAT, wallet_of_float
from guichet.ledger.audit.accounts import check_floats, check_suspended_entries, check_wallets, sum_accounts
from guichet.ledger.audit.audit_state import AuditState
from guichet.ledger.audit.hash_chain_check import check_hash_chain
from guichet.ledger.audit.subjects import (
    check_disputes,
    check_orphan_postings,
    check_payments,
    check_refunds,
    check_treasury,
)

_RECORD: Final = insert(ledger_audits).values(new_row(ledger_audits))
#: How many clean audits are remembered: three years of them, one a day.
_REMEMBERED: Final = 1000
_CLEAN: Final = (
    select(ledger_audits.c.head, ledger_audits.c.head_posting_id, ledger_audits.c.finished_at)
    .where(ledger_audits.c.fault.is_(None), ledger_audits.c.head.is_not(None))
    .order_by(ledger_audits.c.id.desc())
    .limit(_REMEMBERED)
)


_NO_HEADS: Final = KnownHeads()


@dataclass(frozen=True, slots=True)
class Check:
    """`fault`: names the first wrong row; None when there is none."""

    name: str
    fault: Message | None


@dataclass(frozen=True, slots=True)
class Report:
    """`head`: the last digest of the hash chain (None while it is empty), to be written down elsewhere;
    `head_posting_id`: the last posting that it covers. `owed`: what we have in each wallet with a provider, by (env,
    currency, provider account, wallet), in hundredths. The other numbers count the rows read."""

    started_at: Instant
    finished_at: Instant
    head: str | None
    head_posting_id: int | None
    hash_chain_links: int
    postings: int
    payments: int
    refunds: int
    checks: tuple[Check, ...]
    owed: dict[tuple[str, str, str, str], int]

    @property
    def fault(self) -> Message | None:
        return next((check.fault for check in self.checks if check.fault), None)


async def audit(
    db: Database,
    clock: Clock,
    progress: Callable[[str], None],
    known: KnownHeads = _NO_HEADS,
    *,
    record: bool = True,
) -> Report:
    """Runs every check, also after a fault, and records the result in `ledger_audits` if `record`.

    `progress` is called with a text about what was read so far. `known`: heads that left this database; the hash chain
    must still contain them, and those of the clean audits before.
    """
    started_at = clock.now()
    state = AuditState(db, started_at, progress)
    heads = HeadComparison([*known.ledger, *await _audited_heads(db)], LEDGER_FAULTS)
    checks: list[Check] = [
        Check("chain", await check_hash_chain(state, heads)),
        Check("known heads", known.fault),
    ]
    await sum_accounts(state)
    rest: dict[str, Callable[[AuditState], Awaitable[Message | None]]] = {
        "payments": check_payments,
        "refunds": check_refunds,
        "disputes": check_disputes,
        "treasury": check_treasury,
        "postings": check_orphan_postings,
        "waiting credits": check_suspended_entries,
        "wallets": check_wallets,
        "floats": check_floats,
    }
    checks += [Check(name, await check(state)) for name, check in rest.items()]
    report = Report(
        started_at=started_at,
        finished_at=clock.now(),
        head=state.head,
        head_posting_id=state.head_posting_id,
        hash_chain_links=state.read["hash chain links"],
        postings=state.read["postings"],
        payments=state.read["payments"],
        refunds=state.read["refunds"],
        checks=tuple(checks),
        owed=_owed(state),
    )
    if record:
        await _record(db, report)
    return report


async def _audited_heads(db: Database) -> list[KnownHead]:
    return [
        KnownHead(digest, place, ChainFault.AUDITED_HEAD(at=Moment(finished_at)))
        for digest, place, finished_at in await db.scan(_CLEAN)
    ]


async def _record(db: Database, report: Report) -> None:
    values = values_of(ledger_audits, report)
    await db.write_locally(_RECORD, **{**values, "fault": encode(report.fault) if report.fault else None})


def _owed(state: AuditState) -> dict[tuple[str, str, str, str], int]:
    owed: dict[tuple[str, str, str, str], int] = {}
    for (_, env, currency, account), amount in sorted(state.totals.items()):
        if account.startswith(FLOAT):
            key = (env, currency, *wallet_of_float(account))
            owed[key] = owed.get(key, 0) - amount
    return owed
