"""Decisions D17 to D19 of docs/decisions.md, over HTTP: payment links. A test is named after each."""

from tests.contract.shapes import check_error, refused_fields
from tests.service_fixture import ServiceFixture

LINK = {"amount": 2500, "description": "Cotisation"}


async def test_d17_links_do_not_exist_for_a_test_key(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    link = (await merchant.live.post("/payment-links", LINK)).data
    for body in (LINK, {}, b"{"):
        assert "details" not in check_error(await merchant.post("/payment-links", body), "invalid_request")
    assert (await merchant.get("/payment-links")).body["meta"]["total"] == 0
    check_error(await merchant.get(f"/payment-links/{link['id']}"), "not_found")


async def test_d18_the_type_of_a_limited_link_has_its_accent(shared_service: ServiceFixture) -> None:
    merchant = (await shared_service.merchant()).live
    for written in ('"limit\u00e9"'.encode(), b'"limit\\u00e9"'):
        body = b'{"amount":1,"description":"x","max_uses":1,"type":%s}' % written
        answer = await merchant.post("/payment-links", body)
        assert '"type":"limit\u00e9"'.encode() in answer.raw
    for spelling in ("limite", "LIMIT\u00c9", "limite\u0301", "limit\u00e8", "limit\u00e9 ", "limited"):
        refused = await merchant.post("/payment-links", LINK | {"type": spelling, "max_uses": 1})
        assert refused_fields(refused) == {"type"}


async def test_d19_a_link_has_the_merchants_currency_and_ordered_dates(shared_service: ServiceFixture) -> None:
    euro, franc = (await shared_service.merchant(currency="EUR")).live, (await shared_service.merchant()).live
    assert (await euro.post("/payment-links", LINK | {"amount": 12.5})).data["amount"] == 12.5
    assert refused_fields(await franc.post("/payment-links", LINK | {"amount": 12.5})) == {"amount"}
    past = {"starts_at": "2020-01-01", "expires_at": "2020-01-02"}
    assert (await franc.post("/payment-links", LINK | past)).status == 201
    for expires_at in ("2020-01-01", "2019-12-31T23:59:59Z", "2020-01-01T00:30:00+01:00"):
        answer = await franc.post("/payment-links", LINK | past | {"expires_at": expires_at})
        assert refused_fields(answer) == {"expires_at"}
    assert (await franc.post("/payment-links", LINK | {"expires_at": "2020-01-01"})).data["starts_at"] is None
