"""Every scenario with every provider: what is stored, what is answered, and what the books hold in the end."""

import hashlib
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from guichet_simulator.scenarios import SCENARIOS, ResponseKind, Scenario
from tests.guichet_simulator import test_sim_fedapay as fedapay
from tests.guichet_simulator import test_sim_feexpay as feexpay
from tests.guichet_simulator import test_sim_mtn, test_sim_orange, test_sim_sonatel
from tests.guichet_simulator import test_sim_pawapay as pawapay
from tests.guichet_simulator import test_sim_paydunya as paydunya
from tests.guichet_simulator import test_sim_stripe as stripe
from tests.guichet_simulator import test_sim_wave as wave
from tests.guichet_simulator.conftest import Simulator


@dataclass
class Call:
    path: str
    headers: dict[str, str]
    json: Any = None
    data: Any = None
    params: Any = None


async def feexpay_call(simulator: Simulator) -> Call:
    return Call(f"{feexpay.PAYIN}/mtn", feexpay.KEY, json=feexpay.order("2290161000000"))


async def mtn_call(simulator: Simulator) -> Call:
    headers = await test_sim_mtn.access(simulator) | {"X-Reference-Id": str(uuid.uuid4())}
    return Call(test_sim_mtn.COLLECT, headers, json=test_sim_mtn.order())


async def wave_call(simulator: Simulator) -> Call:
    return Call(wave.SESSIONS, wave.KEY, json=wave.order())


async def pawapay_call(simulator: Simulator) -> Call:
    body = {"depositId": str(uuid.uuid4()), "amount": "500", "currency": "XOF"}
    body_of = body | {"payer": pawapay.account("22961000000", "MTN_MOMO_BEN")}
    return Call("/pawapay/v2/deposits", pawapay.KEY, json=body_of)


async def orange_call(simulator: Simulator) -> Call:
    order = test_sim_orange.order(order_id=uuid.uuid4().hex[:30], notif_url="http://127.0.0.1:9/")
    return Call(f"{test_sim_orange.BASE}/webpayment", await test_sim_orange.access(simulator), json=order)


async def sonatel_call(simulator: Simulator) -> Call:
    headers = await test_sim_sonatel.access(simulator)
    return Call(f"{test_sim_sonatel.WALLET}/payments/onestep", headers, json=test_sim_sonatel.order())


async def stripe_call(simulator: Simulator) -> Call:
    return Call(stripe.SESSIONS, stripe.KEY, data=stripe.order())


async def fedapay_call(simulator: Simulator) -> Call:
    """The request for the PIN: nothing before it moves money."""
    token = (await fedapay.created(simulator))["token"]
    return Call("/fedapay/v1/moov", fedapay.KEY, json={"token": token, "phone_number": fedapay.PHONE})


async def coris_call(simulator: Simulator) -> Call:
    query = {"codePays": "229", "telephone": "0161000000", "codePv": "1", "montant": "500", "codeOTP": "123456"}
    hashed = hashlib.sha256(("".join(query.values()) + "coris-simulator").encode()).hexdigest()
    path = "/coris/external/v1/api/operations/paiement-bien"
    return Call(path, {"clientId": "c", "hashParam": hashed}, params=query)


async def paydunya_call(simulator: Simulator) -> Call:
    token = await paydunya.create(simulator)
    return Call(f"{paydunya.SOFTPAY}/moov-benin", paydunya.KEYS, json=paydunya.fields("moov-benin", token))


CALLS: dict[str, Callable[[Simulator], Awaitable[Call]]] = {
    "feexpay": feexpay_call,
    "mtn": mtn_call,
    "wave": wave_call,
    "pawapay": pawapay_call,
    "orange": orange_call,
    "sonatel": sonatel_call,
    "stripe": stripe_call,
    "coris": coris_call,
    "fedapay": fedapay_call,
    "paydunya": paydunya_call,
}

#: The statuses that a client may get, by kind of response; providers differ in how they state a refusal.
STATUSES: dict[ResponseKind, set[int]] = {
    ResponseKind.SERVER_ERROR: {500},
    ResponseKind.UNREADABLE: {200},
    ResponseKind.UNAUTHORIZED: {401, 403},
    ResponseKind.RATE_LIMITED: {429},
    ResponseKind.UNAVAILABLE: {503},
    ResponseKind.REFUSED: {200, 400, 403, 500},
    ResponseKind.BUSINESS_500: {200, 400, 403, 500},
    ResponseKind.AMBIGUOUS: {200, 400, 403, 500},
    ResponseKind.NOT_CONFIGURED: {200, 400, 403, 404, 500},
    ResponseKind.DUPLICATE: {200, 400, 409},
}
TAKEN = {200, 201, 202}


async def outcome(simulator: Simulator, call: Call) -> tuple[int | None, str | None]:
    """The status and the Retry-After of the answer; no status when the connection broke."""
    options = {"json": call.json, "data": call.data, "params": call.params, "headers": call.headers}
    try:
        async with simulator.http.post(f"{simulator.url}{call.path}", **options) as answer:
            await answer.read()
            return answer.status, answer.headers.get("retry-after")
    except aiohttp.ClientError:
        return None, None


def settled_debits(scenario: Scenario, provider_name: str) -> int:
    """How many debits the books hold once everything due has happened. Coris leaves nothing pending."""
    succeeds = scenario.final_state == "succeeded" or (scenario.name == "never_final" and provider_name == "coris")
    return int(scenario.stored and succeeds)


@pytest.mark.parametrize("provider_name", CALLS)
async def test_every_scenario_is_stored_answered_and_booked(simulator: Simulator, provider_name: str) -> None:
    for scenario in SCENARIOS:
        await simulator.json("POST", "/control/reset", 204)
        call = await CALLS[provider_name](simulator)
        await simulator.force(provider_name, scenario.name, after=0, delay=0)
        status, retry_after = await outcome(simulator, call)
        broken = scenario.response in (ResponseKind.DROPPED, ResponseKind.TRUNCATED)
        assert status in ({None} if broken else STATUSES.get(scenario.response, TAKEN)), (
            provider_name,
            scenario.name,
            status,
        )
        assert (retry_after is not None) == (scenario.response is ResponseKind.RATE_LIMITED), (
            provider_name,
            scenario.name,
        )
        held = (await simulator.truth(family=provider_name))["transactions"]
        assert len(held) == int(scenario.stored), (provider_name, scenario.name)
        assert await simulator.debits(family=provider_name) == settled_debits(scenario, provider_name), (
            provider_name,
            scenario.name,
        )
