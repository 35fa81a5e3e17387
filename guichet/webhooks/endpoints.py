"""The webhook endpoint of a merchant in one environment: its address, its secret, the test event.

Source: docs/contract.md, "Webhooks".
"""

from typing import Final

from guichet.audit_log import entries as audit_log
from guichet.clock import HOUR, Instant, later
from guichet.db.engine import Database, Transaction
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.events import WEBHOOK_TEST, Delivery
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment, new_webhook_secret
from guichet.domain.records import Record
from guichet.http_client import HttpClient
from guichet.merchants import repository as merchants
from guichet.merchants.vault import Vault
from guichet.schemas.envelope import RequestWarning, warning
from guichet.schemas.notification import WebhookMessageObject
from guichet.webhooks import deliveries, outbox

_TEST_DATA: Final[WebhookMessageObject] = {
    "message": "Ceci est un événement de test : votre point de terminaison reçoit bien les notifications."
}


class Configuration(Record, frozen=True):
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
    actor: Actor | None = None,
) -> Configuration:
    """As `change`. `actor`: the person who changes the address, for the audit log; None for a command of a
    developer."""
    async with db.transaction() as tx:
        before, configured = await change(tx, vault, merchant_id, env, url, now, rotate=rotate)
        if actor and before != url:
            old: Facts = {"url": before}
            await _record(tx, actor, "webhook_endpoint.changed", merchant_id, env, now, old, {"url": url})
    return configured


async def change(
    tx: Transaction,
    vault: Vault,
    merchant_id: MerchantId,
    env: Environment,
    url: str | None,
    now: Instant,
    *,
    rotate: bool,
    overlap_hours: int = 0,
) -> tuple[str | None, Configuration]:
    """Sets or, with None, disables the address. A rotated secret signs from the next attempt on (D34); by Standard
    Webhooks the one before signs too for `overlap_hours`. The address before, and the endpoint as it is now."""
    new_secret = vault.encrypt(new_webhook_secret()) if rotate else None
    before = await merchants.lock_endpoint(tx, merchant_id, env)
    until = later(now, overlap_hours * HOUR) if overlap_hours else None
    endpoint = await merchants.configure_endpoint(tx, merchant_id, env, url, new_secret, now, until)
    if url is None:
        await deliveries.cancel_waiting(tx, merchant_id, env)
    return before.url, Configuration(endpoint.url, vault.decrypt(endpoint.secret))


async def rotate_secret(
    db: Database, vault: Vault, merchant_id: MerchantId, env: Environment, actor: Actor, now: Instant
) -> None:
    """A new secret for the same address. It signs from the next attempt on (D34)."""
    encrypted = vault.encrypt(new_webhook_secret())
    async with db.transaction() as tx:
        endpoint = await merchants.lock_endpoint(tx, merchant_id, env)
        await merchants.configure_endpoint(tx, merchant_id, env, endpoint.url, encrypted, now)
        await _record(tx, actor, "webhook_secret.rotated", merchant_id, env, now)


async def reveal_secret(
    db: Database, vault: Vault, merchant_id: MerchantId, env: Environment, actor: Actor, now: Instant
) -> str:
    """The secret in clear, for a person whom the audit log names from now on."""
    async with db.transaction() as tx:
        endpoint = await merchants.endpoint(tx, merchant_id, env)
        await _record(tx, actor, "webhook_secret.shown", merchant_id, env, now)
    return vault.decrypt(endpoint.secret)


async def warnings_about(http_client: HttpClient, url: str | None) -> list[RequestWarning]:
    """What speaks against an address that was just configured. Looks its name up, for a few seconds at most.

    One code for a name that leads to an address of ours and for one that leads nowhere: two would tell a merchant which
    internal names exist."""
    host = None if url is None else await http_client.unreachable_host(url)
    return [] if host is None else [warning("webhook_address_not_public", host=host)]


async def queue_test(
    db: Database, merchant_id: MerchantId, env: Environment, now: Instant, actor: Actor | None = None
) -> Delivery | None:
    """Queues a `webhook.test` for the configured address; None when there is none (D37). `actor`: as for
    `configure`."""
    async with db.transaction() as tx:
        endpoint = await merchants.endpoint(tx, merchant_id, env)
        if endpoint.url is None:
            return None
        event = outbox.new_event(merchant_id, env, WEBHOOK_TEST, _TEST_DATA, now)
        [delivery] = await outbox.queue_events(tx, [event], endpoint.url)
        if actor is not None:
            await _record(tx, actor, "webhook_test.sent", merchant_id, env, now, after={"delivery": delivery.reference})
    return delivery


async def _record(
    tx: Transaction,
    actor: Actor,
    action: str,
    merchant_id: MerchantId,
    env: Environment,
    now: Instant,
    before: Facts | None = None,
    after: Facts | None = None,
) -> None:
    facts: Facts = {"env": env, **(after or {})}
    act = Act(actor, action, "webhook_endpoint", f"{merchant_id} {env}", merchant_id, before=before or {}, after=facts)
    await audit_log.record(tx, act, now)
