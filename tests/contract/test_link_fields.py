"""`external_id`, `metadata` and `return_url` of payment links: idempotency, byte-exact copies, what is refused."""

import asyncio

import pytest

from tests.contract.shapes import check_error, check_resource, refused_fields
from tests.service_fixture import ServiceFixture

LINK = {"amount": 2500, "description": "Cotisation"}
MANY = 48


async def test_a_repeated_external_id_answers_the_link_that_exists(shared_service: ServiceFixture) -> None:
    merchant, other = (await shared_service.merchant()).live, (await shared_service.merchant()).live
    first = await merchant.post("/payment-links", LINK | {"external_id": "a"})
    link = check_resource("payment-link", first.data)
    assert link["external_id"] == "a"
    for body in (LINK, {"amount": 9000, "description": "Autre", "type": "limité", "max_uses": 3, "metadata": {"x": 1}}):
        again = await merchant.post("/payment-links", body | {"external_id": "a"})
        assert (again.status, again.raw) == (201, first.raw)
    assert refused_fields(await merchant.post("/payment-links", LINK | {"external_id": "a", "amount": 0})) == {"amount"}
    assert (await merchant.get("/payment-links")).data == [link]
    # It belongs to one account, and links without one are all different.
    assert (await other.post("/payment-links", LINK | {"external_id": "a"})).data["id"] != link["id"]
    assert len({(await merchant.post("/payment-links", LINK)).data["id"] for _ in range(3)}) == 3
    # Payments have external_ids of their own.
    check_error(await merchant.get("/payments/a"), "not_found")


async def test_many_requests_at_once_make_one_link(service: ServiceFixture) -> None:
    merchant = (await service.merchant()).live
    bodies = [{"amount": 1000 + n, "description": f"n° {n}", "external_id": "a"} for n in range(MANY)]
    answers = await asyncio.gather(*(merchant.post("/payment-links", body) for body in bodies))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.raw for answer in answers}) == 1
    assert (await merchant.get("/payment-links")).data == [answers[0].data]


@pytest.mark.parametrize("external_id", ["x", "é" * 100, "a b", " ", "d1/é?&#%2F", "\u202e\U0001f4b0"])
async def test_an_external_id_may_hold_any_characters(shared_service: ServiceFixture, external_id: str) -> None:
    merchant = (await shared_service.merchant()).live
    answers = [await merchant.post("/payment-links", LINK | {"external_id": external_id}) for _ in range(2)]
    assert answers[0].data["external_id"] == external_id
    assert answers[0].raw == answers[1].raw


async def test_metadata_is_kept_byte_for_byte(shared_service: ServiceFixture) -> None:
    merchant = (await shared_service.merchant()).live
    metadata = b'{"b":1.50,  "a": "\\u00e9",\n"n":100000000000000000000000, "b": [ ]}'
    body = b'{"amount": 2500, "description": "x", "metadata": %s}' % metadata
    answer = await merchant.post("/payment-links", body)
    assert b'"metadata":%s,' % metadata in answer.raw
    assert b'"metadata":%s,' % metadata in (await merchant.get(f"/payment-links/{answer.data['id']}")).raw
    for nothing in (LINK | {"metadata": None}, LINK):
        assert (await merchant.post("/payment-links", nothing)).data["metadata"] is None
    assert (await merchant.post("/payment-links", LINK | {"metadata": {}})).data["metadata"] == {}
    hidden = b'{"amount": 2500, "description": "x", "metadata": {"a": "\\u0000", "a": 1}}'
    assert refused_fields(await merchant.post("/payment-links", hidden)) == {"metadata"}


async def test_a_return_url_is_answered_as_it_was_sent(shared_service: ServiceFixture) -> None:
    merchant = (await shared_service.merchant()).live
    for url in ("https://shop.example/merci?panier=77", "http://shop.example:8080/", "https://é.example/ü#x"):
        assert (await merchant.post("/payment-links", LINK | {"return_url": url})).data["return_url"] == url
    for bad in ("javascript:alert(1)", "shop.example", "https://shop example"):
        assert refused_fields(await merchant.post("/payment-links", LINK | {"return_url": bad})) == {"return_url"}
