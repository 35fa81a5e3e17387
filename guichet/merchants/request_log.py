"""The log of the requests that merchants' programs send: method, path without query, status, duration, error code, key.
No body, no query, no address.

The server only remembers a request; once a second the process writes what it remembers, in batches
(`server/background_writers.py`). What is not written yet is lost with a process that is killed. Of a merchant that
sends more than the sample allows, or more than MOST_ROWS in a week, a part is kept.
"""

from collections import Counter
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, insert, or_, select, update

from guichet import metrics
from guichet.clock import MINUTE, SECOND, Clock, Instant, earlier
from guichet.db.engine import Database
from guichet.db.sql_functions import new_row
from guichet.db.tables import api_keys, api_requests
from guichet.domain.ids import ApiKeyId, MerchantId
from guichet.domain.merchants import Caller, Environment
from guichet.domain.records import Record

#: Requests that a process remembers until they are written; beyond them it drops what comes (`/metrics` counts that).
MOST_WAITING: Final = 5000
#: Rows that are inserted together, and that one statement deletes: two milliseconds on SQLite's event loop.
BATCH: Final = 1000
#: Rows that are kept for a merchant in one environment; the oldest go first.
MOST_ROWS: Final = 100_000
#: After how many rows of a merchant's the oldest are looked for: so many more may be there. To look costs as much as to
#: insert two thousand.
TRIM_EVERY: Final = 10_000
#: Requests of a merchant in one environment that a process keeps, in ten seconds.
SAMPLE: Final = 200
SAMPLE_TIME: Final = 10 * SECOND
#: How long a key's last use is not written again.
_USE_EVERY: Final = MINUTE
#: Characters of a path: ours have 90 at most, unless an `external_id` is longer.
_LONGEST_PATH: Final = 200

_rows: Final = api_requests.c
_INSERT: Final = insert(api_requests).values(new_row(api_requests))
_OF_MERCHANT: Final = (_rows.merchant_id == bindparam("merchant"), _rows.env == bindparam("environment"))
_PREFIX: Final = bindparam("prefix", type_=_rows.path.type)
_WANTED: Final = (
    *_OF_MERCHANT,
    _rows.status.between(bindparam("lowest"), bindparam("highest")),
    func.substr(_rows.path, 1, func.length(_PREFIX)) == _PREFIX,
)
_OLDER: Final = (
    select(api_requests)
    .where(*_WANTED, _rows.id < bindparam("before"))
    .order_by(_rows.id.desc())
    .limit(bindparam("most"))
)
_NEWER: Final = (
    select(api_requests).where(*_WANTED, _rows.id > bindparam("after")).order_by(_rows.id).limit(bindparam("most"))
)
_LAST_KEPT: Final = select(_rows.id).where(*_OF_MERCHANT).order_by(_rows.id.desc()).limit(1).offset(MOST_ROWS - 1)
_OLDEST: Final = (
    select(_rows.id).where(*_OF_MERCHANT, _rows.id < bindparam("kept")).order_by(_rows.id).limit(bindparam("most"))
)
_TRIM: Final = delete(api_requests).where(*_OF_MERCHANT, _rows.id <= bindparam("last"))
_USED: Final = (
    update(api_keys)
    .where(
        api_keys.c.id == bindparam("key"),
        or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < bindparam("used_at")),
    )
    .values(last_used_at=bindparam("used_at"))
)
_WHOSE: Final = itemgetter("merchant_id", "env")
_NO_ID: Final = 2**63 - 1


class LoggedRequest(Record, frozen=True):
    """A row of the log. `at`: when it was answered; `duration`: microseconds; `path`: as it was sent, percent-encoded;
    `error_code`: the stable code of an error's answer."""

    id: int
    merchant_id: MerchantId
    env: Environment
    key_id: ApiKeyId
    at: Instant
    method: str
    path: str
    status: int
    duration: int
    error_code: str | None


class RequestFilter(Record, frozen=True):
    """`status_class`: 2 for 2xx and so on, None for all. `path`: how the path begins."""

    status_class: int | None = None
    path: str = ""


