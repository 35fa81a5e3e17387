"""Walks through lists with `after` and `order` (docs/contract.md, "Requests")."""

import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from guichet.clock import iso
from guichet.db.tables import disputes, payments
from tests.contract.shapes import check_success, endpoint, refused_fields
from tests.contract.tables import table
from tests.db.rows import DISPUTE
from tests.service_fixture import MerchantClient, ServiceFixture

LISTS = {row["Path"] for row in table("endpoints") if row["Paginated"] == "yes"}
NAME = {"/payments": "reference", "/refunds": "reference", "/payment-links": "id", "/webhooks/deliveries": "id"}
NAME["/disputes"] = "reference"


async def _fill(service: ServiceFixture, merchant: MerchantClient, path: str, count: int) -> list[Any]:
    """What the rows are called, oldest first; some of one instant."""
    await merchant.put("/webhooks/endpoint", {"url": "http://127.0.0.1:9/h"})
    for number in range(count):
        service.clock.advance(number % 3)
        if path == "/payment-links":
            await merchant.live.post(path, {"amount": 100, "description": "x"})
        elif path == "/webhooks/deliveries":
            await merchant.post("/webhooks/test")
        elif path == "/disputes":
            payment = await merchant.pay("0000")
            [row] = await service.ctx.db.all(select(payments.c.id).where(payments.c.reference == payment["reference"]))
            told = {"payment_id": row[0], "payment_reference": payment["reference"], "merchant_id": merchant.id}
            contested = {
                **DISPUTE,
                **told,
                "env": "test",
                "opened_at": service.clock.now(),
                "provider_reference": f"d{number}",
            }
            await service.ctx.db.write(insert(disputes).values({**contested, "reference": str(uuid4())}))
        else:
            reference = (await merchant.pay("0000"))["reference"]
            if path == "/refunds":
                await merchant.get(f"/payments/{reference}")
                await merchant.post(f"/payments/{reference}/refund")
    account = merchant.live if path == "/payment-links" else merchant
    listed = (await account.get(f"{path}?per_page=100")).data
    return [each[NAME[path]] for each in listed][::-1]


async def _walk(account: MerchantClient, path: str, query: str, per_page: int = 3) -> AsyncIterator[list[Any]]:
    """The pages of a walk, each as the names of its rows, until one is not full."""
    after = ""
    while True:
        answer = await account.get(f"{path}?per_page={per_page}{query}{after}")
        data = check_success(answer, endpoint("GET", path))
        assert (answer.body["meta"]["current_page"], answer.body["meta"]["per_page"]) == (1, per_page)
        yield [each[NAME[path]] for each in data]
        if len(data) < per_page:
            return
        after = f"&after={data[-1][NAME[path]]}"


def test_every_list_can_be_walked() -> None:
    assert set(NAME) == LISTS


@pytest.mark.both_databases
@pytest.mark.parametrize("path", sorted(LISTS))
async def test_a_walk_in_either_order_has_every_row_once(service: ServiceFixture, path: str) -> None:
    merchant = await service.merchant()
    names = await _fill(service, merchant, path, 8)
    assert len(names) == 8
    account = merchant.live if path == "/payment-links" else merchant
    for query, expected in (("", names[::-1]), ("&order=desc", names[::-1]), ("&order=asc", names)):
        assert [name async for page in _walk(account, path, query) for name in page] == expected
        pages = [(await account.get(f"{path}?per_page=3&page={number}{query}")).data for number in (1, 2, 3, 4)]
        assert [each[NAME[path]] for page in pages for each in page] == expected
    last = (await account.get(f"{path}?order=asc&after={names[-1]}")).body
    assert (last["data"], last["meta"]["total"]) == ([], 8)
    assert (await account.get(f"{path}?after={names[3]}&per_page=2")).body["meta"]["last_page"] == 4


@pytest.mark.both_databases
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_walk_of_pending_payments_loses_none_while_others_settle_and_arrive(
    service: ServiceFixture, order: str
) -> None:
    """Between two pages payments settle, the one that the next page names among them, and new ones are created."""
    merchant, rng = await service.merchant(), random.Random(1122)
    kept: list[str] = []
    settling: list[str] = []
    seen: list[str] = []
    for number in range(24):
        service.clock.advance(number % 2)
        (settling if number % 3 == 2 else kept).append(
            (await merchant.pay("1234" if number % 3 == 2 else "0002"))["reference"]
        )
    to = iso(service.clock.now())
    service.clock.advance(10)
    async for page in _walk(merchant, "/payments", f"&status=pending&order={order}&to={to}", 4):
        seen += page
        named = [reference for reference in page[-1:] if reference in settling]
        for reference in named + rng.sample(settling, 2):
            assert (await merchant.get(f"/payments/{reference}")).data["status"] == "succeeded"
        await merchant.pay("0002")
    assert len(seen) == len(set(seen))
    assert [reference for reference in seen if reference in kept] == (kept if order == "asc" else kept[::-1])


async def test_what_after_may_name(shared_service: ServiceFixture) -> None:
    merchant, other = await shared_service.merchant(), await shared_service.merchant()
    first = await merchant.pay(external_id="a/1")
    second = await merchant.pay()
    foreign, live = await other.pay(), "11111111-2222-4333-8444-555555555555"
    assert [p["reference"] for p in (await merchant.get("/payments?after=a%2F1&order=asc")).data] == [
        second["reference"]
    ]
    assert [p["reference"] for p in (await merchant.get(f"/payments?after={second['reference'].upper()}")).data] == [
        first["reference"]
    ]
    for path in sorted(LISTS):
        for unknown in ("", "x", "0", "%00", live, foreign["reference"], "9" * 40):
            answer = await merchant.get(f"{path}?after={unknown}")
            assert refused_fields(answer) == {"after"}, (path, unknown)
    assert refused_fields(await merchant.live.get(f"/payments?after={first['reference']}")) == {"after"}
    link = (await merchant.live.post("/payment-links", {"amount": 100, "description": "x"})).data
    assert refused_fields(await merchant.get(f"/payment-links?after={link['id']}")) == {"after"}
    assert refused_fields(await other.live.get(f"/payment-links?after={link['id']}")) == {"after"}


@pytest.mark.parametrize("path", sorted(LISTS))
async def test_after_goes_without_page_and_order_has_two_words(shared_service: ServiceFixture, path: str) -> None:
    merchant = await shared_service.merchant()
    assert refused_fields(await merchant.get(f"{path}?after=x&page=2")) == {"page"}
    # Generated clients may send the default beside it.
    assert refused_fields(await merchant.get(f"{path}?after=x&page=1")) == {"after"}
    for order in ("", "ASC", "newest", "asc,desc"):
        assert refused_fields(await merchant.get(f"{path}?order={order}")) == {"order"}
    assert refused_fields(await merchant.get(f"{path}?after=x&page=0&per_page=0&order=x")) == {
        "page",
        "per_page",
        "order",
    }


async def test_after_and_external_id_together(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    first, second = await merchant.pay(external_id="a"), await merchant.pay(external_id="b")
    for after, order, found in ((first, "asc", True), (second, "asc", False), (second, "desc", False)):
        answer = await merchant.get(f"/payments?external_id=b&order={order}&after={after['reference']}")
        assert (len(answer.data), answer.body["meta"]["total"]) == (int(found), 1)
