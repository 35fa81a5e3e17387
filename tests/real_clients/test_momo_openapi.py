"""PyPI momo-openapi, whose authors tried it against MTN's gateways, against the simulated MTN."""

import asyncio
import uuid
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import requests
from momo_openapi import Collection, Disbursement, MomoConfig
from momo_openapi.config import SANDBOX_URL
from momo_openapi.errors import AuthenticationError, MomoAPIError
from requests.adapters import HTTPAdapter

from tests.guichet_simulator.conftest import CallbackReceiver, Simulator
from tests.real_clients.conftest import customer, until

PLATFORMS = ("mtn", "mtn_new_platform")
PAYER = "2290161000000"


def config(simulator: Simulator, platform: str, **changes: str) -> MomoConfig:
    """The new platform's credentials: an id that ends in `=`, a token with punctuation."""
    known = {
        "subscription_key": "subscription",
        "user_id": "d2FsbGV0LXVzZXI=",
        "credential_token": "p/un+ct:ua=tion&",
        "target_environment": "mtnbenin",
        "base_url": f"{simulator.url}/{platform}",
        "currency": "XOF",
    }
    return MomoConfig(**(known | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_a_payment_is_made_approved_and_read(
    simulator: Simulator, callback_receiver: CallbackReceiver, platform: str
) -> None:
    collection = Collection(config(simulator, platform))
    ref = await asyncio.to_thread(
        collection.request_to_pay, 500, PAYER, "order-1", callback_url=f"{callback_receiver.url}/x"
    )
    assert (await asyncio.to_thread(collection.get_transaction_status, ref))["status"] == "PENDING"
    await customer(simulator, "order-1", "approve")
    done = await asyncio.to_thread(collection.get_transaction_status, ref)
    assert (done["status"], done["amount"], done["externalId"]) == ("SUCCESSFUL", "500", "order-1")
    assert done["financialTransactionId"]
    await callback_receiver.wait_for(1)
    balance = await asyncio.to_thread(collection.get_balance)
    assert balance == {"availableBalance": "500", "currency": "XOF"}


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_a_payment_that_the_customer_refuses_fails_with_a_reason(simulator: Simulator, platform: str) -> None:
    collection = Collection(config(simulator, platform))
    ref = await asyncio.to_thread(collection.request_to_pay, 500, PAYER, "order-1")
    await customer(simulator, "order-1", "refuse")
    done = await asyncio.to_thread(collection.get_transaction_status, ref)
    assert (done["status"], done["reason"]) == ("FAILED", "APPROVAL_REJECTED")


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_money_is_sent_and_the_float_read(simulator: Simulator, platform: str) -> None:
    disbursement = Disbursement(config(simulator, platform))
    ref = await asyncio.to_thread(disbursement.transfer, 300, PAYER, "payout-1")
    done = await until(
        simulator, disbursement.get_transaction_status, ref, wanted=lambda each: each["status"] != "PENDING"
    )
    assert (done["status"], done["payee"]["partyId"]) == ("SUCCESSFUL", PAYER)
    assert await simulator.credits(reference="payout-1") == 1
    assert (await asyncio.to_thread(disbursement.get_balance))["currency"] == "XOF"


async def test_a_lost_answer_is_found_by_its_reference_and_not_paid_twice(simulator: Simulator) -> None:
    collection, ref = Collection(config(simulator, "mtn_new_platform")), str(uuid.uuid4())
    await asyncio.to_thread(collection.get_access_token)
    await simulator.force("mtn_new_platform", "lost_answer", after=0)

    def pay() -> str:
        return collection.request_to_pay(500, PAYER, "order-1", reference_id=ref)

    with pytest.raises(requests.ConnectionError):
        await asyncio.to_thread(pay)
    with pytest.raises(MomoAPIError) as refusal:
        await asyncio.to_thread(pay)
    assert (refusal.value.status_code, refusal.value.code) == (409, "RESOURCE_ALREADY_EXIST")
    await until(simulator, collection.get_transaction_status, ref, wanted=lambda each: each["status"] == "SUCCESSFUL")
    assert await simulator.debits(reference="order-1") == 1


async def test_a_reference_is_known_on_its_platform_and_to_its_product_only(simulator: Simulator) -> None:
    old, new = (config(simulator, platform) for platform in PLATFORMS)
    ref = await asyncio.to_thread(Collection(old).request_to_pay, 500, PAYER, "order-1")
    for stranger in (
        Collection(new),
        Disbursement(old),
        Collection(config(simulator, "mtn", target_environment="mtncongo")),
    ):
        with pytest.raises(MomoAPIError) as refusal:
            await asyncio.to_thread(stranger.get_transaction_status, ref)
        assert (refusal.value.status_code, refusal.value.code) == (404, "RESOURCE_NOT_FOUND")


async def test_the_gateway_of_the_new_platform_is_as_strict_as_the_client_found_it(simulator: Simulator) -> None:
    await simulator.json(
        "POST",
        "/control/dashboard",
        json={"family": "mtn_new_platform", "credentials": {"subscription": ["collection"], "id=": ["collection"]}},
    )
    known = config(simulator, "mtn_new_platform", user_id="id=")
    await asyncio.to_thread(Collection(known).get_access_token)
    for product, settings in ((Disbursement, known), (Collection, config(simulator, "mtn_new_platform"))):
        with pytest.raises(AuthenticationError):
            await asyncio.to_thread(product(settings).get_access_token)
    nowhere = config(simulator, "mtn_new_platform", user_id="id=", target_environment="mtnnowhere")
    with pytest.raises(MomoAPIError) as refusal:
        await asyncio.to_thread(Collection(nowhere).get_access_token)
    assert (refusal.value.status_code, refusal.value.code) == (400, "Invalid or missing X-Target-Environment header")


class ToSimulator(HTTPAdapter):
    """Carries requests for MTN's sandbox, whose address the client does not let us choose, to the simulator."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = urlsplit(url)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        asked = urlsplit(str(request.url))
        request.url = urlunsplit((self._url.scheme, self._url.netloc, self._url.path + asked.path, asked.query, ""))
        return super().send(request, **options)


@pytest.mark.parametrize(("payer", "status"), [("46733123450", "FAILED"), ("46733123499", "PENDING")])
async def test_a_sandbox_user_is_provisioned_and_pays_in_euros(simulator: Simulator, payer: str, status: str) -> None:
    session = requests.Session()
    session.mount(SANDBOX_URL, ToSimulator(f"{simulator.url}/mtn"))
    collection = await asyncio.to_thread(Collection.for_sandbox, "subscription", session=session)
    ref = await asyncio.to_thread(collection.request_to_pay, 5, payer, "order-1")
    found = await until(simulator, collection.get_transaction_status, ref, wanted=lambda each: each["status"] == status)
    assert (found["amount"], found["currency"]) == ("5", "EUR")
    session.close()
