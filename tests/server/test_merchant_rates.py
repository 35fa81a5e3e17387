"""A merchant's own limit of requests, instead of the one of its address."""

from dataclasses import replace

from guichet.back_office.merchants import set_limits
from guichet.domain.audit_log import Actor
from guichet.domain.key_access import KeyAccess
from guichet.domain.merchants import MerchantLimits
from guichet.merchants import api_keys
from guichet.settings import Settings, load
from tests.service_fixture import MerchantClient, open_service


async def _statuses(merchant: MerchantClient, count: int) -> list[int]:
    return [(await merchant.get("/balance")).status for _ in range(count)]


async def test_a_merchants_own_rate_replaces_that_of_its_address(sqlite_settings: Settings) -> None:
    async with open_service(replace(sqlite_settings, rate_limit=4)) as service:
        ctx, little, large = service.ctx, await service.merchant("Kora"), await service.merchant("Djembe")

        async def limit(merchant: MerchantClient, rate: int | None) -> None:
            await set_limits(ctx.db, ctx.clock, merchant.id, MerchantLimits(rate), Actor("Awa", "awa"))
            service.clock.advance(61)

        await limit(little, 2)
        assert await _statuses(little, 2) == [200, 200]
        assert await _statuses(replace(little, env="live"), 1) == [200], "of a key that is not known yet"
        refused = await little.get("/balance")
        assert (refused.status, refused.error["code"]) == (429, "rate_limited")
        assert "votre compte en accepte 2 par minute" in refused.error["message"]
        assert (refused.headers["X-RateLimit-Remaining"], int(refused.headers["Retry-After"]) <= 60) == ("0", True)
        assert (await little.get("/balance", headers={"X-Forwarded-For": "203.0.113.9"})).status == 429

        await limit(large, 9)
        assert await _statuses(large, 10) == [200] * 9 + [429], "more than its address may"
        assert await _statuses(await service.merchant("Balafon"), 4) == [200] * 3 + [429], "the address: 1 of large's"

        await limit(large, None)
        assert await _statuses(large, 2) == [200, 200], "its last one under its own limit, and one of the address"
        service.clock.advance(61)
        assert await _statuses(large, 5) == [200] * 4 + [429]


async def test_a_key_from_elsewhere_uses_up_nothing_of_its_merchant(sqlite_settings: Settings) -> None:
    proxies = load({"GUICHET_TRUSTED_PROXIES": "127.0.0.0/8"}).trusted_proxies
    async with open_service(replace(sqlite_settings, rate_limit=4, trusted_proxies=proxies)) as service:
        ctx, merchant = service.ctx, await service.merchant()
        await set_limits(ctx.db, ctx.clock, merchant.id, MerchantLimits(3), Actor("Awa", "awa"))
        key, now = api_keys.new_key("live"), ctx.clock.now()
        async with ctx.db.transaction() as tx:
            await api_keys.add(tx, merchant.id, "live", key, None, now, KeyAccess(networks="203.0.113.7"))
        own = replace(merchant, keys={"live": key}, env="live")

        async def statuses(address: str, count: int) -> list[int]:
            sent = {"X-Forwarded-For": address}
            return [(await own.get("/balance", headers=sent)).status for _ in range(count)]

        assert await statuses("198.51.100.1", 2) == [403, 403]
        assert await statuses("203.0.113.7", 1) == [200]
        assert await statuses("198.51.100.1", 3) == [403, 403, 429], "counted for the address of who stole the key"
        assert await statuses("203.0.113.7", 3) == [200, 200, 429]


async def test_a_revoked_key_uses_up_nothing_of_its_merchant(sqlite_settings: Settings) -> None:
    async with open_service(replace(sqlite_settings, rate_limit=0)) as service:
        ctx, merchant = service.ctx, await service.merchant()
        await set_limits(ctx.db, ctx.clock, merchant.id, MerchantLimits(3), Actor("Awa", "awa"))
        assert await _statuses(merchant, 1) == [200], "without a limit for addresses too"
        live = replace(merchant, env="live")
        assert await _statuses(live, 1) == [200]
        [test_key] = [key for key in await api_keys.list_of(ctx.db, merchant.id) if key.env == "test"]
        await api_keys.revoke(ctx.db, test_key.id, ctx.clock.now())
        service.clock.advance(1)
        assert await _statuses(merchant, 5) == [401] * 5
        assert await _statuses(live, 2) == [429, 429], "the first 401 was counted, the others were not"
        service.clock.advance(61)
        assert await _statuses(live, 4) == [200] * 3 + [429]
