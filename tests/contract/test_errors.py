"""Every error code that an endpoint can answer, produced by its own request; and the headers of every answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from guichet.clock import SECOND, later
from guichet.domain.key_access import KeyAccess, scope_bits
from guichet.merchants import api_keys
from guichet.merchants.api_keys import new_key
from guichet.settings import Settings
from tests.contract.shapes import check_error, order
from tests.contract.tables import Row, column, table
from tests.service_fixture import Answer, MerchantClient, ServiceFixture, open_service
from tests.sqlite_file import open_sqlite

ROWS = {row["Code"]: row for row in table("errors")}
LIMIT = int(next(row["Value"] for row in table("limits") if row["Limit"] == "request rate"))


@pytest.fixture
async def limited_service(sqlite_settings: Settings) -> AsyncIterator[ServiceFixture]:
    """With the contract's own rate limit."""
    async with open_service(replace(sqlite_settings, rate_limit=LIMIT)) as opened:
        yield opened


async def _unauthorized(service: ServiceFixture) -> Answer:
    return await service.call("GET", "/v1/balance", headers={"Authorization": f"Bearer sk_test_{'x' * 32}"})


async def _key_expired(service: ServiceFixture) -> Answer:
    merchant = await service.merchant()
    key, now = new_key("test"), service.clock.now()
    async with service.ctx.db.transaction() as tx:
        await api_keys.add(tx, merchant.id, "test", key, later(now, 5 * SECOND), now)
    mine = MerchantClient(service, merchant.id, {"test": key})
    assert (await mine.get("/balance")).status == 200
    service.clock.advance(5)
    return await mine.get("/balance")


async def _merchant_inactive(service: ServiceFixture) -> Answer:
    return await (await service.merchant(status="pending")).live.post("/payments", order())


async def _restricted(service: ServiceFixture, access: KeyAccess) -> Answer:
    merchant, key = await service.merchant(), new_key("live")
    async with service.ctx.db.transaction() as tx:
        await api_keys.add(tx, merchant.id, "live", key, None, service.clock.now(), access)
    return await MerchantClient(service, merchant.id, {"live": key}, "live").post("/payments", order())


async def _address_not_allowed(service: ServiceFixture) -> Answer:
    return await _restricted(service, KeyAccess(networks="203.0.113.7"))


async def _insufficient_scope(service: ServiceFixture) -> Answer:
    return await _restricted(service, KeyAccess(scopes=scope_bits(["payments:read"])))


async def _invalid_request(service: ServiceFixture) -> Answer:
    return await (await service.merchant()).post("/payments", {})


async def _payment_failed(service: ServiceFixture) -> Answer:
    return await (await service.merchant()).post("/payments", order(phone_number="22997000001"))


async def _not_found(service: ServiceFixture) -> Answer:
    return await (await service.merchant()).get("/payments/nothing")


async def _conflict(service: ServiceFixture) -> Answer:
    merchant = await service.merchant()
    return await merchant.post(f"/payments/{(await merchant.pay())['reference']}/refund")


async def _method_not_allowed(service: ServiceFixture) -> Answer:
    return await (await service.merchant()).call("DELETE", "/payments")


PRODUCED: dict[str, Callable[[ServiceFixture], Awaitable[Answer]]] = {
    "unauthorized": _unauthorized,
    "key_expired": _key_expired,
    "merchant_inactive": _merchant_inactive,
    "address_not_allowed": _address_not_allowed,
    "insufficient_scope": _insufficient_scope,
    "invalid_request": _invalid_request,
    "payment_failed": _payment_failed,
    "not_found": _not_found,
    "conflict": _conflict,
    "method_not_allowed": _method_not_allowed,
}


@pytest.mark.parametrize("code", PRODUCED)
async def test_each_error_is_produced_by_its_own_request(shared_service: ServiceFixture, code: str) -> None:
    error = check_error(await PRODUCED[code](shared_service), code)
    assert ("details" in error) is (code == "invalid_request")


def test_every_code_that_is_emitted_is_produced_here() -> None:
    """`rate_limited` and `server_error` have tests of their own below; nothing emits the others (D41)."""
    emitted = {code for code, row in ROWS.items() if row["Emitted"] == "yes"}
    assert emitted == {*PRODUCED, "rate_limited", "server_error"}
    assert set(ROWS) - emitted == {"insufficient_funds", "payout_failed", "payout_limit_exceeded"}


