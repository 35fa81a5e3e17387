"""The other bodies of the contract, field by field: refund, link, fee simulation, webhook endpoint."""

from typing import Any

import pytest

from tests.contract.shapes import check_resource, refused_fields
from tests.contract.tables import table
from tests.service_fixture import MerchantClient, ServiceFixture

LINK: dict[str, Any] = {"amount": 2500, "description": "Cotisation"}
LIMITED: dict[str, Any] = LINK | {"type": "limité", "max_uses": 3}


def _rows(endpoint: str) -> dict[str, dict[str, str]]:
    return {row["Field"]: row for row in table(f"request {endpoint}")}


async def _refused(
    merchant: MerchantClient, path: str, base: dict[str, Any], field: str, values: tuple[object, ...]
) -> None:
    verb = "PUT" if path == "/webhooks/endpoint" else "POST"
    for value in values:
        answer = await merchant.call(verb, path, base | {field: value})
        assert refused_fields(answer) == {field}, (field, value, answer.raw)


# --- refunds ----------------------------------------------------------------------------------------------------------


async def _succeeded(merchant: MerchantClient) -> str:
    reference: str = (await merchant.pay("0000"))["reference"]
    assert (await merchant.get(f"/payments/{reference}")).data["status"] == "succeeded"
    return reference


async def test_the_reason_of_a_refund(shared_service: ServiceFixture) -> None:
    rows = _rows("POST /payments/{reference}/refund")
    assert list(rows) == ["reason"]
    merchant = await shared_service.merchant()
    longest = int(rows["reason"]["Max length"])
    path = f"/payments/{await _succeeded(merchant)}/refund"
    await _refused(merchant, path, {}, "reason", (5, True, [], {}, "é" * (longest + 1), "nul\0"))
    assert (await merchant.get("/refunds")).data == []
    refund = (await merchant.post(path, {"reason": "é" * longest})).data
    assert check_resource("refund", refund)["reason"] == "é" * longest


@pytest.mark.parametrize("body", [None, b"", b"  \n", b"{}", b'{"reason":null}', b'{"other":1}'])
async def test_a_refund_needs_no_body(shared_service: ServiceFixture, body: bytes | None) -> None:
    merchant = await shared_service.merchant()
    answer = await merchant.post(f"/payments/{await _succeeded(merchant)}/refund", body)
    assert answer.status == 201
    assert answer.data["reason"] == _rows("POST /payments/{reference}/refund")["reason"]["Default"]


# --- links ------------------------------------------------------------------------------------------------------------


async def test_the_fields_of_a_link(shared_service: ServiceFixture) -> None:
    rows = _rows("POST /payment-links")
    merchant = (await shared_service.merchant()).live
    wrong: dict[str, tuple[object, ...]] = {
        "amount": ("2500", True, None, [], 0, 0.5, 100_000_000, 2500.5),
        "description": (None, 5, True, [], "é" * (int(rows["description"]["Max length"]) + 1)),
        "type": ("limite", "LIMITÉ", "limite\u0301", "Permanent", "", 5, True, []),
        "max_uses": (None, 0, -1, "3", True, 1.5, [], 2**80),
        "starts_at": ("", "demain", "2026-13-01", 5, True, "2026-11-20T25:00:00Z", "20/11/2026"),
        "expires_at": ("", "demain", "2026-02-30", 5, True),
        "external_id": ("", 5, True, [], "é" * (int(rows["external_id"]["Max length"]) + 1), "nul\0"),
        "metadata": ("x", 5, True, [], {"a": "nul\0"}),
        "return_url": ("", "boutique", "ftp://shop.example/", 5, True, "https://shop.example/" + "x" * 2048),
    }
    assert set(wrong) == set(rows)
    for field, values in wrong.items():
        await _refused(merchant, "/payment-links", LIMITED, field, values)
    for field in ("amount", "description", "max_uses"):
        answer = await merchant.post("/payment-links", {k: v for k, v in LIMITED.items() if k != field})
        assert refused_fields(answer) == {field}
    assert (await merchant.get("/payment-links")).data == []


async def test_links_as_they_are_answered(shared_service: ServiceFixture) -> None:
    merchant = (await shared_service.merchant()).live
    permanent = check_resource(
        "payment-link", (await merchant.post("/payment-links", LINK | {"max_uses": "many"})).data
    )
    assert [permanent[name] for name in ("type", "max_uses", "uses_count", "uses_left")] == ["permanent", None, 0, None]
    assert (permanent["starts_at"], permanent["expires_at"]) == (None, None)
    assert [permanent[name] for name in ("external_id", "metadata", "return_url")] == [None, None, None]
    full = LIMITED | {
        "description": "é" * 255,
        "max_uses": 1.0,
        "starts_at": "2026-11-20",
        "expires_at": "2026-11-20T00:00:00.000001+00:00",
    }
    limited = check_resource("payment-link", (await merchant.post("/payment-links", full)).data)
    assert [limited[name] for name in ("type", "max_uses", "uses_count", "uses_left")] == ["limité", 1, 0, 1]
    assert limited["starts_at"] == "2026-11-20T00:00:00.000000Z"
    assert limited["expires_at"] == "2026-11-20T00:00:00.000001Z"
    assert limited["id"] > permanent["id"]
    assert (await merchant.get(f"/payment-links/{limited['id']}")).data == limited
    assert len({link["url"] for link in (permanent, limited)}) == 2
    for link in (permanent, limited):
        base = shared_service.ctx.settings.public_url + "/pay/"
        assert link["url"].startswith(base)
        fragments = link["url"].removeprefix(base).split("/")
        assert [len(fragment) for fragment in fragments] == [22, 22]
        assert str(link["id"]) not in fragments


