"""The list of events by which a merchant catches up after an outage (docs/contract.md, "Events"): the bytes that tell
of each change, which the outbox keeps whether or not a webhook carries them.

It is in the order in which events became final, so that a walk skips none: on PostgreSQL by the number of the
transaction, and an event is shown once every older transaction has ended (docs/decisions.md, "Events in order").
"""

from typing import Final

from sqlalchemy import BigInteger, bindparam, literal_column, select, tuple_

from guichet.clock import DAY, HOUR, Instant, earlier
from guichet.db.engine import Database, Reader
from guichet.db.lists.ids_by_date import IdsByDate
from guichet.db.sql_functions import oldest_transaction
from guichet.db.tables import events
from guichet.domain.events import EventName, StoredEvent
from guichet.domain.ids import DeliveryId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.records import Record

#: How long an event is listed. It is kept until its delivery is pruned, if that is later.
LISTED_DAYS: Final = 30
LISTED_FOR: Final = LISTED_DAYS * DAY

_rows: Final = events.c
_STORED: Final = [column for column in events.c if column.name != "transaction_id"]
_MINE: Final = (_rows.merchant_id == bindparam("merchant_id"), _rows.env == bindparam("environment"))
_BY_REFERENCE: Final = select(*_STORED).where(*_MINE, _rows.reference == bindparam("reference"))
_BY_ID: Final = select(*_STORED).where(_rows.id == bindparam("id"))
_BY_DATE: Final = IdsByDate(events)
#: Rows that are created together may have ids, or transactions, in another order.
_SLACK: Final = HOUR


_anchor: Final = events.alias("anchor")
_ANCHOR: Final = (
    select(_anchor.c.transaction_id)
    .where(_anchor.c.id >= bindparam("start", type_=BigInteger))
    .order_by(_anchor.c.id)
    .limit(literal_column("1"))
    .scalar_subquery()
)
_LISTED: Final = (
    select(_rows.body)
    .where(
        *_MINE,
        tuple_(_rows.transaction_id, _rows.id) > tuple_(_ANCHOR, bindparam("beyond", type_=BigInteger)),
        _rows.transaction_id < oldest_transaction(),
        _rows.created_at.between(bindparam("since"), bindparam("until")),
    )
    .order_by(_rows.transaction_id, _rows.id)
    .limit(bindparam("most"))
)
_LISTED_OF_NAME: Final = _LISTED.where(_rows.event == bindparam("name"))
_FOREVER: Final = Instant(2**63 - 1)


async def by_reference(db: Reader, merchant_id: MerchantId, env: Environment, reference: str) -> StoredEvent | None:
    """`reference` must be a UUID."""
    return await db.one_as(StoredEvent, _BY_REFERENCE, merchant_id=merchant_id, environment=env, reference=reference)


async def body_of(db: Reader, delivery_id: DeliveryId) -> str | None:
    """What a delivery carries."""
    row = await db.one(_BY_ID, id=delivery_id)
    return None if row is None else StoredEvent(*row).body


class EventFilter(Record, frozen=True):
    """`since` and `until` are inclusive and compared with `created_at`."""

    name: EventName | None = None
    since: Instant | None = None
    until: Instant | None = None


async def page(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    event_filter: EventFilter,
    most: int,
    now: Instant,
    after: StoredEvent | None = None,
) -> list[str]:
    """The bodies of up to `most` events, the oldest first, of those that follow `after`. Cost: those rows and the ones
    between them that the filter leaves out; without `after` also a search for the first one by its date."""
    since = max(earlier(now, LISTED_FOR), event_filter.since or Instant(0))
    start = after.id if after else await _BY_DATE.first_at(db, earlier(since, _SLACK))
    rows = await db.scan(
        _LISTED if event_filter.name is None else _LISTED_OF_NAME,
        merchant_id=merchant_id,
        environment=env,
        start=start,
        beyond=start if after else start - 1,
        since=since,
        until=_FOREVER if event_filter.until is None else event_filter.until,
        name=event_filter.name,
        most=most,
    )
    return [row[0] for row in rows]
