"""All operators of docs/contract.md and the cards: created with what their row requires, refused without it."""

import re
from bisect import bisect_left, bisect_right
from decimal import Decimal
from typing import Any

import pytest

from guichet.domain.catalogue import ModeOverride
from guichet.domain.money import Hundredths
from guichet.merchants.catalogue import set_override
from tests.contract.shapes import check_error, check_resource, check_success, endpoint, order, refused_fields
from tests.contract.tables import Row, column, table
from tests.fakes.scripted_provider import ScriptedProvider
from tests.service_fixture import ServiceFixture

ROWS = table("operators")
CODES = column("operators", "Code")
CREATED = endpoint("POST", "/payments")


def _required(row: Row) -> set[str]:
    if row["Type"] == "card":
        return {"customer.firstname", "customer.lastname", "customer.email"}
    optional = {"otp": row["OTP"] == "yes", "return_url": row["Return URL"] == "yes"}
    return {"phone_number"} | {field for field, needed in optional.items() if needed}


@pytest.mark.parametrize("row", ROWS, ids=CODES)
async def test_an_operator_with_and_without_what_it_requires(shared_service: ServiceFixture, row: Row) -> None:
    merchant = await shared_service.merchant()
    code, card = row["Code"], row["Type"] == "card"
    modes = {mode["operator"]: mode for mode in (await merchant.get("/payment-modes")).data}

    payment = check_success(await merchant.post("/payments", order(code)), CREATED)
    assert payment["payment_mode"] == {name: modes[code][name] for name in payment["payment_mode"]}
    assert payment["status"] == "pending"
    page = rf"{re.escape(shared_service.ctx.settings.public_url)}/checkout/[A-Za-z0-9]{{32}}"
    assert bool(re.fullmatch(page, payment["payment_url"] or "")) is card
    by_number = {k: v for k, v in order(code).items() if k != "operator"} | {"payment_mode_id": modes[code]["id"]}
    assert (await merchant.post("/payments", by_number)).data["payment_mode"]["operator"] == code
    for spelling in (code.upper(), code.lower()):
        assert (await merchant.post("/payments", order(spelling))).data["payment_mode"]["operator"] == code

    bare: dict[str, Any] = {"amount": 5000, "operator": code}
    assert refused_fields(await merchant.post("/payments", bare)) == _required(row)
    for empty in (None, ""):
        nothing = bare | {"phone_number": None, "otp": empty, "return_url": None, "customer": None}
        assert refused_fields(await merchant.post("/payments", nothing)) == _required(row)
    assert (await merchant.get("/payments")).body["meta"]["total"] == 4


@pytest.mark.parametrize("row", ROWS, ids=CODES)
async def test_the_debit_bounds_are_those_of_mobile_money_alone(shared_service: ServiceFixture, row: Row) -> None:
    """amount + fee, computed here from the fees that the catalogue shows."""
    merchant = await shared_service.merchant()
    code, card = row["Code"], row["Type"] == "card"
    [mode] = [mode for mode in (await merchant.get("/payment-modes")).data if mode["operator"] == code]
    limits = {each["Limit"]: int(each["Value"]) for each in table("limits")}

    def total(hundredths: int) -> int:
        fee = hundredths * Decimal(str(mode["fee_percent"])) / 100 + 100 * Decimal(str(mode["fee_fixed"]))
        return hundredths + int(fee + Decimal("0.5"))

    lowest = bisect_left(range(2000), limits["debit min"] * 100, key=total)
    highest = bisect_right(range(100_000_001), limits["debit max"] * 100, key=total) - 1
    for hundredths, within in ((lowest, True), (lowest - 1, False), (highest, True), (highest + 1, False)):
        body = order(code, amount=hundredths / 100, currency="EUR")
        answer = await merchant.post("/payments", body)
        if within or card:
            payment = check_success(answer, CREATED)
            assert round(payment["total_amount"] * 100) == total(hundredths)
            assert round(payment["fee_amount"] * 100) == total(hundredths) - hundredths
        else:
            stated = f"{Decimal(total(hundredths)) / 100:f}".rstrip("0").rstrip(".")
            assert f"{stated} EUR" in check_error(answer, "invalid_request")["message"]


async def test_cards_take_any_amount_within_the_fields_own_bounds(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for code in ("visa", "MASTERCARD"):
        for amount in (1, 99_999_999):
            payment = (await merchant.post("/payments", order(code, amount=amount))).data
            assert check_resource("payment", payment)["amount"] == amount


async def test_a_card_without_one_part_of_the_identity(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for part in ("firstname", "lastname", "email"):
        body = order("VISA")
        del body["customer"][part]
        assert refused_fields(await merchant.post("/payments", body)) == {f"customer.{part}"}


@pytest.mark.both_databases
async def test_unknown_and_closed_modes(service: ServiceFixture) -> None:
    merchant, other = await service.merchant(), await service.merchant()
    quote = {"amount": 5000, "operator": "mtn"}
    assert refused_fields(await merchant.post("/payments", order() | {"operator": "mtn_bj"})) == {"operator"}
    by_number = {"amount": 5000, "payment_mode_id": 999, "phone_number": "22997001234"}
    assert refused_fields(await merchant.post("/payments", by_number)) == {"payment_mode_id"}

    closed = ModeOverride(merchant.id, "mtn", active=False, fee_percent=None, fee_fixed=None)
    await set_override(service.ctx.db, closed)
    service.clock.advance(1)
    assert refused_fields(await merchant.post("/payments", order())) == {"operator"}
    assert refused_fields(await merchant.post("/payment-modes/fees", quote)) == {"operator"}
    assert "mtn" not in [mode["operator"] for mode in (await merchant.get("/payment-modes")).data]
    assert (await other.post("/payments", order())).status == 201
    assert "mtn" in [mode["operator"] for mode in (await other.get("/payment-modes")).data]

    await set_override(service.ctx.db, ModeOverride(None, "VISA", active=False, fee_percent=None, fee_fixed=None))
    service.clock.advance(1)
    assert refused_fields(await other.post("/payments", order("VISA"))) == {"operator"}


async def test_a_merchants_own_fees_are_the_ones_applied(service: ServiceFixture) -> None:
    merchant, other = await service.merchant(), await service.merchant()
    await set_override(
        service.ctx.db, ModeOverride(merchant.id, "mtn", active=None, fee_percent=5_500, fee_fixed=Hundredths(25_00))
    )
    service.clock.advance(1)
    [mode] = [mode for mode in (await merchant.get("/payment-modes")).data if mode["operator"] == "mtn"]
    assert (mode["fee_percent"], mode["fee_fixed"]) == (0.55, 25)
    payment = await merchant.pay()
    assert (payment["fee_amount"], payment["total_amount"]) == (52.5, 5052.5)
    assert (await other.pay())["fee_amount"] == 87.5


@pytest.mark.parametrize("code", CODES)
async def test_every_operator_can_be_live(live_service: ServiceFixture, operator: ScriptedProvider, code: str) -> None:
    """The debit is exactly the total, rounded to what the currency has (D27)."""
    merchant = (await live_service.merchant()).live
    payment = check_success(await merchant.post("/payments", order(code)), CREATED)
    [charge] = operator.charges
    assert (charge.payment.operator, charge.payment.reference, charge.payment.currency) == (
        code,
        payment["reference"],
        "XOF",
    )
    assert payment["payment_url"] is None, "this operator named no page"
    assert charge.amount == int(Decimal(str(payment["total_amount"])) + Decimal("0.5")) * 100
    assert payment["status"] == "pending"
