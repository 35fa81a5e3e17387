"""Decisions D39 and D40 of docs/decisions.md: keys, accounts and the rate limit. A test is named after each."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from guichet.back_office.merchants import set_status
from guichet.clock import HOUR, SECOND, later
from guichet.domain.audit_log import Actor
from guichet.merchants import api_keys
from guichet.merchants.api_keys import new_key
from guichet.settings import Settings, load
from tests.contract.shapes import check_error
from tests.fakes.clock import RealClock
from tests.service_fixture import MerchantClient, ServiceFixture, open_service


@pytest.fixture
async def two_processes(settings: Settings) -> AsyncIterator[tuple[ServiceFixture, ServiceFixture]]:
    """Two servers over one database, as two processes would be."""
    async with open_service(settings, RealClock()) as one, open_service(settings, RealClock()) as two:
        yield one, two


async def test_d39_a_revoked_key_stops_within_a_second_everywhere(
    two_processes: tuple[ServiceFixture, ServiceFixture],
) -> None:
    one, two = two_processes
    merchant = await one.merchant()
    there = MerchantClient(two, merchant.id, merchant.keys)
    for account in (merchant, there):
        assert (await account.get("/balance")).status == 200
    [test_key, _] = await api_keys.list_of(one.ctx.db, merchant.id)
    await api_keys.revoke(one.ctx.db, test_key.id, one.clock.now())
    await asyncio.sleep(1)
    for account in (merchant, there):
        check_error(await account.get("/balance"), "unauthorized")
        assert (await account.live.get("/balance")).status == 200


async def test_d39_an_expired_key_stops_at_once_and_a_suspended_account_within_a_second(
    two_processes: tuple[ServiceFixture, ServiceFixture],
) -> None:
    one, two = two_processes
    merchant = await one.merchant()
    key, now = new_key("live"), one.clock.now()
    async with one.ctx.db.transaction() as tx:
        await api_keys.add(tx, merchant.id, "live", key, later(now, HOUR), now)
    brief = MerchantClient(two, merchant.id, {"live": key}, "live")
    assert (await brief.get("/balance")).status == 200
    two.clock.jump(HOUR / SECOND)
    check_error(await brief.get("/balance"), "key_expired")
    there = MerchantClient(two, merchant.id, merchant.keys)
    assert (await there.live.get("/balance")).status == 200
    await set_status(one.ctx.db, one.ctx.clock, merchant.id, "suspended", Actor("Awa", "awa"))
    await asyncio.sleep(1)
    check_error(await there.live.get("/balance"), "merchant_inactive")
    assert (await there.get("/balance")).status == 200


async def test_d39_keys_have_one_shape_and_are_not_stored(service: ServiceFixture, settings: Settings) -> None:
    merchant = await service.merchant()
    for env, key in merchant.keys.items():
        assert re.fullmatch(rf"sk_{env}_[A-Za-z0-9]{{32}}", key)
    stored = await api_keys.list_of(service.ctx.db, merchant.id)
    assert not any(key in repr(stored) for key in merchant.keys.values())


async def test_d40_the_limit_is_per_address_and_believes_trusted_proxies_only(sqlite_settings: Settings) -> None:
    for trusted, separate in (("", False), ("127.0.0.0/8", True)):
        proxies = load({"GUICHET_TRUSTED_PROXIES": trusted}).trusted_proxies
        async with open_service(replace(sqlite_settings, rate_limit=3, trusted_proxies=proxies)) as service:
            merchant = await service.merchant()
            for _ in range(3):
                assert (await merchant.get("/balance", headers={"X-Forwarded-For": "203.0.113.7"})).status == 200
            check_error(await merchant.get("/balance", headers={"X-Forwarded-For": "203.0.113.7"}), "rate_limited")
            other = await merchant.get("/balance", headers={"X-Forwarded-For": "203.0.113.8"})
            assert (other.status == 200) is separate
            forged = await merchant.get("/balance", headers={"X-Forwarded-For": "203.0.113.99, 203.0.113.7"})
            assert forged.status == 429


async def test_d40_the_window_slides(sqlite_settings: Settings) -> None:
    """The announced wait shrinks with time, whatever is refused meanwhile."""
    async with open_service(replace(sqlite_settings, rate_limit=2)) as service:
        merchant = await service.merchant()
        left = [(await merchant.get("/balance")).headers["X-RateLimit-Remaining"] for _ in range(2)]
        assert left == ["1", "0"]
        first = int((await merchant.get("/balance")).headers["Retry-After"])
        service.clock.advance(seconds=2)
        assert int((await merchant.get("/balance")).headers["Retry-After"]) < first
