"""Several routes: which provider is tried next, which never is, which one refunds; and every operator code."""

from collections import defaultdict
from typing import Any

import pytest

from guichet.domain.merchants import Environment
from guichet.payments import repository as payments
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from guichet_simulator.app import SECRETS
from tests.fakes.http_server import ScriptedServer, hangs_up
from tests.invariants import check_books
from tests.payments.confirming import confirmed
from tests.ports import free_port
from tests.providers.conformance import no_fees
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers

SETTINGS = {name: provider_case.settings for name, provider_case in PROVIDER_CASES.items()}
MTN, FEEXPAY, PAWAPAY = SETTINGS["mtn"], SETTINGS["feexpay"], SETTINGS["pawapay"]
PERSON = {"customer": {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"}}


def account(name: str, provider_name: str, settings: Any, base: str = "") -> ProviderAccount:
    return ProviderAccount(name, provider_name, base or f"{{sim}}/{provider_name}", settings)


def route(operator: str, *accounts: ProviderAccount) -> Setup:
    return Setup({each.name: each for each in accounts}, {operator: [each.name for each in accounts]})


async def pay(simulated: SimulatedProviders, operator: str, phone: str, **more: Any) -> Any:
    body = {"amount": 5000, "operator": operator, "phone_number": phone, **more}
    return await simulated.nudged(simulated.merchant.live.post("/payments", body))


async def shown(simulated: SimulatedProviders, reference: str) -> Any:
    return (await simulated.merchant.live.get(f"/payments/{reference}")).data


async def test_a_refused_connection_fails_over_and_charges_once(settings: Settings) -> None:
    unreachable = account("nobody", "mtn", MTN, f"http://127.0.0.1:{free_port()}")
    async with open_simulated_providers(
        settings, route("mtn", unreachable, account("second", "feexpay", FEEXPAY))
    ) as simulated:
        answer = await pay(simulated, "mtn", "22997129001")
        assert answer.status == 201
        for _ in range(3):
            await simulated.turn(5)
        [debit] = await simulated.held()
        assert (debit["family"], debit["state"], debit["reference"]) == (
            "feexpay",
            "succeeded",
            answer.data["reference"],
        )
        assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"
        await check_books(simulated.service.ctx.db)


@pytest.mark.parametrize("scenario", ["unauthorized", "rate_limited", "not_configured"])
async def test_a_request_that_was_not_processed_fails_over(sqlite_settings: Settings, scenario: str) -> None:
    setup = route("mtn", account("first", "mtn", MTN), account("second", "pawapay", PAWAPAY))
    async with open_simulated_providers(sqlite_settings, setup) as simulated:
        await simulated.force("mtn", scenario)
        answer = await pay(simulated, "mtn", "22997129001")
        await simulated.turn(5)
        await simulated.turn(5)
        assert [tx["family"] for tx in await simulated.held()] == ["pawapay"]
        assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"


@pytest.mark.parametrize("scenario", ["lost_answer", "error_500", "unavailable_stored", "unreadable", "halfway"])
async def test_an_unknown_answer_never_fails_over(sqlite_settings: Settings, scenario: str) -> None:
    setup = route("mtn", account("first", "mtn", MTN), account("second", "feexpay", FEEXPAY))
    async with open_simulated_providers(sqlite_settings, setup) as simulated:
        await simulated.force("mtn", scenario)
        answer = await pay(simulated, "mtn", "22997120000")
        assert (answer.status, answer.data["status"]) == (201, "pending")
        for seconds in (5, 30, 60):
            await simulated.turn(seconds)
        assert [(tx["family"], tx["state"]) for tx in await simulated.held()] == [("mtn", "succeeded")]
        assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"


async def test_a_payment_whose_connection_broke_stays_with_its_provider(sqlite_settings: Settings) -> None:
    """The result is unknown, so no other route is tried, however long it takes."""
    async with ScriptedServer(hangs_up) as server:
        first = account("first", "feexpay", FEEXPAY, server.url("127.0.0.1", ""))
        async with open_simulated_providers(
            sqlite_settings, route("mtn", first, account("second", "mtn", MTN))
        ) as simulated:
            answer = await pay(simulated, "mtn", "22997129001")
            for seconds in (30, 600, 7200):
                await simulated.turn(seconds)
            assert await simulated.held() == []
            assert (await shown(simulated, answer.data["reference"]))["status"] == "pending"


async def test_a_payment_that_no_route_accepts_fails(sqlite_settings: Settings) -> None:
    setup = route("mtn", account("first", "mtn", MTN), account("second", "feexpay", FEEXPAY))
    async with open_simulated_providers(sqlite_settings, setup) as simulated:
        await simulated.force("mtn", "rate_limited")
        await simulated.force("feexpay", "unauthorized")
        answer = await pay(simulated, "mtn", "22997129001")
        assert (answer.status, answer.error["code"]) == (500, "server_error")
        assert await simulated.held() == []


@pytest.mark.parametrize("provider_name", ["mtn", "stripe"])
async def test_a_lost_request_is_sent_again_under_the_same_id(sqlite_settings: Settings, provider_name: str) -> None:
    provider_case = PROVIDER_CASES[provider_name]
    async with open_simulated_providers(sqlite_settings, provider_case.setup) as simulated:
        await simulated.force(provider_name, "lost_request")
        await simulated.force(provider_name, "succeeds", times=None)
        answer = await pay(simulated, provider_case.operator, "22997120000", **provider_case.order)
        assert (answer.status, await simulated.held()) == (201, [])
        for seconds in (31, 5, 5, 10):
            await simulated.turn(seconds)
        assert [tx["state"] for tx in await simulated.held()] == ["succeeded"]
        assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"


@pytest.mark.parametrize("scenario", ["lost_request", "error_500_not_stored"])
@pytest.mark.parametrize("provider_name", ["mtn", "wave", "pawapay", "stripe"])
async def test_a_refund_without_a_response_is_repeated_and_paid_once(
    sqlite_settings: Settings, provider_name: str, scenario: str
) -> None:
    provider_case = PROVIDER_CASES[provider_name]
    async with open_simulated_providers(sqlite_settings, provider_case.setup) as simulated:
        await simulated.force(provider_name, "succeeds")
        await simulated.force(provider_name, scenario, "credit")
        answer = await pay(simulated, provider_case.operator, f"{provider_case.dial}97120000", **provider_case.order)
        reference = answer.data["reference"]
        for _ in range(3):
            await simulated.turn(5)
        refund = (await simulated.merchant.live.post(f"/payments/{reference}/refund")).data
        for seconds in (1, 5, 10, 30, 60):
            await simulated.turn(seconds)
        assert [tx["state"] for tx in await simulated.held() if tx["kind"] == "credit"] == ["succeeded"]
        assert (await simulated.merchant.live.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
        assert (await shown(simulated, reference))["status"] == "refunded"
        await check_books(simulated.service.ctx.db)


WITHOUT_DISBURSEMENT = {name: value for name, value in MTN.items() if not name.startswith("disbursement")}


@pytest.mark.parametrize("giver", ["feexpay", "pawapay"])
@pytest.mark.parametrize(
    ("operator", "phone", "taker", "settings_of_taker"),
    [
        ("orange_ci", "2250777129001", "orange", {**PROVIDER_CASES["orange"].settings, "country": "ci"}),
        ("mtn", "22997129001", "mtn", WITHOUT_DISBURSEMENT),
    ],
)
async def test_a_refund_goes_through_another_provider_when_the_first_has_none(
    sqlite_settings: Settings, operator: str, phone: str, taker: str, settings_of_taker: Any, giver: str
) -> None:
    """The provider that took the payment cannot refund, so another one makes a payout to the same customer. On Orange's
    page anybody may have paid, so a person says first who that was."""
    setup = route(operator, account("taker", taker, settings_of_taker), account("giver", giver, SETTINGS[giver]))
    async with open_simulated_providers(sqlite_settings, setup) as simulated:
        await no_fees(simulated, operator)
        await simulated.force(taker, "succeeds")
        answer = await pay(simulated, operator, phone)
        for _ in range(3):
            await simulated.turn(5)
        assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"
        refund = (await simulated.merchant.live.post(f"/payments/{answer.data['reference']}/refund")).data
        for _ in range(3):
            await simulated.turn(5)
        if taker == "orange":
            assert [tx for tx in await simulated.held() if tx["kind"] == "credit"] == []
            await confirmed(simulated.service.ctx, refund["reference"], phone)
            for _ in range(3):
                await simulated.turn(5)
        [credit] = [tx for tx in await simulated.held() if tx["kind"] == "credit"]
        assert (credit["family"], credit["reference"], credit["phone"]) == (giver, refund["reference"], phone)
        assert (await simulated.merchant.live.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
        await check_books(simulated.service.ctx.db)


@pytest.mark.parametrize("provider_name", ["orange", "coris"])
async def test_a_refund_without_any_capable_provider_fails(sqlite_settings: Settings, provider_name: str) -> None:
    provider_case = PROVIDER_CASES[provider_name]
    async with open_simulated_providers(sqlite_settings, provider_case.setup) as simulated:
        await simulated.force(provider_name, "succeeds")
        answer = await pay(simulated, provider_case.operator, f"{provider_case.dial}77120000", **provider_case.order)
        for _ in range(3):
            await simulated.turn(5)
        refund = (await simulated.merchant.live.post(f"/payments/{answer.data['reference']}/refund")).data
        await simulated.turn(1)
        assert (await simulated.merchant.live.get(f"/refunds/{refund['reference']}")).data["status"] == "failed"
        await check_books(simulated.service.ctx.db)


@pytest.mark.parametrize("bad_questions", [0, 6])
async def test_a_redirect_url_that_comes_later_is_followed(sqlite_settings: Settings, bad_questions: int) -> None:
    """Usually in time for the response; otherwise it is stored for the payment's own page."""
    async with open_simulated_providers(
        sqlite_settings, route("wave_sn", account("pawapay", "pawapay", PAWAPAY))
    ) as simulated:
        if bad_questions:
            await simulated.force("pawapay", "error_500", "status", times=bad_questions)
        answer = await pay(simulated, "wave_sn", "221771230000")
        assert ("redirect_url" in answer.data) is not bool(bad_questions)
        await simulated.turn(5)
        [debit] = await simulated.held()
        merchant = simulated.merchant.live
        kept = await payments.by_reference(simulated.service.ctx.db, merchant.id, "live", answer.data["reference"])
        assert kept is not None
        assert kept.redirect_url == debit["page_url"]
        assert answer.data.get("redirect_url", kept.redirect_url) == kept.redirect_url


@pytest.mark.parametrize(
    ("provider_name", "operator", "dial"), [("wave", "wave_sn", "221"), ("orange", "orange_ml", "223")]
)
async def test_a_customer_is_redirected_to_the_providers_page(
    sqlite_settings: Settings, provider_name: str, operator: str, dial: str
) -> None:
    async with open_simulated_providers(sqlite_settings, PROVIDER_CASES[provider_name].setup) as simulated:
        answer = await pay(simulated, operator, f"{dial}771230000", return_url="https://shop.example/back")
        [debit] = await simulated.held()
        assert answer.data["redirect_url"] == debit["page_url"]
        assert answer.data["payment_url"] is None


async def test_a_card_is_paid_on_the_hosted_page(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, PROVIDER_CASES["stripe"].setup) as simulated:
        answer = await pay(simulated, "VISA", "22997120000", **PERSON)
        [debit] = await simulated.held()
        assert answer.data["payment_url"] == debit["page_url"]
        await simulated.control("POST", f"/transactions/{debit['id']}/decide", json={"decision": "approve"})
        await simulated.turn(1)
        assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"


CODES = [
    *(("feexpay", code, phone, more) for code, phone, more in (
        ("mtn", "22997129001", {}), ("moov", "22997129001", {}), ("celtiis_bj", "22997129001", {}),
        ("coris", "22997129001", {"otp": "123456"}), ("moov_bf", "22677129001", {}),
        ("orange_bf", "22677129001", {"otp": "123456"}), ("wave_bf", "22677129001", {"otp": "123456"}),
        ("mtn_ci", "2250777129001", {}), ("moov_ci", "2250777129001", {}), ("orange_ci", "2250777129001", {}),
        ("wave_ci", "2250777129001", {}), ("orange_ml", "22377129001", {}), ("mobicash_ml", "22377129001", {}),
        ("orange_sn", "221771239001", {"otp": "123456"}),
        ("free_sn", "221771239001", {"return_url": "https://shop.example/back"}),
        ("wave_sn", "221771239001", {}), ("togocom_tg", "22897129001", {}), ("moov_tg", "22897129001", {}),
        ("mtn_cg", "242067129001", {"currency": "XAF"}), ("VISA", "", PERSON), ("MASTERCARD", "", PERSON),
    )),
    *(("pawapay", code, phone, more) for code, phone, more in (
        ("mtn", "22997129001", {}), ("moov", "22997129001", {}), ("moov_bf", "22677129001", {}),
        ("orange_bf", "22677129001", {"otp": "123456"}), ("mtn_ci", "2250777129001", {}),
        ("orange_ci", "2250777129001", {}), ("wave_ci", "2250777129001", {}),
        ("orange_sn", "221771239001", {"otp": "123456"}),
        ("free_sn", "221771239001", {"return_url": "https://shop.example/back"}),
        ("wave_sn", "221771239001", {}), ("mtn_cg", "242067129001", {"currency": "XAF"}),
    )),
    *(("fedapay", code, phone, {}) for code, phone in (
        ("mtn", "22997129001"), ("moov", "22997129001"), ("celtiis_bj", "22997129001"), ("mtn_ci", "2250777129001"),
        ("togocom_tg", "22897129001"), ("moov_tg", "22897129001"),
    )),
    ("fedapay", "free_sn", "221771239001", {"return_url": "https://shop.example/back"}),
    *(("paydunya", code, phone, more) for code, phone, more in (
        ("mtn", "22997129001", {}), ("moov", "22997129001", {}), ("celtiis_bj", "22997129001", {}),
        ("moov_bf", "22677129001", {}), ("orange_bf", "22677129001", {"otp": "123456"}),
        ("mtn_ci", "2250777129001", {}), ("moov_ci", "2250777129001", {}), ("orange_ci", "2250777129001", {}),
        ("wave_ci", "2250777129001", {}), ("orange_ml", "22377129001", {}),
        ("orange_sn", "221771239001", {"otp": "123456"}),
        ("free_sn", "221771239001", {"return_url": "https://shop.example/back"}),
        ("wave_sn", "221771239001", {}), ("togocom_tg", "22897129001", {}), ("moov_tg", "22897129001", {}),
        ("VISA", "", PERSON), ("MASTERCARD", "", PERSON),
    )),
    ("wave", "wave_ci", "2250777129001", {}),
    ("wave", "wave_sn", "221771239001", {}),
    ("wave", "wave_bf", "22677129001", {"otp": "123456"}),
    ("stripe", "VISA", "", PERSON),
    ("stripe", "MASTERCARD", "", {**PERSON, "currency": "EUR"}),
]  # fmt: skip


NO_WAY_BACK = {("feexpay", "coris"), ("fedapay", "free_sn")}
NO_WAY_BACK |= {(name, card) for name in ("feexpay", "paydunya") for card in ("VISA", "MASTERCARD")}


def _accounts() -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """The codes that one account takes: all of a provider, but a key of Wave belongs to one country."""
    accounts = defaultdict(list)
    for provider_name, code, phone, more in CODES:
        accounts[code if provider_name == "wave" else provider_name].append((code, phone, more))
    return accounts


ACCOUNTS = _accounts()


@pytest.mark.parametrize("name", ACCOUNTS)
async def test_every_operator_code_of_a_provider_pays_and_refunds(sqlite_settings: Settings, name: str) -> None:
    provider_name, codes = name.partition("_")[0], ACCOUNTS[name]
    settings = {**PROVIDER_CASES[provider_name].settings}
    if provider_name == "wave":
        settings |= {"api_key": f"{name}_prod_simulator", "country": name.removeprefix("wave_")}
    base = f"{{sim}}/{PROVIDER_CASES[provider_name].base or provider_name}"
    one = account(provider_name, provider_name, settings, base)
    async with open_simulated_providers(
        sqlite_settings, Setup({one.name: one}, {code: [one.name] for code, *_ in codes})
    ) as simulated:
        await simulated.force(provider_name, "succeeds", times=None)
        answers = {}
        for code, phone, more in codes:
            body = {"amount": 5000, "operator": code, **({"phone_number": phone} if phone else {}), **more}
            answers[code] = await simulated.nudged(simulated.merchant.live.post("/payments", body))
            assert answers[code].status == 201, (code, answers[code].raw)
        for _ in range(3):
            await simulated.turn(5)
        refunds = {}
        for code, answer in answers.items():
            reference = answer.data["reference"]
            payment, [debit] = await shown(simulated, reference), await simulated.held(reference=reference)
            ended = (code, payment["status"], debit["state"], debit["currency"])
            assert ended == (code, "succeeded", "succeeded", payment["currency"])
            refunds[code] = (await simulated.merchant.live.post(f"/payments/{reference}/refund")).data["reference"]
        for _ in range(3):
            await simulated.turn(5)
        if provider_name in ("feexpay", "paydunya"):
            for code, phone, _ in codes:
                if "redirect_url" in answers[code].data:
                    await confirmed(simulated.service.ctx, refunds[code], phone)
            for _ in range(3):
                await simulated.turn(5)
        found = {
            code: (await simulated.merchant.live.get(f"/refunds/{reference}")).data["status"]
            for code, reference in refunds.items()
        }
        payable = [code for code in found if (provider_name, code) not in NO_WAY_BACK]
        assert found == {code: "succeeded" if code in payable else "failed" for code in found}
        assert [tx["state"] for tx in await simulated.held(kind="credit")] == ["succeeded"] * len(payable)
        await check_books(simulated.service.ctx.db)


@pytest.mark.parametrize(
    ("code", "env", "currency"), [("mtn_ci", "mtnivorycoast", "XOF"), ("mtn_cg", "mtncongo", "XAF")]
)
async def test_mtn_has_one_account_per_country(
    sqlite_settings: Settings, code: str, env: Environment, currency: str
) -> None:
    setup = route(code, account("wrong", "mtn", MTN), account("right", "mtn", {**MTN, "target_env": env}))
    async with open_simulated_providers(sqlite_settings, setup) as simulated:
        answer = await pay(simulated, code, "24206779001", currency=currency)
        await simulated.turn(5)
        await simulated.turn(5)
        [debit] = await simulated.held()
        assert (debit["operator"], debit["currency"], debit["state"]) == (code, currency, "succeeded")
        assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"


@pytest.mark.parametrize("provider_name", list(PROVIDER_CASES))
async def test_the_probe_distinguishes_valid_from_invalid_credentials(
    sqlite_settings: Settings, provider_name: str
) -> None:
    provider_case = PROVIDER_CASES[provider_name]
    bad = {
        name: value if name in ("target_env", "country") else "invalid"
        for name, value in provider_case.settings.items()
    }
    base = f"{{sim}}/{provider_case.base or provider_name}"
    setup = Setup(
        {
            "good": account("good", provider_name, provider_case.settings, base),
            "bad": account("bad", provider_name, bad, base),
            "nobody": account("nobody", provider_name, provider_case.settings, f"http://127.0.0.1:{free_port()}"),
        },
        {},
    )
    async with open_simulated_providers(sqlite_settings, setup) as simulated:
        probed = {
            name: await simulated.service.ctx.registry.provider(name).probe() for name in ("good", "bad", "nobody")
        }
    assert probed["good"] == "ok"
    assert probed["bad"] != "ok"
    assert probed["nobody"] != "ok"
    assert not any(secret in str(result) for result in probed.values() for secret in SECRETS.values())
