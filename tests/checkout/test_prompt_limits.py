"""Payment prompts from links are limited for each telephone number and each link, whatever the address."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from ipaddress import ip_network

import pytest

from guichet.db.engine import require
from guichet.domain.failures import RefusalReason
from guichet.domain.merchants import Caller
from guichet.links.links import create_link, requested_link
from guichet.links.prompt_limits import DAILY_FACTOR
from guichet.merchants import repository as merchants
from guichet.server.rate_limits import OTP_CODES_PER_LINK, OTP_CODES_PER_PHONE, OTP_CODES_PER_PHONE_A_DAY
from guichet.settings import Settings
from tests.checkout.checkout_fixture import Answer, CheckoutFixture, open_checkout
from tests.checkout.test_otp_codes import ask, fault
from tests.server.metrics_reader import counted

PHONE = "01 97 00 00 45"
PER_PHONE = 3
PER_LINK = 60
WINDOW = 600
#: The same telephone; with a code of its country in front, the form of another country's operator does not change it.
WAYS_TO_WRITE = (
    "01 97 00 00 45",
    "0197000045",
    "+229 01 97 00 00 45",
    "229 0197000045",
    "00229-01-97-00-00-45",
    "+00229 0197000045",
    "97 00 00 45",
    "+229 97000045",
)


def behind_proxy(settings: Settings) -> Settings:
    """Rate limits by address are on, and the proxy on this machine says which address it is."""
    return replace(settings, page_rate_limit=60, trusted_proxies=(ip_network("127.0.0.0/8"),))


@pytest.fixture
async def proxied(settings: Settings) -> AsyncIterator[CheckoutFixture]:
    """On SQLite and on PostgreSQL."""
    async with open_checkout(behind_proxy(settings)) as opened:
        yield opened


async def prompt_at_once(
    checkout: CheckoutFixture, paths: Sequence[str], phones: Sequence[str], operators: Sequence[str] = ("mtn",)
) -> list[Answer]:
    """One prompt for each phone, each from an address of its own, over the links in turn."""
    forms = [
        (await checkout.get(paths[n % len(paths)])).form(operators[n % len(operators)]) | {"phone_number": phone}
        for n, phone in enumerate(phones)
    ]
    return await asyncio.gather(
        *(
            checkout.post(paths[n % len(paths)], form, X_Forwarded_For=f"198.51.{n // 250}.{1 + n % 250}")
            for n, form in enumerate(forms)
        )
    )


def statuses(answers: Sequence[Answer]) -> dict[int, int]:
    return dict(Counter(answer.status for answer in answers))


def refused_by(limit: str) -> float:
    return counted("guichet_rate_limited_requests_total", interface=limit)


async def test_one_telephone_is_asked_three_times_whatever_the_address(proxied: CheckoutFixture) -> None:
    """And whatever the link, the operator, and the way in which its number is written."""
    before = refused_by("prompt-phone")
    links = [await proxied.link() for _ in range(4)]
    phones = WAYS_TO_WRITE * 5
    answers = await prompt_at_once(proxied, links, phones, ("mtn", "moov"))
    assert statuses(answers) == {303: PER_PHONE, 429: len(phones) - PER_PHONE}
    assert len(proxied.operator.charges) == PER_PHONE
    assert len(await proxied.api("GET", "/payments")) == PER_PHONE
    assert refused_by("prompt-phone") - before == len(phones) - PER_PHONE
    # Another telephone is asked.
    assert (await proxied.pay(links[0], phone="01 97 00 00 46")).status == 303


async def test_two_processes_count_together(settings: Settings) -> None:
    """Without Redis: what counts is in the database."""
    async with open_checkout(settings) as one, open_checkout(settings) as two:
        links = [(one, await one.link()), (two, await two.link())] * 10
        forms = [(await checkout.get(path)).form("mtn") | {"phone_number": PHONE} for checkout, path in links]
        answers = await asyncio.gather(
            *(checkout.post(path, form) for (checkout, path), form in zip(links, forms, strict=True))
        )
        assert statuses(answers) == {303: PER_PHONE, 429: len(links) - PER_PHONE}
        assert len(one.operator.charges) + len(two.operator.charges) == PER_PHONE


async def test_a_refused_form_is_kept_and_says_when_to_try_again(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    for _ in range(PER_PHONE):
        await checkout.waiting(path, phone=PHONE)
        checkout.pass_time(60)
    refused = await checkout.pay(path, phone=PHONE)
    assert refused.status == 429
    assert int(refused.headers["Retry-After"]) == WINDOW - PER_PHONE * 60
    sentence = fault(refused, "phone-number-mtn")
    assert "sans les valider" in sentence
    assert re.search(r"\d{1,2}:\d\d \(GMT\+1\)", sentence)
    assert "rien n’a été débité" in refused.text
    assert refused.form("mtn")["phone_number"] == PHONE
    english = await checkout.pay(path + "?lang=en", phone=PHONE)
    assert (english.status, "confirmed none of them" in english.text) == (429, True)
    # The same form works when the time has come.
    checkout.pass_time(int(refused.headers["Retry-After"]))
    again = refused.form("mtn")
    assert (await checkout.post(path, again)).status == 303
    assert (await checkout.pay(path, phone=PHONE)).status == 429


async def test_one_telephone_is_asked_twelve_times_a_day(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    for _ in range(DAILY_FACTOR):
        for _ in range(PER_PHONE):
            await checkout.waiting(path, phone=PHONE)
        assert (await checkout.pay(path, phone=PHONE)).status == 429
        checkout.pass_time(WINDOW)
    refused = await checkout.pay(path, phone=PHONE)
    assert refused.status == 429
    assert int(refused.headers["Retry-After"]) == 24 * 3600 - DAILY_FACTOR * WINDOW
    checkout.pass_time(24 * 3600 - DAILY_FACTOR * WINDOW)
    assert (await checkout.pay(path, phone=PHONE)).status == 303


async def test_who_confirms_may_pay_as_often_as_wanted(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    for _ in range(PER_PHONE * DAILY_FACTOR + 5):
        waiting = await checkout.waiting(path, phone=PHONE)
        checkout.operator.approve(checkout.operator.last.payment.reference)
        checkout.pass_time(6)
        await checkout.get(waiting)


@pytest.mark.parametrize("reason", ["payer_not_found", "operator_unavailable"])
async def test_attempts_that_reach_no_telephone_are_not_counted(
    checkout: CheckoutFixture, reason: RefusalReason
) -> None:
    path = await checkout.link()
    for _ in range(PER_PHONE * 2):
        waiting = await checkout.waiting(path, phone=PHONE)
        checkout.operator.refuse(checkout.operator.last.payment.reference, reason)
        checkout.pass_time(6)
        await checkout.get(waiting)


async def test_a_clock_that_was_set_back_refuses_nobody(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    for _ in range(PER_PHONE):
        await checkout.waiting(path, phone=PHONE)
    checkout.pass_time(-3600)
    assert (await checkout.pay(path, phone=PHONE)).status == 303


async def test_one_link_asks_sixty_telephones_that_do_not_confirm(proxied: CheckoutFixture) -> None:
    before = refused_by("prompt-link")
    path, other = await proxied.link(), await proxied.link()
    answers = await prompt_at_once(proxied, [path], [f"0197{n:06}" for n in range(100, 100 + PER_LINK + 20)])
    assert statuses(answers) == {303: PER_LINK, 429: 20}
    assert len(proxied.operator.charges) == PER_LINK
    assert refused_by("prompt-link") - before == 20
    refused = next(answer for answer in answers if answer.status == 429)
    assert "n’ont pas été validées" in fault(refused, "phone-number-mtn")
    assert int(refused.headers["Retry-After"]) == WINDOW
    # Other links, and cards on this one, are as before.
    assert (await proxied.pay(other)).status == 303
    card = {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"}
    assert (await proxied.post(path, (await proxied.get(path)).form("VISA") | card)).status == 303
    proxied.pass_time(WINDOW)
    assert (await proxied.pay(path)).status == 303


async def test_a_busy_link_is_not_limited(sqlite_settings: Settings) -> None:
    """As many may be waiting or give up as have paid, and `link_prompts` more."""
    async with open_checkout(replace(sqlite_settings, link_prompts=5)) as checkout:
        path = await checkout.link()
        for n in range(40):
            waiting = await checkout.waiting(path, phone=f"0197{n:04}22")
            if n % 2:
                checkout.operator.approve(checkout.operator.last.payment.reference)
                checkout.pass_time(6)
                await checkout.get(waiting)
        answers = [await checkout.pay(path, phone=f"0196{n:04}22") for n in range(8)]
        assert statuses(answers) == {303: 5, 429: 3}


async def test_the_api_is_not_limited_and_not_counted(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link()
    body = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000045"}
    for key in (checkout.live, checkout.test):
        for _ in range(PER_PHONE * 2):
            await checkout.api("POST", "/payments", key, json=body)
    assert (await checkout.pay(path, phone=PHONE)).status == 303


async def test_the_limits_can_be_switched_off(sqlite_settings: Settings) -> None:
    async with open_checkout(replace(sqlite_settings, phone_prompts=0, link_prompts=0)) as checkout:
        path = await checkout.link()
        for _ in range(PER_PHONE * DAILY_FACTOR + 1):
            await checkout.waiting(path, phone=PHONE)
    async with open_checkout(replace(sqlite_settings, phone_prompts=0, link_prompts=20)) as checkout:
        path = await checkout.link()
        answers = [await checkout.pay(path, phone=PHONE) for _ in range(21)]
        assert statuses(answers) == {303: 20, 429: 1}


async def test_codes_of_one_link_are_limited_whatever_the_address(proxied: CheckoutFixture) -> None:
    before = refused_by("otp-link")
    path = await proxied.link()
    form = (await proxied.get(path)).form("coris") | {"do": "code"}
    answers = [
        await proxied.post(path, form | {"phone_number": f"0197{n:06}"}, X_Forwarded_For=f"198.51.100.{n}")
        for n in range(1, OTP_CODES_PER_LINK.requests + 4)
    ]
    assert statuses(answers) == {200: OTP_CODES_PER_LINK.requests, 429: 3}
    assert refused_by("otp-link") - before == 3
    assert (await ask(proxied, await proxied.link(), PHONE)).status == 200


async def test_codes_to_one_telephone_are_limited_however_it_is_written(proxied: CheckoutFixture) -> None:
    path = await proxied.link()
    form = (await proxied.get(path)).form("coris") | {"do": "code"}
    answers = [
        await proxied.post(path, form | {"phone_number": phone}, X_Forwarded_For=f"198.51.100.{n}")
        for n, phone in enumerate(WAYS_TO_WRITE, start=1)
    ]
    assert statuses(answers) == {200: OTP_CODES_PER_PHONE.requests, 429: len(WAYS_TO_WRITE) - 3}
    assert OTP_CODES_PER_PHONE_A_DAY.requests > OTP_CODES_PER_PHONE.requests


async def test_tries_in_the_test_environment_use_up_nothing(any_checkout: CheckoutFixture) -> None:
    """A merchant must not be able to lock somebody's number by tests; and tests follow the same rule by themselves."""
    checkout = any_checkout
    ctx = checkout.ctx
    merchant = require(await merchants.get(ctx.db, checkout.merchant_id))
    caller = Caller(merchant, "test")
    wanted = requested_link(ctx.clock, ctx.settings, caller, b'{"amount": 5000, "description": "x"}')
    test_path = f"/pay/{(await create_link(ctx.db, caller, wanted)).link.path}"
    number = "0197000002"  # Of the test environment: never confirmed.
    statuses = [(await checkout.pay(test_path, phone=number)).status for _ in range(PER_PHONE + 1)]
    assert statuses == [303] * PER_PHONE + [429]
    path = await checkout.link()
    statuses = [(await checkout.pay(path, phone=number)).status for _ in range(PER_PHONE + 1)]
    assert statuses == [303] * PER_PHONE + [429]
    assert len(checkout.operator.charges) == PER_PHONE, "no test reached a provider"
