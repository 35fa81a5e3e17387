"""A customer on a hosted page asks for the code, reads it on the simulated phone and pays, all over HTTP."""

import re
from html import unescape
from urllib.parse import urlsplit

import pytest

from guichet.domain.catalogue import PaymentMode
from guichet.domain.errors import InvalidRequest
from guichet.payments.otp_codes import CodeNotSent, send_code
from guichet.providers.client import ProviderAccount
from guichet.settings import Settings
from guichet_simulator.app import SECRETS
from tests.invariants import check_books
from tests.providers.simulated_providers import Setup, World, open_world

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


async def text(world: World, address: str) -> str:
    async with world.http.get(address) as answer:
        assert answer.status == 200
        return await answer.text()


async def read_code(world: World) -> str:
    """The newest message on the simulated phone."""
    found = re.search(r"Votre code.*? est (\d+)\.", await text(world, f"{world.simulator}/phone"))
    assert found is not None
    return found[1]


async def new_link(world: World) -> str:
    answer = await world.shop.live.post("/payment-links", {"amount": 5000, "description": "Trois pagnes"})
    return world.house.base_url + urlsplit(str(answer.data["url"])).path


async def submit(world: World, link: str, token: str, **fields: str) -> tuple[int, str]:
    form = {"operator": "coris", "phone_number": "01 97 12 34 56", "token": token, **fields}
    async with world.http.post(link, data=form, allow_redirects=False) as answer:
        return answer.status, await answer.text()


async def token_of(world: World, link: str) -> str:
    found = re.search(r'name="token" value="([^"]+)"', await text(world, link))
    assert found is not None
    return unescape(found[1])


async def ask_and_pay(world: World) -> None:
    """The whole path; the books of both sides agree at the end."""
    link = await new_link(world)
    token = await token_of(world, link)
    status, page = await submit(world, link, token, do="code")
    assert status == 200
    assert "Un code a été envoyé" in page
    assert await world.held() == []
    assert (await world.shop.live.get("/payments")).data == []
    status, page = await submit(world, link, token, otp=await read_code(world))
    assert status == 303, page
    for seconds in (1, 5, 30):
        await world.turn(seconds)
    [payment] = (await world.shop.live.get("/payments")).data
    assert (payment["status"], payment["total_amount"]) == ("succeeded", 5100)
    [debit] = await world.held()
    assert (debit["state"], debit["amount"]) == ("succeeded", "5100")
    assert (await world.shop.live.get("/balance?currency=XOF")).data["balance"] == 5000
    await check_books(world.house.ctx.db, told=False)


@pytest.mark.parametrize("account", [CORIS, FEEXPAY], ids=lambda each: each.provider)
async def test_from_the_code_to_the_receipt(settings: Settings, account: ProviderAccount) -> None:
    async with open_world(settings, setup(account)) as world:
        await ask_and_pay(world)


async def test_who_took_nothing_is_passed_over_for_the_code_and_for_the_payment(sqlite_settings: Settings) -> None:
    async with open_world(sqlite_settings, setup(GONE, FEEXPAY)) as world:
        await ask_and_pay(world)
        assert {debit["family"] for debit in await world.held()} == {"feexpay"}


async def test_a_wrong_code_pays_nothing(sqlite_settings: Settings) -> None:
    async with open_world(sqlite_settings, setup(CORIS)) as world:
        link = await new_link(world)
        token = await token_of(world, link)
        await submit(world, link, token, do="code")
        assert (await submit(world, link, token, otp="000000"))[0] == 303
        [payment] = (await world.shop.live.get("/payments")).data
        assert payment["status"] == "failed"
        assert await world.held() == []


async def mode_of(world: World, operator: str = "coris") -> PaymentMode:
    mode = (await world.house.ctx.catalogues.of(world.shop.id)).by_operator(operator)
    assert isinstance(mode, PaymentMode)
    return mode


async def test_an_unclear_answer_stays_with_its_operator(sqlite_settings: Settings) -> None:
    """The code may be on its way: a second one from somebody else would only confuse."""
    async with open_world(sqlite_settings, setup(CORIS, FEEXPAY)) as world:
        await world.force("coris", "error_500", "token")
        with pytest.raises(CodeNotSent) as raised:
            await send_code(world.house.ctx, await mode_of(world), PHONE, 5000_00, "XOF", "Pagne")
        assert raised.value.reason is None
        calls = (await world.control("GET", "/calls"))["calls"]
        assert "feexpay" not in str(calls)


@pytest.mark.parametrize(
    ("scenario", "reason"), [("unauthorized", "configuration"), ("rate_limited", "operator_unavailable")]
)
async def test_nobody_takes_it(sqlite_settings: Settings, scenario: str, reason: str) -> None:
    async with open_world(sqlite_settings, setup(CORIS)) as world:
        await world.force("coris", scenario, "token")
        with pytest.raises(CodeNotSent) as raised:
            await send_code(world.house.ctx, await mode_of(world), PHONE, 5000_00, "XOF", "Pagne")
        assert raised.value.reason == reason


async def test_no_route_and_no_such_mode(sqlite_settings: Settings) -> None:
    async with open_world(sqlite_settings, Setup({CORIS.name: CORIS}, {})) as world:
        with pytest.raises(CodeNotSent) as raised:
            await send_code(world.house.ctx, await mode_of(world), PHONE, 5000_00, "XOF", "Pagne")
        assert raised.value.reason == "not_connected"
        mtn = await mode_of(world, "mtn")
        with pytest.raises(InvalidRequest):
            await send_code(world.house.ctx, mtn, PHONE, 5000_00, "XOF", "Pagne")
        with pytest.raises(InvalidRequest):
            await send_code(world.house.ctx, await mode_of(world), PHONE, 2_000_000_00, "XOF", "Pagne")
