"""`guichet providers check --deep`: what a provider would refuse is found by calls that move no money."""

from collections.abc import Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import structs

from guichet.providers.account_review import findings_without_a_call
from guichet.providers.shared.account_checks import AccountSetup, ChecksAccount
from guichet.providers.shared.client import ProviderAccount
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.provider_under_test import Scripted, provider_under_test

PUBLIC = "https://pay.example.com"


def setup_of(provider_type: str, *operators: str, public_url: str = PUBLIC, **settings: str) -> AccountSetup:
    known = {**PROVIDER_CASES[provider_type].settings, **settings}
    account = ProviderAccount("one", provider_type, "https://api.example.com", known)
    return AccountSetup(account, operators, public_url)


async def found(provider_type: str, *answers: Scripted, operators: tuple[str, ...] = (), **settings: Any) -> Any:
    """The findings of the calls by subject, as (state, sentence)."""
    async with provider_under_test(provider_type, *answers, **settings) as tested:
        assert isinstance(tested.provider, ChecksAccount)
        findings = await tested.provider.check_account(setup_of(provider_type, *operators, **settings))
        sent = [request.line.partition(" HTTP")[0] for request in tested.received]
    return {str(each.subject): (each.state, str(each.message)) for each in findings}, sent


def state_of(provider_type: str, subject: str, **changes: str) -> tuple[str, str]:
    [one] = [
        each for each in findings_without_a_call(setup_of(provider_type, **changes)) if str(each.subject) == subject
    ]
    return one.state, str(one.message)


BALANCE = (200, {"amount": "1", "currency": "XOF"})


async def test_a_key_of_wave_that_needs_signatures_is_found() -> None:
    refused = (401, {"code": "missing-signature"})
    findings, _ = await found("wave", refused)
    assert {findings[subject][0] for subject in ("key and signature", "checkout scope", "balances")} == {"wrong"}
    assert "missing-signature" in findings["key and signature"][1]


async def test_waves_checkout_is_tried_without_a_session_to_be_made() -> None:
    findings, sent = await found("wave", BALANCE, (400, {"code": "request-validation-error"}), BALANCE)
    assert findings["checkout scope"][0] == findings["key and signature"][0] == "ok"
    assert sent == ["GET /v1/balance", "POST /v1/checkout/sessions", "GET /v1/balance"]
    findings, _ = await found("wave", BALANCE, (403, {"code": "unauthorized-wallet"}), BALANCE)
    assert findings["checkout scope"][0] == "wrong"


async def test_secrets_of_wave_in_the_wrong_place_are_found() -> None:
    findings, _ = await found(
        "wave", BALANCE, api_key="wave_ci_prod_1", webhook_secret="wave_sn_AKS_1", signing_secret="wave_sn_WHS_1"
    )
    assert findings["country"] == ("wrong", "the key is of ci, the account of sn")
    assert findings["webhook_secret"][0] == findings["signing_secret"][0] == "wrong"


async def test_the_aggregated_merchants_of_wave_are_counted() -> None:
    listed = (200, {"page_info": {"has_next_page": False}, "items": [{"id": "am-1", "name": "A"}]})
    refused = (400, {"code": "request-validation-error"})
    findings, _ = await found("wave", BALANCE, refused, listed, BALANCE, aggregated_merchants="yes")
    assert findings["aggregated merchants"] == ("ok", "1 exist at Wave")


