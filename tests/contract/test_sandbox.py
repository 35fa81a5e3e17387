"""The test environment over HTTP: every suffix at the instants that matter, cards, refunds (docs/contract.md)."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.contract.shapes import check_error, order
from tests.contract.tables import Row, column, table
from tests.service_fixture import MerchantClient, ServiceFixture

ROWS = table("sandbox")
MICROSECOND = 1e-6


async def _create(merchant: MerchantClient, row: Row, external_id: str) -> None:
    ending = "4321" if row["Suffix"] == "other" else row["Suffix"]
    answer = await merchant.post("/payments", order(phone_number=f"+2299700{ending}", external_id=external_id))
    assert answer.status == int(row["HTTP"])
    if answer.status == 201:
        assert answer.data["status"] == row["At creation"] == "pending"
    else:
        check_error(answer, "payment_failed")


async def _stored(merchant: MerchantClient, external_id: str) -> str:
    """The status as it is stored: a list polls no provider."""
    [payment] = (await merchant.get(f"/payments?external_id={external_id}")).data
    status: str = payment["status"]
    return status


@pytest.mark.parametrize("row", ROWS, ids=column("sandbox", "Suffix"))
async def test_a_phone_number_decides_as_documented_when_the_payment_is_read(service: ServiceFixture, row: Row) -> None:
    merchant = await service.merchant()
    await _create(merchant, row, "a")
    assert await _stored(merchant, "a") == row["At creation"]
    delay = row["Delay (seconds)"]
    if delay and int(delay):
        service.clock.advance(int(delay) - MICROSECOND)
        assert (await merchant.get("/payments/a")).data["status"] == "pending"
        service.clock.advance(MICROSECOND)
    elif not delay:
        service.clock.advance(365 * 86_400)
    final = (await merchant.get("/payments/a")).data["status"]
    assert final == row["Final status"]
    assert await _stored(merchant, "a") == final


@pytest.mark.parametrize("row", ROWS, ids=column("sandbox", "Suffix"))
async def test_a_phone_number_decides_as_documented_without_a_read(service: ServiceFixture, row: Row) -> None:
    merchant = await service.merchant()
    await _create(merchant, row, "a")
    delay = float(row["Delay (seconds)"] or 0)
    if delay:
        await service.run_worker(delay - MICROSECOND)
        assert await _stored(merchant, "a") == "pending"
        await service.run_worker(MICROSECOND)
    else:
        await service.run_worker()
    assert await _stored(merchant, "a") == row["Final status"]


async def test_only_the_last_four_digits_count(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for number, status in (("00000001", 402), ("+000000001", 402), ("00010002", 201), ("000100010", 201)):
        assert (await merchant.post("/payments", order(phone_number=number))).status == status


@pytest.mark.parametrize(("choice", "status"), [("success", "succeeded"), ("refusal", "failed")])
async def test_a_test_cards_page_offers_two_choices_and_leads_back(
    shared_service: ServiceFixture, choice: str, status: str
) -> None:
    merchant = await shared_service.merchant()
    back = "https://shop.example/back?cart=7"
    payment = (await merchant.post("/payments", order("VISA", return_url=back))).data
    page = payment["payment_url"].removeprefix(shared_service.ctx.settings.public_url)
    shown = await shared_service.call("GET", page)
    assert shown.status == 200
    action, name, values = _form(shown.raw.decode())
    assert len(values) == 2
    value = values[0 if choice == "success" else 1]
    chosen = await shared_service.call(
        "POST",
        action or page,
        f"{name}={value}".encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded", "Origin": shared_service.base_url},
    )
    assert chosen.status in (302, 303), chosen.raw
    target = urlsplit(chosen.headers["Location"])
    assert (target.netloc, target.path) == ("shop.example", "/back")
    assert parse_qs(target.query) == {"cart": ["7"], "reference": [payment["reference"]], "status": [status]}
    read = (await merchant.get(f"/payments/{payment['reference']}")).data
    assert (read["status"], read["payment_url"]) == (status, None)


def _form(page: str) -> tuple[str, str, list[str]]:
    """The address of the page's form, and the name and values of its two buttons."""
    action = re.search(r'<form[^>]*method="post"[^>]*?(?:action="([^"]*)")?', page)
    assert action
    buttons = re.findall(r'<button[^>]*name="([^"]+)"[^>]*value="([^"]+)"', page)
    assert len({name for name, _ in buttons}) == 1, page
    return action[1] or "", buttons[0][0], [value for _, value in buttons]


async def test_a_test_refund_is_answered_already_succeeded(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay("0000", external_id="a")
    await merchant.get("/payments/a")
    refund = (await merchant.post("/payments/a/refund")).data
    assert refund["status"] == "succeeded"
    assert refund["processed_at"] is not None
    assert (await merchant.get("/payments/a")).data["status"] == "refunded"


async def test_test_money_never_reaches_the_real_balance(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay("0000")
    await service.run_worker()
    assert (await merchant.get("/balance")).data["balance"] == 5000
    assert (await merchant.live.get("/balance")).data["balance"] == 0
