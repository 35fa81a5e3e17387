"""Sending a webhook again after its attempts have ended (`guichet delivery resend`).

The id and the body's bytes stay as they were frozen; each attempt goes to the present address of the endpoint and has a
signature of its own, as ever.
A delivery that is sent again has five attempts again, from now on.
"""

from typing import Final

from sqlalchemy import String, bindparam, or_, select, update

from guichet.audit_log import entries as audit_log
from guichet.clock import Clock, Instant, iso
from guichet.context import AppContext
from guichet.db.engine import Database, Reader, Transaction
from guichet.db.lists.pages import ListScope, read_rows
from guichet.db.tables import events, merchants, webhook_deliveries
from guichet.domain.audit_log import Act, Actor, ActRefused, Facts
from guichet.domain.events import Delivery, DeliveryStatus
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS, Environment
from guichet.domain.refusals import Refusal
from guichet.merchants import repository

#: Deliveries that one transaction sends again: a few milliseconds on SQLite's event loop.
BATCH: Final = 200
#: Deliveries that one look reads to find those that failed.
READ_AT_ONCE: Final = 1000
#: Deliveries that a list shows, and among how many of the latest those of all merchants are looked for.
LISTED: Final = 500
LATEST: Final = 10_000

_rows: Final = webhook_deliveries.c
# `reference` has an index by merchant and environment only: two probes for each merchant.
_FIND: Final = (
    select(webhook_deliveries)
    .select_from(
        merchants.join(events, events.c.merchant_id == merchants.c.id).join(webhook_deliveries, _rows.id == events.c.id)
    )
    .where(or_(*(events.c.env == env for env in ENVS)), events.c.reference == bindparam("reference"))
)
_WANTED_STATUS: Final = bindparam("wanted_status", type_=String)
_STATUS_OR_ANY: Final = or_(_WANTED_STATUS == "", _rows.status == _WANTED_STATUS)
_LATEST: Final = (
    select(webhook_deliveries)
    .where(_rows.id > bindparam("after"), _STATUS_OR_ANY)
    .order_by(_rows.id.desc())
    .limit(LISTED)
)
_LAST_ID: Final = select(_rows.id).order_by(_rows.id.desc()).limit(1)
_NEXT: Final = (
    select(_rows.id, _rows.created_at, _rows.status, _rows.target)
    .where(
        _rows.merchant_id == bindparam("merchant_id"),
        _rows.env == bindparam("environment"),
        _rows.created_at >= bindparam("since"),
        or_(_rows.created_at > bindparam("since"), _rows.id > bindparam("after")),
    )
    .order_by(_rows.created_at, _rows.id)
    .limit(READ_AT_ONCE)
)
_CREATED_AT: Final = list(_rows.keys()).index("created_at")
_RESEND: Final = (
    update(webhook_deliveries)
    .where(_rows.id == bindparam("delivery_id"), _rows.status == bindparam("was"))
    .values(status="pending", attempts=0, delivered_at=None, next_attempt_at=bindparam("now"))
    .returning(_rows.id)
)


async def find(db: Reader, reference: str) -> Delivery | None:
    """Cost: two index probes for each merchant."""
    return await db.one_as(Delivery, _FIND, reference=reference)


async def listed(
    db: Database, merchant_id: MerchantId | None, since: Instant, status: DeliveryStatus | None
) -> list[Delivery]:
    """Newest first, at most LISTED: of a merchant since an instant (0: all), or among the LATEST of all. Cost:
    `db/lists/pages.py`, or the LATEST."""
    if merchant_id is None:
        last = await db.one(_LAST_ID)
        rows = await db.all(_LATEST, after=last[0] - LATEST if last else 0, wanted_status=status or "")
        return [Delivery(*row) for row in rows if row[_CREATED_AT] >= since]
    deliveries: list[Delivery] = []
    for env in ENVS:
        scope = ListScope(merchant_id, env, status)
        deliveries += [Delivery(*row) for row in await read_rows(db, webhook_deliveries, scope, LISTED, since or None)]
    return sorted(deliveries, key=lambda delivery: delivery.id, reverse=True)[:LISTED]