def _key() -> tuple[str, str]:
    """A private key and its public key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode(), public.decode()


PRIVATE, PUBLIC_KEY = _key()
SIGNING: dict[str, Any] = {"signing_key": PRIVATE, "signing_key_id": "K1"}
WALLETS: Scripted = (200, {"balances": []})


NAMES_OF_LIMITS = ("minTransactionLimit", "maxTransactionLimit")


def configuration(
    callback: str = f"{PUBLIC}/providers/pawapay/callback",
    *,
    signed_only: bool = False,
    limits: Sequence[str] = NAMES_OF_LIMITS,
) -> Scripted:
    terms = {limits[0]: "100", limits[1]: "2000000", "status": "OPERATIONAL", "callbackUrl": callback}
    currency = {"currency": "XOF", "operationTypes": {"DEPOSIT": terms, "REFUND": terms}}
    country = {"country": "BEN", "providers": [{"provider": "MTN_MOMO_BEN", "currencies": [currency]}]}
    return 200, {"signatureConfiguration": {"signedRequestsOnly": signed_only}, "countries": [country]}


KEYS = (200, [{"id": "HTTP_EC_P256_KEY:1", "key": PUBLIC_KEY}])


@pytest.mark.parametrize("limits", [NAMES_OF_LIMITS, ("minAmount", "maxAmount")])
async def test_pawapays_configuration_is_compared_with_the_routes(limits: Sequence[str]) -> None:
    findings, _ = await found("pawapay", configuration(limits=limits), KEYS, WALLETS, operators=("mtn", "moov"))
    assert findings["mtn"] == ("ok", "MTN_MOMO_BEN, 100 to 2000000, OPERATIONAL; also REFUND")
    assert findings["moov"] == ("wrong", "MOOV_BEN is not enabled for deposits")
    assert findings["registered callback"][0] == "ok"


@pytest.mark.parametrize("address", ["https://old.example.com/providers/pawapay/callback", f"{PUBLIC}/callback"])
async def test_a_callback_address_of_another_host_is_found(address: str) -> None:
    findings, _ = await found("pawapay", configuration(address), KEYS, WALLETS)
    state, sentence = findings["registered callback"]
    assert (state, address in sentence, PUBLIC in sentence) == ("wrong", True, True)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ((400, {"status": "REJECTED", "failureReason": {"failureCode": "MISSING_PARAMETER"}}), "ok"),
        ((403, {"status": "REJECTED", "failureReason": {"failureCode": "HTTP_SIGNATURE_ERROR"}}), "wrong"),
        ((401, {"status": "REJECTED", "failureReason": {"failureCode": "NO_AUTHENTICATION"}}), "wrong"),
        ((500, {}), "wrong"),
    ],
)
async def test_a_signature_that_pawapay_would_refuse_is_found(answer: Scripted, state: str) -> None:
    findings, sent = await found("pawapay", configuration(signed_only=True), answer, KEYS, WALLETS, **SIGNING)
    assert findings["signed request"][0] == state
    assert "POST /v2/deposits" in sent
    assert "signatures" not in findings


async def test_unsigned_requests_to_an_account_that_takes_only_signed_ones_are_found() -> None:
    findings, sent = await found("pawapay", configuration(signed_only=True), KEYS, WALLETS)
    assert findings["signatures"][0] == "wrong"
    assert not [line for line in sent if line.startswith("POST")]


async def test_a_callback_key_that_is_none_of_pawapays_is_found() -> None:
    findings, _ = await found("pawapay", configuration(), KEYS, WALLETS, callback_public_key=PUBLIC_KEY)
    assert findings["callback key"][0] == "ok"
    findings, _ = await found("pawapay", configuration(), KEYS, WALLETS, callback_public_key=_key()[1])
    assert findings["callback key"][0] == "wrong"


async def test_the_callback_host_of_an_mtn_sandbox_user_is_compared() -> None:
    money = (200, {"availableBalance": "1", "currency": "EUR"})
    for host, state in (("pay.example.com", "ok"), ("old.example.com", "wrong")):
        user = (200, {"providerCallbackHost": host, "targetEnvironment": "sandbox"})
        findings, sent = await found("mtn", *[money] * 4, user, target_env="sandbox")
        assert (findings["callback host"][0], sent[-1]) == (state, "GET /v1_0/apiuser/user")
    findings, _ = await found("mtn", money)
    assert findings["callback host"][0] == "unchecked"


async def test_a_product_of_mtn_whose_key_is_wrong_is_named() -> None:
    findings, _ = await found("mtn", (200, {"availableBalance": "1", "currency": "XOF"}), (403, {}))
    assert (findings["collection keys"][0], findings["disbursement keys"][0]) == ("ok", "wrong")


def endpoint(**changes: Any) -> Scripted:
    row = {"url": f"{PUBLIC}/providers/stripe/callback", "enabled_events": ["*"], "status": "enabled", **changes}
    return 200, {"data": [row]}


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (endpoint(), "ok"),
        (endpoint(url=f"{PUBLIC}/providers/one/callback"), "ok"),
        (endpoint(url="https://old.example.com/x"), "wrong"),
        (endpoint(status="disabled"), "wrong"),
        (endpoint(enabled_events=["checkout.session.completed"]), "wrong"),
        ((403, {"error": {}}), "unchecked"),
    ],
)
async def test_stripes_webhook_endpoint_is_compared(answer: Scripted, state: str) -> None:
    charges = (200, {"country": "FR", "default_currency": "eur", "charges_enabled": False})
    findings, _ = await found("stripe", charges, answer, (200, {"available": []}))
    assert (findings["registered callback"][0], findings["charges"][0]) == (state, "wrong")


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ((200, {"callbackUrl": f"{PUBLIC}/providers/sonatel/callback"}), "ok"),
        ((200, [{"callbackUrl": "https://old.example.com"}]), "wrong"),
        ((404, {"code": "60"}), "wrong"),
    ],
)
async def test_sonatels_registered_callback_is_compared(answer: Scripted, state: str) -> None:
    findings, _ = await found("sonatel", answer, (200, {}), (404, {"code": "60"}))
    assert (findings["registered callback"][0], findings["list of transactions"][0]) == (state, "wrong")


FEDAPAY_LISTS = {
    "v1/balances": [{"amount": 1, "mode": "moov"}],
    "v1/currencies": [{"iso": "XOF", "modes": ["mtn_open", "moov"]}],
    "v1/webhooks": [{"url": f"{PUBLIC}/providers/fedapay/callback", "enabled": True}],
}


async def test_fedapay_lists_its_networks_and_its_webhooks() -> None:
    findings, sent = await found("fedapay", (200, FEDAPAY_LISTS), operators=("moov", "mtn", "VISA"))
    assert {state for subject, (state, _) in findings.items() if subject != "limits"} == {"ok"}
    assert sent == ["GET /v1/balances", "GET /v1/currencies", "GET /v1/webhooks"]
    findings, _ = await found("fedapay", (200, FEDAPAY_LISTS), operators=("moov_tg",))
    assert findings["networks"][0] == "unchecked"
    off = {**FEDAPAY_LISTS, "v1/webhooks": [{"url": f"{PUBLIC}/providers/fedapay/callback", "enabled": False}]}
    findings, _ = await found("fedapay", (200, off))
    assert findings["registered callback"][0] == "wrong"
    findings, _ = await found("fedapay", (403, {}))
    assert [findings[subject][0] for subject in ("networks", "registered callback")] == ["wrong", "unchecked"]


async def test_what_no_call_tells_is_said() -> None:
    for provider_type in ("orange", "coris", "feexpay", "mtn"):
        findings, _ = await found(provider_type, (200, {}))
        assert any(sentence.startswith("cannot be checked by a call: ") for _, sentence in findings.values())


def test_secrets_environment_and_our_own_address_need_no_call() -> None:
    assert state_of("stripe", "webhook_secret")[0] == "ok"
    assert state_of("stripe", "webhook_secret", webhook_secret="")[0] == "unchecked"
    assert state_of("mtn", "environment") == ("ok", "live")
    assert state_of("mtn", "environment", target_env="sandbox")[0] == "unchecked"
    address = "our callback address"
    assert state_of("mtn", address) == ("ok", f"{PUBLIC}/providers/one/callback/…")
    assert state_of("wave", address) == ("ok", f"{PUBLIC}/providers/wave/callback")
    for private in ("http://pay.example.com", "https://127.0.0.1", "https://10.0.0.7", "https://guichet.internal"):
        assert state_of("wave", address, public_url=private)[0] == "wrong", private


def test_a_simulated_account_may_have_a_private_address() -> None:
    setup = setup_of("wave", public_url="http://127.0.0.1:8000")
    simulated = structs.replace(
        setup, account=structs.replace(setup.account, base_url="http://127.0.0.1:8000/simulator/wave")
    )
    assert {each.state for each in findings_without_a_call(simulated)} <= {"ok", "unchecked"}
