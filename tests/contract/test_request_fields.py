"""Decisions D9 to D11 and D14 to D16 of docs/decisions.md, over HTTP. A test is named after each."""

import pytest

from tests.contract.shapes import check_error, order, refused_fields
from tests.contract.tables import column
from tests.service_fixture import ServiceFixture


async def test_d09_phone_numbers_are_kept_as_digits(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for sent in ("+22997001234", "22997001234", "+12345678", "123456789012345"):
        payment = (await merchant.post("/payments", order(phone_number=sent))).data
        assert payment["customer"]["phone_number"] == sent.lstrip("+")
    wrong = (
        "++22997001234",
        "229 97001234",
        "229-97001234",
        "(229)97001234",
        "1234567",
        "1" * 16,
        "٢٢٩٩٧٠٠١٢٣٤",
        "1" * 8 + "\n",
    )
    for sent in wrong:
        assert refused_fields(await merchant.post("/payments", order(phone_number=sent))) == {"phone_number"}


@pytest.mark.parametrize(
    "external_id",
    [
        "a/b",
        "a%2Fb",
        "..",
        ".",
        "é 😀",
        "a?b#c",
        "a+b c",
        "refund",
        "\t\n",
        "' OR 1=1 --",
        "%",
        "00000000-0000-4000-8000-000000000000",
        "é" * 100,
    ],
)
async def test_d10_an_external_id_may_hold_any_characters(shared_service: ServiceFixture, external_id: str) -> None:
    merchant = await shared_service.merchant()
    payment = await merchant.pay("0000", external_id=external_id)
    assert payment["external_id"] == external_id
    path = f"/payments/{''.join(f'%{byte:02X}' for byte in external_id.encode())}"
    read = await merchant.get(path)
    assert read.data["reference"] == payment["reference"]
    assert (await merchant.post(f"{path}/refund")).data["payment_reference"] == payment["reference"]


async def test_d10_an_empty_one_is_refused_and_a_reference_wins(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    assert refused_fields(await merchant.post("/payments", order(external_id=""))) == {"external_id"}
    first = await merchant.pay()
    second = await merchant.pay(external_id=first["reference"])
    assert (await merchant.get(f"/payments/{first['reference']}")).data["reference"] == first["reference"]
    assert (await merchant.get(f"/payments/{second['reference']}")).data["external_id"] == first["reference"]
    for garbage in ("%FF", "%C3%28", "%00", "a%00b", "%ED%A0%80"):
        check_error(await merchant.get(f"/payments/{garbage}"), "not_found")


async def test_d11_a_replay_is_validated_then_answers_what_exists(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    card = (await merchant.post("/payments", order("VISA", external_id="card"))).data
    again = await merchant.post("/payments", order("mtn", external_id="card", amount=7000))
    assert again.status == 201
    assert again.data == card | {"payment_url": None}
    for faulty in (order(external_id="card", amount=0), order("coris", external_id="card", otp=...)):
        check_error(await merchant.post("/payments", faulty), "invalid_request")
    refused = order(phone_number="22997000001", external_id="failed")
    check_error(await merchant.post("/payments", refused), "payment_failed")
    replayed = await merchant.post("/payments", refused)
    assert (replayed.status, replayed.data["status"]) == (201, "failed")
    assert (await merchant.get("/payments")).body["meta"]["total"] == 2


async def test_d14_urls_are_accepted_or_refused(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    good = {
        "return_url": ("http://shop.example/x", "https://shop.example:8443?a=b", "https://é.example/ü"),
        "callback_url": ("https://shop.example/h", "http://localhost:9/h", "http://127.0.0.1:9/h"),
    }
    bad = (
        "javascript:alert(1)",
        "https://shop example",
        "shop.example",
        "https://shop.example:99999",
        "https://[::1",
        "\x01https://shop.example",
        " https://shop.example",
        "https://shop.example\\@evil.example",
        "https://shop.example/\n",
    )
    for field, values in good.items():
        for value in values:
            assert (await merchant.post("/payments", order(**{field: value}))).status == 201, value
        for value in bad:
            assert refused_fields(await merchant.post("/payments", order(**{field: value}))) == {field}, value
    for value in ("http://shop.example/h", "http://10.0.0.1/h"):
        assert refused_fields(await merchant.post("/payments", order(callback_url=value))) == {"callback_url"}


async def test_d15_checks_run_in_their_documented_order(shared_service: ServiceFixture) -> None:
    """Each request has every fault from its stage on: the stage that answers is the first."""
    merchant, inactive = await shared_service.merchant(), (await shared_service.merchant(status="pending")).live
    nothing = {"Authorization": "Bearer nothing"}
    check_error(await shared_service.call("DELETE", "/v1/nothing", headers=nothing), "not_found")
    check_error(await shared_service.call("DELETE", "/v1/payments", b"{", headers=nothing), "method_not_allowed")
    check_error(await shared_service.call("POST", "/v1/payments", b"{", headers=nothing), "unauthorized")
    check_error(await inactive.post("/payments", b"{"), "merchant_inactive")
    assert refused_fields(await merchant.post("/payments", b'{"operator":"none","amount":')) == set()
    await merchant.pay("0000", external_id="a")
    both = order(external_id="a", amount=999_999) | {"operator": "none"}
    assert refused_fields(await merchant.post("/payments", both)) == {"operator"}
    assert refused_fields(await merchant.post("/payments", order(external_id="a", amount=999_999))) == {"amount"}
    assert (await merchant.post("/payments", order(external_id="a", phone_number="22997000001"))).status == 201
    assert (await merchant.call("DELETE", "/payments/a")).headers["Allow"] == "GET"


async def test_d16_mobile_money_accepts_every_currency(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for currency in column("currencies", "Currency"):
        payment = (await merchant.post("/payments", order(currency=currency, amount=10))).data
        assert (payment["currency"], payment["total_amount"]) == (currency, 10.18)
        check_error(await merchant.post("/payments", order(currency=currency, amount=9)), "invalid_request")