async def make_due(tx: Transaction, delivery: Delivery, now: Instant) -> str:
    """Gives a delivery, a delivered one too, five attempts again, and returns the address of the next one. Raises
    ActRefused when it is still being tried, or when it was meant for an endpoint that is disabled now."""
    if delivery.status == "pending":
        raise ActRefused(Refusal.STILL_TRIED())
    endpoint = await repository.endpoint(tx, delivery.merchant_id, delivery.env)
    url = endpoint.url if delivery.target == "account" else delivery.url
    if url is None:
        raise ActRefused(Refusal.NO_ENDPOINT())
    if not await tx.write(_RESEND, delivery_id=delivery.id, was=delivery.status, now=now):
        raise ActRefused(Refusal.DELIVERY_CHANGED())
    return url


async def resend(db: Database, clock: Clock, delivery: Delivery, actor: Actor) -> None:
    """As `make_due`, by a person whom the audit log names."""
    now = clock.now()
    async with db.transaction() as tx:
        url = await make_due(tx, delivery, now)
        before: Facts = {
            "status": delivery.status,
            "attempts": delivery.attempts,
            "response_code": delivery.response_code,
            "delivered_at": None if delivery.delivered_at is None else iso(delivery.delivered_at),
        }
        act = Act(
            actor=actor,
            action="delivery.resent",
            subject_type="delivery",
            subject=delivery.reference,
            merchant_id=delivery.merchant_id,
            before=before,
            after={"status": "pending", "url": url},
        )
        await audit_log.record(tx, act, now)


class BulkResend:
    """Sends the failed deliveries of one merchant and environment again, oldest first, a batch at a time."""

    def __init__(
        self, ctx: AppContext, merchant_id: MerchantId, env: Environment, since: Instant, until: Instant, actor: Actor
    ) -> None:
        """`until`: what was created later is left alone, so that the walk ends."""
        self._ctx = ctx
        self._merchant_id = merchant_id
        self._env = env
        self._since = since
        self._from = since
        self._until = until
        self._after = 0
        self._actor = actor
        self.finished = False

    async def step(self) -> int:
        """How many deliveries of the next READ_AT_ONCE are due again. Each batch of them is one transaction with one
        entry of the audit log, which holds their number and the ids of the first and the last."""
        rows = await self._ctx.db.scan(
            _NEXT, merchant_id=self._merchant_id, environment=self._env, since=self._from, after=self._after
        )
        failed = [row for row in rows if row[1] <= self._until and row[2] == "failed"]
        resent = 0
        for start in range(0, len(failed), BATCH):
            resent += await self._resend([(row[0], row[3]) for row in failed[start : start + BATCH]])
        if rows:
            self._after, self._from = rows[-1][0], rows[-1][1]
        self.finished = len(rows) < READ_AT_ONCE or rows[-1][1] > self._until
        return resent

    async def _resend(self, batch: list[tuple[int, str]]) -> int:
        now, resent = self._ctx.clock.now(), []
        async with self._ctx.db.transaction() as tx:
            endpoint = await repository.endpoint(tx, self._merchant_id, self._env)
            for row_id, target in batch:
                if target == "account" and endpoint.url is None:
                    continue
                if await tx.write(_RESEND, delivery_id=row_id, was="failed", now=now):
                    resent.append(row_id)
            if resent:
                facts: Facts = {"env": self._env, "since": iso(self._since), "count": len(resent)}
                act = Act(
                    actor=self._actor,
                    action="deliveries.resent",
                    subject_type="merchant",
                    subject=str(self._merchant_id),
                    merchant_id=self._merchant_id,
                    after={**facts, "first_id": resent[0], "last_id": resent[-1]},
                )
                await audit_log.record(tx, act, now)
        return len(resent)
