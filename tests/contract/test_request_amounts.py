"""Decisions D1 to D5 of docs/decisions.md, over HTTP: payment modes, types and amounts. A test is named after each."""

import pytest

from tests.contract.shapes import check_plain_numbers, order, refused_fields
from tests.service_fixture import ServiceFixture


async def test_d01_operator_and_payment_mode_id_must_name_the_same_mode(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    ids = {mode["operator"]: mode["id"] for mode in (await merchant.get("/payment-modes")).data}
    for operator in ("mtn", "MTN"):
        both = order() | {"operator": operator, "payment_mode_id": ids["mtn"]}
        assert (await merchant.post("/payments", both)).data["payment_mode"]["id"] == ids["mtn"]
        assert (await merchant.post("/payment-modes/fees", both)).status == 200
    for path in ("/payments", "/payment-modes/fees"):
        disagreeing = order(payment_mode_id=ids["moov"])
        assert refused_fields(await merchant.post(path, disagreeing)) == {"operator", "payment_mode_id"}
        assert refused_fields(await merchant.post(path, order(payment_mode_id=999))) == {"payment_mode_id"}


async def test_d02_types_are_strict_and_null_means_absent(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for amount, accepted in ((5000, True), (5000.0, True), ("5000", False), (True, False), ([5000], False)):
        assert ((await merchant.post("/payments", order(amount=amount))).status == 201) is accepted
    number = b'{"amount":5000,"payment_mode_id":%s,"phone_number":"22997001234"}'
    for text, accepted in ((b"1", True), (b"1.0", True), (b"1e0", True), (b"1.5", False), (b'"1"', False)):
        assert ((await merchant.post("/payments", number % text)).status == 201) is accepted, text
    optional = dict.fromkeys(["currency", "description", "external_id", "metadata", "customer", "callback_url", "otp"])
    payment = (await merchant.post("/payments", order() | optional)).data
    assert [payment[name] for name in ("currency", "description", "metadata")] == ["XOF", "Paiement API", None]


@pytest.mark.parametrize(
    ("currency", "amount", "accepted"),
    [
        ("XOF", b"5000.5", False),
        ("XAF", b"5000.01", False),
        ("XOF", b"5000.00", True),
        ("XOF", b"5000.0000000000000000000000000000000001", False),
        ("EUR", b"50.25", True),
        ("USD", b"50.250", True),
        ("EUR", b"50.255", False),
        ("EUR", b"50.2500000000000000000000000000000000000001", False),
        ("EUR", b"5025e-2", True),
    ],
)
async def test_d03_decimals_depend_on_the_currency(
    shared_service: ServiceFixture, currency: str, amount: bytes, accepted: bool
) -> None:
    merchant = await shared_service.merchant()
    body = b'{"amount":%s,"currency":"%s","operator":"mtn","phone_number":"22997001234"}'
    answer = await merchant.post("/payments", body % (amount, currency.encode()))
    assert (answer.status == 201) is accepted, answer.raw
    if not accepted:
        assert refused_fields(answer) == {"amount"}


@pytest.mark.parametrize(
    "amount", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1e99999999999999999999", b"9" * 5_000]
)
async def test_d03_amounts_that_are_not_finite_are_refused(shared_service: ServiceFixture, amount: bytes) -> None:
    merchant = await shared_service.merchant()
    for path in ("/payments", "/payment-modes/fees"):
        answer = await merchant.post(path, b'{"amount":%s,"operator":"mtn","phone_number":"22997001234"}' % amount)
        assert refused_fields(answer) == ({"amount"} if amount.strip(b"-")[:1].isdigit() else set())


async def test_d04_fees_are_half_up_to_the_hundredth(shared_service: ServiceFixture) -> None:
    """1.75 % of 2.00 is 0.035."""
    merchant = await shared_service.merchant()
    quote_ = (await merchant.post("/payment-modes/fees", {"amount": 2, "operator": "mtn"})).data
    assert (quote_["fee_amount"], quote_["total_amount"]) == (0.04, 2.04)
    payment = await merchant.pay(amount=10)
    assert (payment["fee_amount"], payment["total_amount"]) == (0.18, 10.18)


async def test_d05_whole_numbers_have_no_fraction(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    raw = (await merchant.post("/payments", order())).raw
    assert b'"amount":5000,"fee_amount":87.5,"total_amount":5087.5,' in raw
    assert b'"total_amount":10175,' in (await merchant.post("/payments", order(amount=10_000))).raw
    assert b'"amount":0.05' not in raw
    await merchant.pay("0000")
    await service.run_worker()
    assert b'"balance":5000,"balance_minor":500000,' in (await merchant.get("/balance")).raw
    for path in ("/payments", "/payment-modes", "/balance", "/refunds"):
        check_plain_numbers((await merchant.get(path)).raw)
