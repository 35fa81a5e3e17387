"""The `Idempotency-Key` of requests that create something (docs/contract.md, "Repeated requests").

A key belongs to a merchant, an environment and a route: another API key of the merchant is the same caller. Its row is
written in the transaction that creates the resource, so that neither exists without the other, and names the resource:
a repeated request reads what became of that. What created nothing has no row.
"""

from typing import Any, Final

from msgspec import structs
from sqlalchemy import delete, select

from guichet.clock import Instant
from guichet.db.engine import Reader, Writer
from guichet.db.sql_functions import equal, new_row, upsert
from guichet.db.tables import idempotency_keys
from guichet.domain.errors import Conflict
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.records import Record

_rows: Final = idempotency_keys.c
_THIS: Final = equal(idempotency_keys, "merchant_id", "env", "route", "key")
#: Inserts nothing and returns no row if the key is taken, so the constraint decides races.
CLAIM: Final = (
    upsert(idempotency_keys).values(new_row(idempotency_keys)).on_conflict_do_nothing().returning(_rows.resource)
)
#: The rows of resources that were not created after all.
RELEASE: Final = delete(idempotency_keys).where(*_THIS)
_FIND: Final = select(_rows.digest, _rows.resource).where(*_THIS)


class IdempotencyKey(Record, frozen=True):
    """The key of one request. `route`: method and path as the contract writes them; `digest`: of the method, the whole
    path and the body's meaning."""

    merchant_id: MerchantId
    env: Environment
    route: str
    key: str
    digest: str

    def claiming(self, resource: str, now: Instant) -> dict[str, Any]:
        """The parameters of CLAIM and of RELEASE, which the statement that creates the resource may have too."""
        return {**structs.asdict(self), "resource": resource, "created_at": now}


async def claim(tx: Writer, key: IdempotencyKey | None, resource: str, now: Instant) -> bool:
    """False if the key names another resource already. Without a key there is nothing to claim."""
    return key is None or await tx.write(CLAIM, **key.claiming(resource, now)) is not None


async def release(tx: Writer, key: IdempotencyKey | None) -> None:
    """Takes back what `claim` wrote in the same transaction, in which nothing was created."""
    if key is not None:
        await tx.write(RELEASE, **key.claiming("", Instant(0)))


async def find(db: Reader, key: IdempotencyKey | None) -> str | None:
    """The resource that an earlier request with this key created; None if there was none. Raises Conflict if that was
    another request."""
    row = None
    if key is not None:
        row = await db.one(_FIND, merchant_id=key.merchant_id, env=key.env, route=key.route, key=key.key)
    if row is None or key is None:
        return None
    digest, resource = row
    if digest != key.digest:
        raise reused()
    return str(resource)


def reused() -> Conflict:
    return Conflict(
        "Cette clé d'idempotence a déjà servi à une autre requête : prenez-en une nouvelle pour chaque création.",
        reason="idempotency_key_reused",
    )
