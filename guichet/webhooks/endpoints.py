"""The webhook endpoint of a merchant in one environment: its address, its secret, the test event.

Source: docs/contract.md, "Webhooks".
"""

from dataclasses import dataclass
from typing import Final

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.domain.events import WEBHOOK_TEST, Delivery
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment, new_webhook_secret
from guichet.merchants import repository as merchants
from guichet.merchants.vault import Vault
from guichet.schemas.notification import WebhookMessageObject
from guichet.webhooks import deliveries, outbox

_TEST_DATA: Final[WebhookMessageObject] = {
    "message": "Ceci est un événement de test : votre point de terminaison reçoit bien les notifications."
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """An endpoint with its secret in clear, to be shown to its owner only."""

    url: str | None
    secret: str


async def read(db: Database, vault: Vault, merchant_id: MerchantId, env: Environment) -> Configuration:
    endpoint = await merchants.endpoint(db, merchant_id, env)
    return Configuration(endpoint.url, vault.decrypt(endpoint.secret))


async def configure(
    db: Database,
    vault: Vault,
    merchant_id: MerchantId,
    env: Environment,
    url: str | None,
    now: Instant,
    *,
    rotate: bool,
) -> Configuration:
    """Sets or, with None, disables the address. A rotated secret signs from the next attempt on (D34)."""
    new_secret = vault.encrypt(new_webhook_secret()) if rotate else None
    async with db.transaction() as tx:
        endpoint = await merchants.configure_endpoint(tx, merchant_id, env, url, new_secret, now)
        if url is None:
            await deliveries.cancel_waiting(tx, merchant_id, env)
    return Configuration(endpoint.url, vault.decrypt(endpoint.secret))


async def queue_test(db: Database, merchant_id: MerchantId, env: Environment, now: Instant) -> Delivery | None:
    """Queues a `webhook.test` for the configured address; None when there is none (D37)."""
    async with db.transaction() as tx:
        endpoint = await merchants.endpoint(tx, merchant_id, env)
        if endpoint.url is None:
            return None
        delivery = outbox.new_delivery(merchant_id, env, WEBHOOK_TEST, outbox.ACCOUNT, endpoint.url, _TEST_DATA, now)
        await deliveries.insert_new(tx, [delivery])
    return delivery
