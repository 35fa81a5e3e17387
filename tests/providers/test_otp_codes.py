"""A customer on a hosted page requests the code, reads it on the simulated phone and pays, all over HTTP."""

import re
from html import unescape
from urllib.parse import urlsplit

import pytest

from guichet.domain.catalogue import PaymentMode
from guichet.domain.errors import InvalidRequest
from guichet.domain.money import Hundredths
from guichet.payments.otp_codes import CodeNotSent, send_code
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from guichet_simulator.app import SECRETS
from tests.invariants import check_books
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers

CORIS = ProviderAccount(
    "coris_one",
    "coris",
    "{sim}/coris/external/v1/api",
    {"client_id": "c", "client_secret": SECRETS["coris"], "code_pv": "PV1"},
)
FEEXPAY = ProviderAccount(
    "feexpay_one", "feexpay", "{sim}/feexpay", {"api_key": "fp_simulator", "shop": "simulatorshop01"}
)
#: A dead end: nothing listens there.
GONE = ProviderAccount("gone", "coris", "http://127.0.0.1:9", CORIS.settings)
PHONE = "2290197123456"


def setup(*accounts: ProviderAccount) -> Setup:
    return Setup({each.name: each for each in accounts}, {"coris": [each.name for each in accounts]})


async def text(simulated: SimulatedProviders, address: str) -> str:
    async with simulated.http.get(address) as answer:
        assert answer.status == 200
        return await answer.text()


async def read_code(simulated: SimulatedProviders) -> str:
    """The code in the newest message on the simulated phone."""
    found = re.search(r"Votre code.*? est (\d+)\.", await text(simulated, f"{simulated.simulator}/phone"))
    assert found is not None
    return found[1]


async def new_link(simulated: SimulatedProviders) -> str:
    answer = await simulated.merchant.live.post("/payment-links", {"amount": 5000, "description": "Trois pagnes"})
    return simulated.service.base_url + urlsplit(str(answer.data["url"])).path


async def submit(simulated: SimulatedProviders, link: str, token: str, **fields: str) -> tuple[int, str]:
    form = {"operator": "coris", "phone_number": "01 97 12 34 56", "token": token, **fields}
    async with simulated.http.post(link, data=form, allow_redirects=False) as answer:
        return answer.status, await answer.text()


async def token_of(simulated: SimulatedProviders, link: str) -> str:
    found = re.search(r'name="token" value="([^"]+)"', await text(simulated, link))
    assert found is not None
    return unescape(found[1])


async def ask_and_pay(simulated: SimulatedProviders) -> None:
    """Requests a code and pays; the books of both sides agree at the end."""
    link = await new_link(simulated)
    token = await token_of(simulated, link)
    status, page = await submit(simulated, link, token, do="code")
    assert status == 200
    assert "Un code a été envoyé" in page
    assert await simulated.held() == []
    assert (await simulated.merchant.live.get("/payments")).data == []
    status, page = await submit(simulated, link, token, otp=await read_code(simulated))
    assert status == 303, page
    for seconds in (1, 5, 30):
        await simulated.turn(seconds)
    [payment] = (await simulated.merchant.live.get("/payments")).data
    assert (payment["status"], payment["total_amount"]) == ("succeeded", 5100)
    [debit] = await simulated.held()
    assert (debit["state"], debit["amount"]) == ("succeeded", "5100")
    assert (await simulated.merchant.live.get("/balance?currency=XOF")).data["balance"] == 5000
    await check_books(simulated.service.ctx.db, events_queued=False)


@pytest.mark.parametrize("account", [CORIS, FEEXPAY], ids=lambda each: each.provider)
async def test_a_payment_with_a_texted_code_ends_with_a_receipt(settings: Settings, account: ProviderAccount) -> None:
    async with open_simulated_providers(settings, setup(account)) as simulated:
        await ask_and_pay(simulated)


async def test_a_route_that_fails_is_skipped_for_the_code_and_the_payment(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, setup(GONE, FEEXPAY)) as simulated:
        await ask_and_pay(simulated)
        assert {debit["family"] for debit in await simulated.held()} == {"feexpay"}


async def test_a_wrong_code_pays_nothing(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, setup(CORIS)) as simulated:
        link = await new_link(simulated)
        token = await token_of(simulated, link)
        await submit(simulated, link, token, do="code")
        assert (await submit(simulated, link, token, otp="000000"))[0] == 303
        [payment] = (await simulated.merchant.live.get("/payments")).data
        assert payment["status"] == "failed"
        assert await simulated.held() == []


async def mode_of(simulated: SimulatedProviders, operator: str = "coris") -> PaymentMode:
    mode = (await simulated.service.ctx.catalogues.of(simulated.merchant.id)).by_operator(operator)
    assert isinstance(mode, PaymentMode)
    return mode


async def test_an_unknown_otp_result_is_not_retried_at_another_provider(sqlite_settings: Settings) -> None:
    """The code may be on its way: a second one from another provider would confuse the customer."""
    async with open_simulated_providers(sqlite_settings, setup(CORIS, FEEXPAY)) as simulated:
        await simulated.force("coris", "error_500", "token")
        with pytest.raises(CodeNotSent) as raised:
            await send_code(simulated.service.ctx, await mode_of(simulated), PHONE, Hundredths(5000_00), "XOF", "Pagne")
        assert raised.value.refusal is None
        calls = (await simulated.control("GET", "/calls"))["calls"]
        assert "feexpay" not in str(calls)


@pytest.mark.parametrize(
    ("scenario", "reason"), [("unauthorized", "configuration"), ("rate_limited", "operator_unavailable")]
)
async def test_an_otp_request_that_no_provider_takes_fails(
    sqlite_settings: Settings, scenario: str, reason: str
) -> None:
    async with open_simulated_providers(sqlite_settings, setup(CORIS)) as simulated:
        await simulated.force("coris", scenario, "token")
        with pytest.raises(CodeNotSent) as raised:
            await send_code(simulated.service.ctx, await mode_of(simulated), PHONE, Hundredths(5000_00), "XOF", "Pagne")
        assert raised.value.refusal == reason


async def test_an_otp_request_without_a_route_or_mode_fails(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, Setup({CORIS.name: CORIS}, {})) as simulated:
        with pytest.raises(CodeNotSent) as raised:
            await send_code(simulated.service.ctx, await mode_of(simulated), PHONE, Hundredths(5000_00), "XOF", "Pagne")
        assert raised.value.refusal == "not_connected"
        mtn = await mode_of(simulated, "mtn")
        with pytest.raises(InvalidRequest):
            await send_code(simulated.service.ctx, mtn, PHONE, Hundredths(5000_00), "XOF", "Pagne")
        with pytest.raises(InvalidRequest):
            await send_code(
                simulated.service.ctx, await mode_of(simulated), PHONE, Hundredths(2_000_000_00), "XOF", "Pagne"
            )