async def test_more_requests_than_the_limit(limited_service: ServiceFixture) -> None:
    """With and without a key, whatever the request."""
    merchant = await limited_service.merchant()
    left = []
    for number in range(LIMIT):
        path = ("/balance", "/nothing", "/payment-modes")[number % 3]
        left.append(int((await merchant.get(path)).headers["X-RateLimit-Remaining"]))
    assert left == list(range(LIMIT - 1, -1, -1))
    for answer in (
        await merchant.post("/payments", order()),
        await limited_service.call("DELETE", "/v1/nothing"),
    ):
        check_error(answer, "rate_limited")
        assert answer.headers["X-RateLimit-Remaining"] == answer.headers["RateLimit-Remaining"] == "0"
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert answer.headers["RateLimit-Limit"] == str(LIMIT)
        assert answer.headers["RateLimit-Reset"] == answer.headers["Retry-After"]
    assert (await limited_service.call("GET", "/healthz")).status == 200


async def test_answers_below_the_limit_say_what_is_left(limited_service: ServiceFixture) -> None:
    merchant = await limited_service.merchant()
    answers = [
        await merchant.get("/balance"),
        await merchant.get("/payments/nothing"),
        await merchant.call("DELETE", "/payments"),
        await merchant.post("/payments", {}),
        await limited_service.call("GET", "/v1/balance"),
        await merchant.get("/nothing"),
    ]
    assert [answer.status for answer in answers] == [200, 404, 405, 422, 401, 404]
    assert [int(a.headers["X-RateLimit-Remaining"]) for a in answers] == [LIMIT - 1 - n for n in range(len(answers))]
    assert not any("Retry-After" in answer.headers for answer in answers)


async def test_a_database_that_fails_is_a_server_error_and_tells_nothing(
    service: ServiceFixture, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    merchant = await service.merchant()
    await merchant.pay(external_id="a")
    await _damage(settings)
    for answer in (
        await merchant.get("/payments"),
        await merchant.get("/payments/a"),
        await merchant.post("/payments", order()),
    ):
        error = check_error(answer, "server_error")
        assert "payments" not in error["message"]
        assert "Traceback" not in answer.raw.decode()
        assert answer.headers["X-Request-Id"]


async def _damage(settings: Settings) -> None:
    """Takes the table of payments away behind the service's back."""
    statement = "ALTER TABLE payments RENAME TO mislaid"
    if settings.embedded:
        await asyncio.to_thread(_run_sqlite, settings.sqlite_path, statement)
        return
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _run_sqlite(path: Path, statement: str) -> None:
    with closing(open_sqlite(path)) as connection:
        connection.execute(statement)


# --- headers ----------------------------------------------------------------------------------------------------------


def test_the_headers_of_the_contract_are_those_tested_here() -> None:
    rows: list[Row] = table("response-headers")
    assert {row["Header"] for row in rows} >= {"X-RateLimit-Remaining", "Retry-After", "Allow"}
    assert column("response-headers", "Header") == [
        "X-RateLimit-Remaining",
        "RateLimit-Limit",
        "RateLimit-Remaining",
        "RateLimit-Reset",
        "Retry-After",
        "Allow",
        "WWW-Authenticate",
        "X-Request-Id",
    ]


async def test_every_answer_names_its_request(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    paths = ["/v1/balance", "/v1/payments/x", "/v1/nothing", "/nothing", "/healthz"]
    ids = {(await sqlite_service.call("GET", path)).headers["X-Request-Id"] for path in paths}
    assert len(ids) == len(paths)
    own = await merchant.get("/balance", headers={"X-Request-Id": "order-4711.retry_2"})
    assert own.headers["X-Request-Id"] == "order-4711.retry_2"
    for odd in ("short", "x" * 65, "with space here", "é" * 10, "a\tb" * 5):
        assert (await merchant.get("/balance", headers={"X-Request-Id": odd})).headers["X-Request-Id"] != odd


async def test_only_a_401_has_the_www_authenticate_header(shared_service: ServiceFixture) -> None:
    for code, produce in PRODUCED.items():
        answer = await produce(shared_service)
        assert answer.headers.get("WWW-Authenticate") == ("Bearer" if answer.status == 401 else None), code
        assert ("Allow" in answer.headers) is (code == "method_not_allowed")


def test_d41_withdrawal_codes_are_listed_and_never_emitted() -> None:
    assert [row["Code"] for row in table("errors") if row["Emitted"] == "no"] == [
        "insufficient_funds",
        "payout_failed",
        "payout_limit_exceeded",
    ]
