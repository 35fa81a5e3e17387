"""The test environment over HTTP: every suffix at the instants that matter, cards, refunds (docs/contract.md)."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.contract.shapes import check_error, order
from tests.contract.tables import Row, column, table
from tests.service_fixture import Account, House

ROWS = table("sandbox")
MICROSECOND = 1e-6


async def _create(shop: Account, row: Row, external_id: str) -> None:
    ending = "4321" if row["Suffix"] == "other" else row["Suffix"]
    answer = await shop.post("/payments", order(phone_number=f"+2299700{ending}", external_id=external_id))
    assert answer.status == int(row["HTTP"])
    if answer.status == 201:
        assert answer.data["status"] == row["At creation"] == "pending"
    else:
        check_error(answer, "payment_failed")


async def _stored(shop: Account, external_id: str) -> str:
    """The status as it is stored: a list asks no operator."""
    [payment] = (await shop.get(f"/payments?external_id={external_id}")).data
    status: str = payment["status"]
    return status


@pytest.mark.parametrize("row", ROWS, ids=column("sandbox", "Suffix"))
async def test_a_number_decides_as_its_row_says_for_whoever_asks(house: House, row: Row) -> None:
    shop = await house.merchant()
    await _create(shop, row, "a")
    assert await _stored(shop, "a") == row["At creation"]
    delay = row["Delay (seconds)"]
    if delay and int(delay):
        house.clock.advance(int(delay) - MICROSECOND)
        assert (await shop.get("/payments/a")).data["status"] == "pending"
        house.clock.advance(MICROSECOND)
    elif not delay:
        house.clock.advance(365 * 86_400)
    final = (await shop.get("/payments/a")).data["status"]
    assert final == row["Final status"]
    assert await _stored(shop, "a") == final


@pytest.mark.parametrize("row", ROWS, ids=column("sandbox", "Suffix"))
async def test_a_number_decides_by_itself_when_nobody_asks(house: House, row: Row) -> None:
    shop = await house.merchant()
    await _create(shop, row, "a")
    delay = float(row["Delay (seconds)"] or 0)
    if delay:
        await house.settle(delay - MICROSECOND)
        assert await _stored(shop, "a") == "pending"
        await house.settle(MICROSECOND)
    else:
        await house.settle()
    assert await _stored(shop, "a") == row["Final status"]


async def test_only_the_last_four_digits_count(sqlite_house: House) -> None:
    shop = await sqlite_house.merchant()
    for number, status in (("00000001", 402), ("+000000001", 402), ("00010002", 201), ("000100010", 201)):
        assert (await shop.post("/payments", order(phone_number=number))).status == status


@pytest.mark.parametrize(("choice", "status"), [("success", "succeeded"), ("refusal", "failed")])
async def test_a_test_cards_page_offers_two_choices_and_leads_back(house: House, choice: str, status: str) -> None:
    shop = await house.merchant()
    back = "https://shop.example/back?cart=7"
    payment = (await shop.post("/payments", order("VISA", return_url=back))).data
    page = payment["payment_url"].removeprefix(house.ctx.settings.public_url)
    shown = await house.call("GET", page)
    assert shown.status == 200
    action, name, values = _form(shown.raw.decode())
    assert len(values) == 2
    value = values[0 if choice == "success" else 1]
    chosen = await house.call(
        "POST",
        action or page,
        f"{name}={value}".encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded", "Origin": house.base_url},
    )
    assert chosen.status in (302, 303), chosen.raw
    target = urlsplit(chosen.headers["Location"])
    assert (target.netloc, target.path) == ("shop.example", "/back")
    assert parse_qs(target.query) == {"cart": ["7"], "reference": [payment["reference"]], "status": [status]}
    read = (await shop.get(f"/payments/{payment['reference']}")).data
    assert (read["status"], read["payment_url"]) == (status, None)


def _form(page: str) -> tuple[str, str, list[str]]:
    """The address of the page's form, and the name and values of its two buttons."""
    action = re.search(r'<form[^>]*method="post"[^>]*?(?:action="([^"]*)")?', page)
    assert action
    buttons = re.findall(r'<button[^>]*name="([^"]+)"[^>]*value="([^"]+)"', page)
    assert len({name for name, _ in buttons}) == 1, page
    return action[1] or "", buttons[0][0], [value for _, value in buttons]


async def test_a_test_refund_is_answered_already_succeeded(house: House) -> None:
    shop = await house.merchant()
    await shop.pay("0000", external_id="a")
    await shop.get("/payments/a")
    refund = (await shop.post("/payments/a/refund")).data
    assert refund["status"] == "succeeded"
    assert refund["processed_at"] is not None
    assert (await shop.get("/payments/a")).data["status"] == "refunded"


async def test_test_money_never_reaches_the_real_balance(house: House) -> None:
    shop = await house.merchant()
    await shop.pay("0000")
    await house.settle()
    assert (await shop.get("/balance")).data["balance"] == 5000
    assert (await shop.live.get("/balance")).data["balance"] == 0
