"""Unmatched callbacks: a bounded sample of those that name no payment or refund of ours, for the staff.

Anybody can send callbacks, so the sample is bounded: for each account MOST rows, MOST_BYTES in all. All callbacks to
addresses without an account share one sample. Once a sample is full, its oldest row is replaced at most once in
REPLACED_EVERY. How often a sample is written at all is bounded in memory, before the database is touched
(`AppContext.unmatched_callbacks`). `guichet_unmatched_callbacks_total` counts every callback.
"""

from typing import Final, Literal

from sqlalchemy import bindparam, exists, func, insert, literal, select, update

from guichet.clock import MINUTE, Instant, earlier
from guichet.db.engine import Database
from guichet.db.tables import unmatched_callbacks
from guichet.providers.shared.fields import clean_text

UnmatchedReason = Literal["unknown_account", "unreadable", "no_match"]
#: What stands for every account that does not exist: its name was chosen by whoever sent the callback.
UNKNOWN_ACCOUNT: Final = "unknown"
#: Rows of one account. A few more, when several processes store the last one at the same time.
MOST: Final = 1_000
REPLACED_EVERY: Final = MINUTE
#: Bytes of one row, in UTF-8.
_BODY: Final = 8 * 1024
_PATH: Final = 500
#: Bytes of all texts of one account.
MOST_BYTES: Final = MOST * (_BODY + _PATH)
_LISTED: Final = 500

_rows: Final = unmatched_callbacks
_MINE: Final = _rows.c.provider_account == bindparam("provider_account")
_VALUES: Final = {
    name: bindparam(name, type_=_rows.c[name].type)
    for name in ("provider_account", "path", "body", "reason", "received_at")
}
_stored: Final = select(literal(1).label("one")).where(_MINE).limit(MOST).subquery("stored")
_INSERT: Final = (
    insert(_rows)
    .from_select(
        list(_VALUES),
        select(*_VALUES.values()).where(select(func.count()).select_from(_stored).scalar_subquery() < MOST),
    )
    .returning(_rows.c.id)
)
_others: Final = _rows.alias("others")
_oldest: Final = (
    select(_others.c.id)
    .where(_others.c.provider_account == bindparam("provider_account"))
    .order_by(_others.c.received_at, _others.c.id)
    .limit(1)
    .scalar_subquery()
)
_latest: Final = _rows.alias("latest")
_REPLACE: Final = (
    update(_rows)
    .where(
        _rows.c.id == _oldest,
        ~exists(
            select(_latest.c.id).where(
                _latest.c.provider_account == bindparam("provider_account"),
                _latest.c.received_at > bindparam("replaced_before"),
                _latest.c.received_at <= bindparam("received_at"),
            )
        ),
    )
    .values({name: _VALUES[name] for name in ("path", "body", "reason", "received_at")})
    .returning(_rows.c.id)
)
_LIST: Final = (
    select(_rows.c.id, _rows.c.provider_account, _rows.c.path, _rows.c.reason, _rows.c.received_at)
    .order_by(_rows.c.received_at.desc(), _rows.c.id.desc())
    .limit(_LISTED)
)


async def keep_sample(
    db: Database, *, provider_account: str, path: str, body: bytes, reason: UnmatchedReason, now: Instant
) -> bool:
    """Stores a callback if the sample of its account has room for it; whether it did.

    Cost: at most MOST index entries; one statement more once the sample is full.
    """
    values = {
        "provider_account": provider_account[:64],
        "path": _bounded(path, _PATH),
        "body": _bounded(body[:_BODY].decode("utf-8", "replace"), _BODY),
        "reason": reason,
        "received_at": now,
    }
    if await db.write(_INSERT, **values) is not None:
        return True
    return await db.write(_REPLACE, **values, replaced_before=earlier(now, REPLACED_EVERY)) is not None


def _bounded(text: str, size: int) -> str:
    """`text` without what a person's terminal would obey, cut to `size` bytes."""
    return clean_text(text).encode()[:size].decode("utf-8", "ignore")


async def list_latest(db: Database) -> list[tuple[int, str, str, str, Instant]]:
    """The latest 500: (id, provider account, path, reason, received_at)."""
    return [tuple(row) for row in await db.scan(_LIST)]
