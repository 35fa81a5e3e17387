"""Coris Money over real HTTP: one request for each row of the tables in docs/providers."""

import hashlib
from typing import Any

import aiohttp
import pytest

from tests.guichet_simulator.conftest import Simulator

API = "/coris/external/v1/api"
SECRET = "coris-simulator"
PHONE: dict[str, Any] = {"codePays": "229", "telephone": "0161000000"}


async def call(
    simulator: Simulator, method: str, path: str, status: int = 200, secret: str = SECRET, **query: Any
) -> Any:
    hashed = hashlib.sha256(("".join(query.values()) + secret).encode()).hexdigest()
    headers = {"clientId": "client", "hashParam": hashed, "Content-Type": "application/json"}
    return await simulator.json(method, f"{API}{path}", status, headers=headers, params=query)


async def code_for(simulator: Simulator, **query: Any) -> str:
    """The code the customer reads on the simulated phone."""
    assert "envoye" in (await call(simulator, "POST", "/send-code-otp", **query))["text"]
    async with simulator.http.get(f"{simulator.url}/phone") as answer:
        return (await answer.text()).partition("code est ")[2][:6]


async def pay(simulator: Simulator, code: str, status: int = 200, **more: Any) -> Any:
    query: dict[str, Any] = {**PHONE, "codePv": "0001", "montant": "1000", "codeOTP": code} | more
    return await call(simulator, "POST", "/operations/paiement-bien", status, **query)


async def test_a_code_pays_once(simulator: Simulator) -> None:
    code = await code_for(simulator, **PHONE)
    wrong = "999999" if code != "999999" else "999998"
    assert (await pay(simulator, wrong))["code"] == "-1"
    done = await pay(simulator, code)
    assert (done["code"], done["montant"]) == ("0", "1000")
    assert (await pay(simulator, code))["msg"] == "OTP Incorrect"
    assert await simulator.debits() == 1
    status = await call(simulator, "GET", "/operations/transaction-status", codeOperation=done["transactionId"])
    assert status == done
    assert (await call(simulator, "GET", "/operations/transaction-status", codeOperation="x"))["code"] == "-1"


async def test_a_wrong_hash_is_refused(simulator: Simulator) -> None:
    assert (await call(simulator, "GET", "/infos-client", **PHONE))["code"] == "0"
    answer = await call(simulator, "GET", "/infos-client", secret="other", **PHONE)
    assert (answer["code"], answer["message"]) == ("-1", "Hash incorrect")
    await simulator.json("GET", f"{API}/infos-client", 401, params=PHONE)


REFUSED = [{"montant": "0"}, {"montant": "10.5"}, {"codePays": "33"}, {"telephone": "abc"}, {"codePv": ""}]


@pytest.mark.parametrize("change", REFUSED)
async def test_invalid_parameters_are_refused(simulator: Simulator, change: dict[str, Any]) -> None:
    code = await code_for(simulator, **PHONE)
    assert (await pay(simulator, code, **change))["code"] == "-1"
    assert await simulator.debits() == 0


SCENARIOS = [
    ("declined", 200, "Solde insuffisant", 0),
    ("refused", 200, "Client inexistant", 0),
    ("not_configured", 200, "Service non autorise", 0),
    ("wrong_amount", 200, "Paiement effectue avec succes", 1),
    ("unauthorized", 401, "Client non autorise", 0),
    ("rate_limited", 429, "Trop de requetes", 0),
    ("unavailable", 503, "Service indisponible", 0),
    ("error_500", 500, "Erreur interne", 1),
]


@pytest.mark.parametrize(("scenario", "status", "message", "debits"), SCENARIOS)
async def test_each_scenario_gives_its_response(
    simulator: Simulator, scenario: str, status: int, message: str, debits: int
) -> None:
    await simulator.force("coris", scenario)
    answer = await pay(simulator, "123456", status)
    assert answer["message"] == message
    assert ("montant" in answer and answer["montant"]) == ("999" if scenario == "wrong_amount" else False)
    assert await simulator.debits() == debits


async def test_a_repeat_after_a_lost_response_is_refused(simulator: Simulator) -> None:
    code = await code_for(simulator, **PHONE)
    await simulator.force("coris", "lost_answer")
    with pytest.raises(aiohttp.ClientError):
        await pay(simulator, code)
    assert (await pay(simulator, code))["code"] == "-1"
    assert await simulator.debits() == 1


async def test_the_phone_number_chooses_the_scenario(simulator: Simulator) -> None:
    assert (await pay(simulator, "123456", telephone="0161009003"))["message"] == "Solde insuffisant"
    assert (await pay(simulator, "123456", telephone="0161009001"))["code"] == "0"
    assert await simulator.debits() == 1