class RequestLog:
    """The requests of this process that are not in the table yet, and the keys that were used."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[dict[str, Any]] = []
        #: Requests of this sample time; and its number, since the process began.
        self._sampled: dict[tuple[MerchantId, Environment], int] = {}
        self._sample_number = 0
        self._used: dict[ApiKeyId, Instant] = {}
        #: When each key's last use was written, by this process.
        self._noted: dict[ApiKeyId, Instant] = {}
        #: Rows written since the oldest ones were looked for.
        self._written: Counter[tuple[MerchantId, Environment]] = Counter()

    def add(
        self, caller: Caller, key_id: ApiKeyId, method: str, path: str, status: int, seconds: float, code: str | None
    ) -> None:
        """Remembers one request. Takes a few microseconds and waits for nothing."""
        now = self._clock.now()
        merchant_id = caller.merchant.id
        self._used[key_id] = now
        if not self._is_sampled(merchant_id, caller.env):
            metrics.LOGGED_REQUESTS.labels("sampled_out").inc()
        elif len(self._waiting) >= MOST_WAITING:
            metrics.LOGGED_REQUESTS.labels("dropped").inc()
        else:
            # The row as it is inserted: a record in between would cost a sixth of what a remembered request does.
            self._waiting.append(
                {
                    "merchant_id": merchant_id,
                    "env": caller.env,
                    "key_id": key_id,
                    "at": now,
                    "method": method,
                    "path": path[:_LONGEST_PATH],
                    "status": status,
                    "duration": round(seconds * 1_000_000),
                    "error_code": code,
                }
            )

    def _is_sampled(self, merchant_id: MerchantId, env: Environment) -> bool:
        number = self._clock.monotonic() // SAMPLE_TIME
        if number != self._sample_number:
            self._sample_number = number
            self._sampled.clear()
        whose = (merchant_id, env)
        self._sampled[whose] = sampled = self._sampled.get(whose, 0) + 1
        return sampled <= SAMPLE

    async def flush(self, db: Database) -> None:
        """Writes everything. What could not be written is kept for the next time. Raises StorageError."""
        while self._waiting:
            batch = self._waiting[:BATCH]
            await db.write_many(_INSERT, batch)
            del self._waiting[: len(batch)]
            metrics.LOGGED_REQUESTS.labels("written").inc(len(batch))
            self._written.update(map(_WHOSE, batch))
        await self._note_uses(db)
        await self._trim(db)

    async def _note_uses(self, db: Database) -> None:
        """One small UPDATE for a key, once a minute. They are not put together: two processes that name the same keys
        in another order would wait for each other."""
        now = self._clock.now()
        for key_id, used_at in list(self._used.items()):
            noted_at = self._noted.get(key_id)
            if noted_at is None or used_at >= noted_at + _USE_EVERY:
                await db.write(_USED, key=key_id, used_at=used_at)
                self._noted[key_id] = used_at
                del self._used[key_id]
        self._noted = {key: at for key, at in self._noted.items() if at > earlier(now, _USE_EVERY)}

    async def _trim(self, db: Database) -> None:
        """Deletes what is over MOST_ROWS. Cost: MOST_ROWS index entries for each TRIM_EVERY rows of a merchant, read
        away from the event loop, and the rows that are deleted."""
        for (merchant_id, env), written in list(self._written.items()):
            if written < TRIM_EVERY:
                continue
            scope = {"merchant": merchant_id, "environment": env}
            last_kept = await db.scan(_LAST_KEPT, **scope)
            for _ in range(2 * TRIM_EVERY // BATCH if last_kept else 0):
                oldest = await db.all(_OLDEST, **scope, kept=last_kept[0][0], most=BATCH)
                if not oldest:
                    break
                await db.write(_TRIM, **scope, last=oldest[-1][0])
            del self._written[merchant_id, env]


async def page(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    filters: RequestFilter,
    most: int,
    *,
    before: int | None = None,
    after: int | None = None,
) -> list[LoggedRequest]:
    """Newest first: the rows just before the id `before` (None: the newest), or those just after `after`. Cost: the
    index entries down to the last row shown, at most the merchant's MOST_ROWS."""
    lowest, highest = (0, 999)
    if filters.status_class is not None:
        lowest, highest = filters.status_class * 100, filters.status_class * 100 + 99
    params = {
        "merchant": merchant_id,
        "environment": env,
        "lowest": lowest,
        "highest": highest,
        "prefix": filters.path,
        "most": most,
    }
    if after is not None:
        return [LoggedRequest(*row) for row in await db.scan(_NEWER, **params, after=after)][::-1]
    return [LoggedRequest(*row) for row in await db.scan(_OLDER, **params, before=_NO_ID if before is None else before)]
