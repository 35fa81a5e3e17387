"""API keys as people manage them, on the command line and in the console: each act is in the audit log. A running
server sees a change within a second."""

from typing import Final

from guichet.audit_log import entries as audit_log
from guichet.clock import Clock, Instant, iso
from guichet.db.engine import Database, Reader, Transaction
from guichet.domain.audit_log import Act, Actor, ActRefused, FactName, Facts
from guichet.domain.ids import ApiKeyId, MerchantId
from guichet.domain.key_access import MOST_NETWORKS, UNRESTRICTED, KeyAccess, scopes_of
from guichet.domain.merchants import ApiKey, Environment
from guichet.domain.messages import Moment
from guichet.domain.refusals import Refusal
from guichet.merchants import api_keys
from guichet.merchants import repository as merchants
from guichet.merchants.api_keys import new_key

#: Keys that work, of a merchant in one environment.
MOST_KEYS: Final = 50


class NewerKey(ActRefused):
    """Another key was made since the person looked: their form was sent twice, or a colleague was faster."""


async def newest(db: Reader, merchant_id: MerchantId, env: Environment) -> int:
    """The id of the key that was made last, revoked or not; 0 if there was never one."""
    latest = (await api_keys.not_revoked(db, merchant_id, env, 1), await api_keys.revoked(db, merchant_id, env, 1))
    return max((key.id for keys in latest for key in keys), default=0)


async def create(
    db: Database,
    clock: Clock,
    merchant_id: MerchantId,
    env: Environment,
    expires_at: Instant | None,
    actor: Actor,
    after: int | None = None,
    access: KeyAccess = UNRESTRICTED,
    name: str | None = None,
) -> tuple[ApiKey, str]:
    """One more key, and its text, which is stored nowhere; the others keep working. `after`: the newest key when the
    person asked, so that one form makes one key; None for a command. Raises ActRefused, NewerKey."""
    now, key = clock.now(), new_key(env)
    _refuse_past(expires_at, now)
    _refuse_networks(access, env)
    async with db.transaction() as tx:
        # Two forms at the same time wait for one another here.
        if await merchants.lock(tx, merchant_id) is None:
            raise ActRefused(Refusal.NO_MERCHANT(merchant=merchant_id))
        if after is not None and after != await newest(tx, merchant_id, env):
            raise NewerKey(Refusal.NEWER_KEY())
        if len(await api_keys.not_revoked(tx, merchant_id, env, MOST_KEYS)) == MOST_KEYS:
            raise ActRefused(Refusal.TOO_MANY_KEYS(count=MOST_KEYS))
        created = await api_keys.add(tx, merchant_id, env, key, expires_at, now, access, name)
        facts: Facts = {"expires_at": None if expires_at is None else iso(expires_at), **_restrictions(access)}
        await _record(tx, actor, "key.created", created, now, facts)
    return created, key


async def expire(
    db: Database, clock: Clock, key: ApiKey, expires_at: Instant, actor: Actor, reason: str = ""
) -> ApiKey:
    """Sets when a key stops working; setting the same end again changes nothing. Raises ActRefused for one that has
    stopped already."""
    now = clock.now()
    _refuse_past(expires_at, now)
    async with db.transaction() as tx:
        changed = await api_keys.expire(tx, key.id, expires_at, now)
        if changed is None:
            stored = await api_keys.find(tx, key.merchant_id, key.env, key.id)
            if stored is not None and stored.revoked_at is None and stored.expires_at == expires_at:
                return stored
            raise ActRefused(Refusal.KEY_ENDED())
        await _record(tx, actor, "key.expiry_set", changed, now, {"expires_at": iso(expires_at)}, reason)
    return changed


async def revoke(db: Database, clock: Clock, key_id: ApiKeyId, actor: Actor, reason: str = "") -> ApiKey | None:
    """Revokes a key for ever; revoking it again changes nothing. None when there is none."""
    now = clock.now()
    async with db.transaction() as tx:
        revoked = await api_keys.revoke(tx, key_id, now)
        if revoked is None:
            return await api_keys.by_id(tx, key_id)
        await _record(tx, actor, "key.revoked", revoked, now, {"revoked_at": iso(now)}, reason)
    return revoked


def _refuse_past(expires_at: Instant | None, now: Instant) -> None:
    if expires_at is not None and expires_at <= now:
        raise ActRefused(Refusal.KEY_IN_PAST(at=Moment(expires_at)))


def _refuse_networks(access: KeyAccess, env: Environment) -> None:
    """Test keys move no money, and are used from wherever a developer works."""
    if access.networks is None:
        return
    if env != "live":
        raise ActRefused(Refusal.KEY_NETWORKS_LIVE())
    if len(access.networks.split()) > MOST_NETWORKS:
        raise ActRefused(Refusal.TOO_MANY_NETWORKS(count=MOST_NETWORKS))


def _restrictions(access: KeyAccess) -> Facts:
    """What a key may do less than others; nothing for a full one."""
    facts: dict[FactName, object] = {}
    if (scopes := scopes_of(access.scopes)) is not None:
        facts["scopes"] = scopes
    if access.networks is not None:
        facts["networks"] = access.networks.split()
    return facts


async def _record(
    tx: Transaction, actor: Actor, action: str, key: ApiKey, now: Instant, facts: Facts, reason: str = ""
) -> None:
    named: Facts = {} if key.name is None else {"name": key.name}
    after: Facts = {"env": key.env, "preview": key.preview, **named, **facts}
    await audit_log.record(tx, Act(actor, action, "key", str(key.id), key.merchant_id, reason, after=after), now)
