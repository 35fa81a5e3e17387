"""The webhook secrets as they are stored, all of them: for the rotation of `GUICHET_SECRET_KEYS`."""

from typing import Final

from sqlalchemy import bindparam, select, update

from guichet.db.engine import Database, Writer
from guichet.db.tables import webhook_endpoints
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment

_ALL: Final = select(webhook_endpoints.c.merchant_id, webhook_endpoints.c.env, webhook_endpoints.c.secret).order_by(
    webhook_endpoints.c.merchant_id, webhook_endpoints.c.env
)
_REPLACE: Final = (
    update(webhook_endpoints)
    .where(
        webhook_endpoints.c.merchant_id == bindparam("merchant"),
        webhook_endpoints.c.env == bindparam("environment"),
        webhook_endpoints.c.secret == bindparam("old"),
    )
    .values(secret=bindparam("new"))
    .returning(webhook_endpoints.c.merchant_id)
)


async def all_secrets(db: Database) -> list[tuple[MerchantId, Environment, str]]:
    """(merchant, environment, encrypted secret). Grows with the number of merchants; for the command line."""
    return [(merchant_id, env, secret) for merchant_id, env, secret in await db.scan(_ALL)]


async def replace(db: Writer, merchant_id: MerchantId, env: Environment, old: str, new: str) -> bool:
    """The same secret in another encryption; False when the merchant has changed it meanwhile: that one stays."""
    return await db.write(_REPLACE, merchant=merchant_id, environment=env, old=old, new=new) is not None