@pytest.mark.parametrize(
    "number", ["0", "-1", "1e0", "x", "%31%00", "9" * 18, "9" * 19, "9" * 40, "%C3%28", "1.0", "٣"]
)
async def test_a_link_number_that_names_nothing(shared_service: ServiceFixture, number: str) -> None:
    merchant = (await shared_service.merchant()).live
    await merchant.post("/payment-links", LINK)
    path = number if number.isascii() else "%D9%A3"
    assert (await merchant.get(f"/payment-links/{path}")).status == 404


async def test_a_long_number_does_not_name_the_link_it_starts_with(shared_service: ServiceFixture) -> None:
    merchant = (await shared_service.merchant()).live
    link = (await merchant.post("/payment-links", LINK)).data
    assert (await merchant.get(f"/payment-links/{link['id']:020d}999")).status == 404


# --- fee simulation ---------------------------------------------------------------------------------------------------


async def test_the_fields_of_a_fee_simulation(shared_service: ServiceFixture) -> None:
    rows = _rows("POST /payment-modes/fees")
    merchant = await shared_service.merchant()
    wrong: dict[str, tuple[object, ...]] = {
        "amount": ("5000", True, None, [], 0, 0.99, 100_000_000, 1.005),
        "operator": (5, True, [], "", "unknown", "m" * 33),
        "payment_mode_id": ("1", True, 1.5, [], 0, -1, 999, 2**80),
    }
    assert set(wrong) == set(rows)
    for field, values in wrong.items():
        base: dict[str, Any] = {"amount": 5000} | ({"operator": "mtn"} if field == "amount" else {})
        await _refused(merchant, "/payment-modes/fees", base, field, values)
    assert refused_fields(await merchant.post("/payment-modes/fees", {"operator": "mtn"})) == {"amount"}
    assert refused_fields(await merchant.post("/payment-modes/fees", {"amount": 1})) <= {"operator", "payment_mode_id"}


async def test_a_quote_for_every_mode_by_code_and_by_number(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for mode in (await merchant.get("/payment-modes")).data:
        by_code = await merchant.post(
            "/payment-modes/fees", {"amount": 99_999_999, "operator": mode["operator"].swapcase()}
        )
        by_number = await merchant.post("/payment-modes/fees", {"amount": 99_999_999, "payment_mode_id": mode["id"]})
        quote = check_resource("fee-quote", by_code.data)
        assert by_number.data == quote
        for field in ("operator", "fee_percent", "fee_fixed"):
            assert quote[field] == mode[field]
        assert quote["payment_mode_id"] == mode["id"]
    assert (await merchant.get("/payments")).data == []


# --- webhook endpoint -------------------------------------------------------------------------------------------------


async def test_the_fields_of_a_webhook_endpoint(shared_service: ServiceFixture) -> None:
    rows = _rows("PUT /webhooks/endpoint")
    merchant = await shared_service.merchant()
    start, longest = "https://shop.example/", int(rows["url"]["Max length"])
    at_most = start + "a" * (longest - len(start))
    wrong: dict[str, tuple[object, ...]] = {
        "url": (5, True, [], "", "shop", "http://shop.example", "ftp://shop.example", at_most + "a", "https://a b"),
        "rotate_secret": ("true", 1, [], ""),
        "overlap_hours": (-1, 25, "2", 1.5, [], True),
    }
    assert set(wrong) == set(rows)
    for field, values in wrong.items():
        await _refused(merchant, "/webhooks/endpoint", {"url": at_most}, field, values)
    assert refused_fields(await merchant.put("/webhooks/endpoint", {})) == {"url"}
    assert refused_fields(await merchant.put("/webhooks/endpoint", {"rotate_secret": True})) == {"url"}
    assert (await merchant.get("/webhooks/endpoint")).data["url"] is None
    assert (await merchant.put("/webhooks/endpoint", {"url": at_most, "rotate_secret": None})).data["url"] == at_most


async def test_configuring_rotating_and_disabling(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    url = "https://shop.example/hook"

    async def put(body: dict[str, Any]) -> Any:
        return check_resource("webhook-endpoint-written", (await merchant.put("/webhooks/endpoint", body)).data)

    first = await put({"url": url})
    assert first["secret"].startswith("whsec_")
    assert (await put({"url": url + "2"}))["secret"] == first["secret"]
    second = await put({"url": url, "rotate_secret": True})
    third = await put({"url": url, "rotate_secret": True})
    assert len({first["secret"], second["secret"], third["secret"]}) == 3
    assert await put({"url": None}) == {"url": None, "secret": None, "livemode": False}
    assert check_resource("webhook-endpoint", (await merchant.get("/webhooks/endpoint")).data)["secret"] is None
    assert (await put({"url": url}))["secret"] == third["secret"]
    live = (await merchant.live.get("/webhooks/endpoint")).data
    assert (live["url"], live["livemode"]) == (None, True)
