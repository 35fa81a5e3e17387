"""Asking for an export, and what the audit log keeps of it."""

import msgspec

from guichet.audit_log import entries as audit_log
from guichet.clock import Clock, Instant, iso, later
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.domain.accounts import Language, UserId
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.exports import KEPT, MOST_PREPARED, Export, ExportFormat, ExportKind
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency
from guichet.domain.records import Record
from guichet.exports import repository
from guichet.exports.repository import TooManyExports
from guichet.exports.rows import is_short


class ExportRequest(Record, frozen=True):
    """What a person asks for. `currency`: of the wallet, for its movements only. `until` is inclusive."""

    merchant_id: MerchantId
    env: Environment
    user_id: UserId
    kind: ExportKind
    format: ExportFormat
    currency: Currency | None
    language: Language
    time_zone: str
    since: Instant
    until: Instant
    filters: str | None = None


async def request_export(ctx: AppContext, request: ExportRequest, actor: Actor) -> Export:
    """Records the export: a short one can be downloaded at once, a longer one waits for the worker.

    Raises TooManyExports when the worker has enough to do, and to keep, for this merchant.
    """
    now = ctx.clock.now()
    new = _new(request, now)
    if not await is_short(ctx.db, new):
        new = msgspec.structs.replace(new, status="pending", due_at=now)
    async with ctx.db.transaction() as tx:
        # Acts wait for one another here, so no two requests count the same prepared exports.
        await audit_log.record(tx, _act(actor, "export.requested", new, new.kind), now)
        if new.status == "pending" and await repository.prepared(tx, new.merchant_id, now) >= MOST_PREPARED:
            raise TooManyExports
        export = await repository.add(tx, new)
    if export.status == "pending":
        ctx.wakeups.exports.set()
    return export


async def record_download(db: Database, clock: Clock, export: Export, actor: Actor) -> None:
    now = clock.now()
    async with db.transaction() as tx:
        await audit_log.record(tx, _act(actor, "export.downloaded", export, str(export.id)), now)


def _act(actor: Actor, action: str, export: Export, subject: str) -> Act:
    facts: Facts = {
        "kind": export.kind,
        "format": export.format,
        "env": export.env,
        "from": iso(export.since),
        "to": iso(export.until),
        **({"currency": export.currency} if export.currency else {}),
    }
    return Act(actor, action, "export", subject, export.merchant_id, after=facts)


def _new(request: ExportRequest, now: Instant) -> Export:
    return Export(
        id=0,
        **msgspec.structs.asdict(request),
        status="direct",
        attempts=0,
        due_at=None,
        created_at=now,
        expires_at=later(now, KEPT),
        reached_at=None,
        row_count=0,
        size=0,
    )
