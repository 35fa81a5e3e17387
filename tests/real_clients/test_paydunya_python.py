"""PyPI paydunya, PayDunya's own client, against the simulated PayDunya. It knows invoices only, no softpay and no
payouts."""

import asyncio
from collections.abc import Iterator
from typing import Any

import paydunya
import pytest
from paydunya import InvoiceItem, Store

from tests.guichet_simulator.conftest import Simulator
from tests.real_clients.conftest import customer, until

LIVE = {"PAYDUNYA-MASTER-KEY": "master", "PAYDUNYA-PRIVATE-KEY": "live_private_key", "PAYDUNYA-TOKEN": "token"}
TEST = LIVE | {"PAYDUNYA-PRIVATE-KEY": "test_private_key"}
ITEMS = [InvoiceItem("Billet", 2, "500", "1000", "Deux billets")]


@pytest.fixture(autouse=True)
def addresses(simulator: Simulator) -> Iterator[None]:
    """The client has its addresses and keys in its module."""
    before = {name: getattr(paydunya, name) for name in ("LIVE_ENDPOINT", "SANDBOX_ENDPOINT", "api_keys", "debug")}
    paydunya.LIVE_ENDPOINT = f"{simulator.url}/paydunya/api/v1/"
    paydunya.SANDBOX_ENDPOINT = f"{simulator.url}/paydunya/sandbox-api/v1/"
    paydunya.api_keys, paydunya.debug = LIVE, False
    yield
    for name, value in before.items():
        setattr(paydunya, name, value)


def invoice(*channels: str, amount: int = 0) -> Any:
    made = paydunya.Invoice(Store(name="Boutique"))
    made.description, made.total_amount = "Commande", amount
    made.return_url, made.cancel_url = "https://m.example/ok", "https://m.example/ko"
    made.add_channels(channels)
    return made


async def create(made: Any) -> tuple[Any, Any]:
    """Whether it was made, and the answer."""
    answer: tuple[Any, Any] = await asyncio.to_thread(made.create, ITEMS, [], [("reference", "order-1")])
    return answer


def confirm(token: str) -> Any:
    """Of a new object: one that made an invoice would send it once more in place of the question."""
    return invoice().confirm(token)


async def test_an_invoice_is_made_paid_on_its_page_and_confirmed(simulator: Simulator) -> None:
    taken, answer = await create(invoice("card"))
    assert (taken, answer["response_code"]) == (True, "00")
    assert answer["response_text"].endswith(f"/checkout/invoice/{answer['token']}")
    assert (await asyncio.to_thread(confirm, answer["token"]))[1]["status"] == "pending"
    await customer(simulator, "order-1", "approve")
    found, state = await asyncio.to_thread(confirm, answer["token"])
    assert (found, state["status"], state["invoice"]["total_amount"]) == (True, "completed", 1000)
    assert state["custom_data"] == {"reference": "order-1"}
    assert state["receipt_url"].endswith(".pdf")


async def test_an_invoice_that_is_refused_ends_cancelled(simulator: Simulator) -> None:
    _, made = await create(invoice("card"))
    await customer(simulator, "order-1", "refuse")
    assert (await asyncio.to_thread(confirm, made["token"]))[1]["status"] == "pending"
    done = await until(simulator, confirm, made["token"], wanted=lambda answer: answer[1]["status"] != "pending")
    assert done[1]["status"] == "cancelled"


async def test_refusals_come_as_false_with_their_text(simulator: Simulator) -> None:
    assert await create(invoice(amount=199)) == (False, "Minimum checkout amount is 200")
    assert (await asyncio.to_thread(confirm, "unheard-of-token"))[0] is False
    paydunya.api_keys = TEST
    assert await create(invoice()) == (False, "LIVE Private Key and Token combination is invalid")
    paydunya.api_keys = LIVE | {"PAYDUNYA-MASTER-KEY": "invalid"}
    assert await create(invoice()) == (False, "Invalid Masterkey Specified")


async def test_the_test_mode_is_one_of_its_own(simulator: Simulator) -> None:
    paydunya.api_keys, paydunya.debug = TEST, True
    _, made = await create(invoice())
    assert made["token"].startswith("test_")
    assert (await asyncio.to_thread(confirm, made["token"]))[1]["mode"] == "test"
    paydunya.api_keys, paydunya.debug = LIVE, False
    assert (await asyncio.to_thread(confirm, made["token"]))[0] is False
