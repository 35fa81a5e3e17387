"""A merchant's own limits on live payments: each, and all of a day."""

import asyncio

import pytest

from guichet.back_office.merchants import set_limits
from guichet.db.engine import require
from guichet.domain.audit_log import Actor
from guichet.domain.merchants import MerchantLimits
from guichet.domain.money import Hundredths, french_with_code
from guichet.merchants import limits as merchant_limits
from guichet.merchants import repository as merchants
from guichet.providers.base import Refused
from tests.fakes.scripted_provider import taken
from tests.payments.conftest import LivePayments
from tests.service_fixture import Answer


async def _limit(live: LivePayments, payment: int | None, day: int | None) -> None:
    """In XOF. Servers may remember a merchant for a second."""
    hundredths = [None if each is None else Hundredths(each * 100) for each in (payment, day)]
    await set_limits(
        live.ctx.db, live.ctx.clock, live.merchant.id, MerchantLimits(None, *hundredths), Actor("Awa", "awa")
    )
    live.service.clock.advance(1)


async def _ask(live: LivePayments, amount: int, **fields: object) -> Answer:
    body = {"amount": amount, "operator": "mtn", "phone_number": "22997001234", **fields}
    return await live.merchant.post("/payments", body)


async def _total(live: LivePayments) -> int:
    merchant = require(await merchants.get(live.ctx.db, live.merchant.id))
    day = merchant_limits.day_of(merchant, live.ctx.clock.now(), live.ctx.settings.time_zone)
    return await merchant_limits.total_of(live.ctx.db, merchant.id, day)


async def test_a_live_payment_over_the_merchants_limit_is_refused_and_not_stored(live: LivePayments) -> None:
    await _limit(live, 20_000, None)
    assert (await _ask(live, 20_000, external_id="kept")).status == 201
    refused = await _ask(live, 20_001)
    assert (refused.status, refused.error["code"]) == (422, "invalid_request")
    assert refused.error["details"] == {"amount": [refused.error["message"]]}
    assert "20\u202f000\u00a0XOF" in refused.error["message"]
    other = await _ask(live, 10, currency="XAF")
    assert (other.status, list(other.error["details"])) == (422, ["currency"])
    assert len(live.first.calls) == 1, "no operator was asked"

    await _limit(live, 10_000, None)
    assert (await _ask(live, 20_000, external_id="kept")).status == 201, "it exists already"
    assert (await live.merchant.get("/payments")).body["meta"]["total"] == 1
    live.merchant.env = "test"
    assert (await _ask(live, 50_000)).status == 201, "a test counts towards no limit"
    live.merchant.env = "live"
    await _limit(live, None, None)
    assert (await _ask(live, 50_000)).status == 201


@pytest.mark.both_databases
async def test_the_payments_of_a_day_are_counted_once_and_failures_given_back(live: LivePayments) -> None:
    await _limit(live, None, 50_000)
    answers = await asyncio.gather(*(_ask(live, 10_000, external_id=f"o{n}") for n in range(8)))
    assert sorted(each.status for each in answers) == [201] * 5 + [422] * 3
    message = next(each.error["message"] for each in answers if each.status == 422)
    assert "0\u00a0XOF sur 50\u202f000\u00a0XOF" in message
    assert await _total(live) == 50_000_00
    stored = [each.data["external_id"] for each in answers if each.status == 201]
    assert (await _ask(live, 10_000, external_id=stored[0])).status == 201, "a repetition counts nothing"

    live.first.script("status", Refused("declined"))
    await live.service.run_worker(5)
    failed = [each for each in (await live.merchant.get("/payments")).data if each["status"] == "failed"]
    assert failed, "the operator refused at least one of them"
    assert await _total(live) == 50_000_00 - len(failed) * 10_000_00
    live.first.script("initiate", Refused("insufficient_funds"))
    before = await _total(live)
    assert (await _ask(live, 10_000)).status == 402
    assert await _total(live) == before, "a refusal at its initiation as well"
    left = (50_000_00 - before) // 100
    refused = await _ask(live, left + 1)
    assert f": {french_with_code(left * 100, 'XOF')} sur" in refused.error["message"]

    live.service.clock.advance(24 * 3600)
    live.first.script("initiate", taken)
    assert (await _ask(live, 50_001)).status == 422, "more than a whole day"
    assert await _total(live) == 0
    assert (await _ask(live, 50_000)).status == 201


async def test_a_link_says_to_its_customer_that_the_shop_cannot_take_it(sqlite_live: LivePayments) -> None:
    live = sqlite_live
    body = {"amount": 5000, "description": "Pagne", "external_id": "pagne"}
    made = await live.merchant.post("/payment-links", body)
    await _limit(live, 4_500, None)
    refused = await live.merchant.post("/payment-links", {**body, "external_id": "other"})
    assert (refused.status, refused.error["code"], list(refused.error["details"])) == (
        422,
        "invalid_request",
        ["amount"],
    )
    assert "4\u202f500\u00a0XOF" in refused.error["message"]
    assert (await live.merchant.post("/payment-links", {**body, "amount": 4_500, "external_id": "least"})).status == 201
    await _limit(live, None, 4_000)
    assert (await live.merchant.post("/payment-links", {**body, "external_id": None})).status == 422
    again = await live.merchant.post("/payment-links", body)
    assert (again.status, again.data["id"]) == (201, made.data["id"]), "it exists already"
    path = made.data["url"].removeprefix(live.ctx.settings.public_url)
    page = await live.service.call("GET", path)
    token = page.raw.decode().partition('name="token" value="')[2].partition('"')[0]
    assert token
    async with live.service.client.post(
        live.service.base_url + path, data={"token": token, "operator": "mtn", "phone_number": "97001234"}
    ) as answer:
        shown = await answer.text()
    assert answer.status == 422
    assert "ne peut pas recevoir ce montant" in shown
    assert "4000" not in shown, "the limit is the shop's business"
    assert (await live.merchant.get("/payments")).data == []
