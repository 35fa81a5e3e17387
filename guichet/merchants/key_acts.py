"""What live keys did to their merchants' webhooks and links, and the refunds they proposed: rows for the team's
activity.

They are not in the audit log, whose end is one lock for all: any program could queue there. Each has its place among
the log's entries all the same, so that both make one list.
"""

import json
from collections.abc import Sequence
from typing import Final, Literal

from sqlalchemy import bindparam, insert, select, tuple_, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.db.sql_functions import is_listed, params
from guichet.db.tables import api_keys, audit_log_head, key_acts
from guichet.domain.ids import ApiKeyId, MerchantId
from guichet.domain.merchants import ApiKey
from guichet.domain.records import Record

#: As the audit log names what people do.
KeyAction = Literal[
    "webhook_endpoint.changed",
    "webhook_secret.rotated",
    "webhook_secret.shown",
    "delivery.resent",
    "link.closed",
    "refund.proposed",
]
#: Whose detail is the reference of a payment.
ABOUT_PAYMENTS: Final = frozenset[KeyAction]({"refund.proposed"})

_INSERT: Final = insert(key_acts).values(
    **params("merchant_id", "key_id", "at"),
    after_number=select(audit_log_head.c.number).scalar_subquery(),
    action=bindparam("action"),
    detail=bindparam("detail"),
)
_LOCK_KEY: Final = select(api_keys).where(api_keys.c.id == bindparam("key")).with_for_update()
_READ_AT: Final = select(api_keys.c.secret_read_at).where(api_keys.c.id == bindparam("key"))
_NOTE: Final = (
    update(api_keys)
    .where(api_keys.c.id == bindparam("key"))
    .values(secret_read_at=bindparam("read_at"), owners_mailed_at=bindparam("mailed_at"))
)
_PLACE: Final = tuple_(key_acts.c.after_number, key_acts.c.id)
_CURSOR: Final = tuple_(bindparam("number"), bindparam("act"))
_OF_MERCHANT: Final = (
    select(*key_acts.c, api_keys.c.preview, api_keys.c.name)
    .join(api_keys, api_keys.c.id == key_acts.c.key_id)
    .where(
        key_acts.c.merchant_id == bindparam("merchant"),
        is_listed(key_acts.c.action, "actions"),
    )
    .limit(bindparam("most"))
)
_OLDER: Final = _OF_MERCHANT.where(_PLACE < _CURSOR).order_by(key_acts.c.after_number.desc(), key_acts.c.id.desc())
_NEWER: Final = _OF_MERCHANT.where(_PLACE > _CURSOR).order_by(key_acts.c.after_number, key_acts.c.id)


class KeyAct(Record, frozen=True):
    """`after_number`: of the entry of the audit log that it comes after. `detail`: the address of the webhooks, or the
    reference of the payment (`ABOUT_PAYMENTS`), if the act has one; `preview` and `name`: of the key."""

    id: int
    merchant_id: MerchantId
    key_id: ApiKeyId
    at: Instant
    after_number: int
    action: KeyAction
    detail: str | None
    preview: str
    name: str | None


async def lock_key(tx: Transaction, key_id: ApiKeyId) -> ApiKey:
    """The key, whose acts no other transaction records until the end of this one."""
    return ApiKey(*require(await tx.one(_LOCK_KEY, key=key_id)))


async def secret_read_at(db: Reader, key_id: ApiKeyId) -> Instant | None:
    """When the last row about a read of the secret was written."""
    read_at: Instant | None = require(await db.one(_READ_AT, key=key_id))[0]
    return read_at


async def add(
    tx: Transaction, merchant_id: MerchantId, key_id: ApiKeyId, action: KeyAction, detail: str | None, now: Instant
) -> None:
    await tx.write(_INSERT, merchant_id=merchant_id, key_id=key_id, action=action, detail=detail, at=now)


async def note(tx: Transaction, key_id: ApiKeyId, read_at: Instant | None, mailed_at: Instant | None) -> None:
    """What limits the next rows about reads, and the next mail."""
    await tx.write(_NOTE, key=key_id, read_at=read_at, mailed_at=mailed_at)


async def of_merchant(
    db: Database,
    merchant_id: MerchantId,
    actions: Sequence[str],
    most: int,
    *,
    before: tuple[int, int] | None = None,
    after: tuple[int, int] | None = None,
) -> list[KeyAct]:
    """Newest first: those just before a place (None: the newest), or just after one. A place is `after_number` and
    `id`. Cost: the merchant's rows down to the last one shown."""
    number, act = after or before or (2**63 - 1, 0)
    params = {"merchant": merchant_id, "actions": json.dumps(list(actions)), "number": number, "act": act, "most": most}
    if after is not None:
        return [KeyAct(*row) for row in await db.scan(_NEWER, **params)][::-1]
    return [KeyAct(*row) for row in await db.scan(_OLDER, **params)]
