"""Guichet against what simulated providers check as the real ones do: signatures, wallets and their credentials."""

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from tests.invariants import check_books
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers

KEY = ec.generate_private_key(ec.SECP256R1())
PRIVATE = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
PUBLIC = (
    KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
)


def setup(name: str, **settings: str) -> Setup:
    case = PROVIDER_CASES[name]
    account = ProviderAccount(name, name, f"{{sim}}/{name}", {**case.settings, **settings})
    return Setup({name: account}, {case.operator: [name]})


async def pay(simulated: SimulatedProviders, name: str) -> Any:
    case = PROVIDER_CASES[name]
    body = {"amount": 5000, "operator": case.operator, "phone_number": f"{case.dial}771239001", **case.order}
    return await simulated.nudged(simulated.merchant.live.post("/payments", body))


async def pay_and_refund(simulated: SimulatedProviders, name: str) -> None:
    """A payment and its refund succeed."""
    live, reference = simulated.merchant.live, (await pay(simulated, name)).data["reference"]
    for _ in range(3):
        await simulated.turn(5)
    assert (await live.get(f"/payments/{reference}")).data["status"] == "succeeded"
    assert (await live.post(f"/payments/{reference}/refund")).status == 201
    for _ in range(3):
        await simulated.turn(5)
    assert (await live.get(f"/payments/{reference}")).data["status"] == "refunded"
    await check_books(simulated.service.ctx.db)


async def sign_only(simulated: SimulatedProviders) -> None:
    await simulated.control("POST", "/dashboard", json={"family": "pawapay", "request_keys": {"K1": PUBLIC}})


@pytest.mark.parametrize("encoding", ["der", "raw"])
async def test_pawapay_in_signed_only_mode_takes_our_signatures(sqlite_settings: Settings, encoding: str) -> None:
    ours = setup("pawapay", signing_key=PRIVATE, signing_key_id="K1", signature_encoding=encoding)
    async with open_simulated_providers(sqlite_settings, ours) as simulated:
        await sign_only(simulated)
        await pay_and_refund(simulated, "pawapay")


@pytest.mark.parametrize("settings", [{}, {"signing_key": PRIVATE, "signing_key_id": "not-registered"}])
async def test_pawapay_in_signed_only_mode_takes_nothing_else(
    sqlite_settings: Settings, settings: dict[str, str]
) -> None:
    """It is our configuration, not the payer: nothing is left pending."""
    async with open_simulated_providers(sqlite_settings, setup("pawapay", **settings)) as simulated:
        await sign_only(simulated)
        assert (await pay(simulated, "pawapay")).status == 500
        assert await simulated.held() == []


@pytest.mark.parametrize("verb", ["refund", "transfer"])
async def test_mtn_takes_the_credentials_of_each_wallet(sqlite_settings: Settings, verb: str) -> None:
    disbursement = {"disbursement_api_user": "paying", "disbursement_api_key": "key"}
    credentials = {
        "user": ["collection"],
        "collection-key": ["collection"],
        "paying": ["disbursement"],
        "disbursement-key": ["disbursement"],
    }
    async with open_simulated_providers(sqlite_settings, setup("mtn", refund_via=verb, **disbursement)) as simulated:
        await simulated.control("POST", "/dashboard", json={"family": "mtn", "credentials": credentials})
        await pay_and_refund(simulated, "mtn")


async def test_a_wave_key_collects_in_its_own_country_only(sqlite_settings: Settings) -> None:
    """The key of Côte d'Ivoire in an account for Sénégal: the payment fails at once, and nobody is debited."""
    wrong = {"api_key": "wave_ci_prod_simulator", "return_url": "https://shop.example/back"}
    right = {"api_key": "wave_sn_prod_simulator", "return_url": "https://shop.example/back"}
    async with open_simulated_providers(sqlite_settings, setup("wave", **wrong)) as simulated:
        assert (await pay(simulated, "wave")).status == 402
        assert await simulated.held() == []
    async with open_simulated_providers(sqlite_settings, setup("wave", **right)) as simulated:
        await pay_and_refund(simulated, "wave")
