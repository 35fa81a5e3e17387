"""The customer who scans the same code again is led back to the payment, and can give another number when the first
request can be confirmed no more."""

import asyncio
import json
from collections import Counter
from http.cookies import SimpleCookie
from typing import Any

import pytest
from sqlalchemy import select

from guichet.checkout.tokens import COOKIE_LASTS
from guichet.clock import SECOND
from guichet.db.tables import payments as payment_table
from guichet.domain.payments import Payment
from tests.checkout.checkout_fixture import Answer, CheckoutFixture
from tests.checkout.test_automatic_refunds import ONE_USE, open_incidents, refunds, statuses, succeed
from tests.checkout.test_link_reservations import check_uses
from tests.invariants import check_books

#: Seconds for which a prompt of the fake provider can be confirmed.
PROMPT = 5 * 60


def cookie_of(answer: Answer) -> SimpleCookie:
    return SimpleCookie(answer.headers["Set-Cookie"])


def carried(answer: Answer) -> dict[str, str]:
    """The header of a browser that keeps what `answer` set."""
    return {"Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in cookie_of(answer).items())}


async def stored(checkout: CheckoutFixture) -> list[Payment]:
    return [Payment(*row) for row in await checkout.ctx.db.all(select(payment_table).order_by(payment_table.c.id))]


async def stage(checkout: CheckoutFixture, waiting: str) -> str:
    """What the script of the page is told."""
    found: str = json.loads((await checkout.get(f"{waiting}/status")).text)["stage"]
    return found


async def other(checkout: CheckoutFixture, waiting: str, phone: str, **headers: str) -> Answer:
    """Gives another number from the waiting page."""
    form = (await checkout.get(f"{waiting}/other")).form("mtn")
    return await checkout.post(f"{waiting}/other", form | {"phone_number": phone}, **headers)


@pytest.mark.parametrize("link", [ONE_USE, {}], ids=["one use", "permanent"])
async def test_a_customer_who_scans_again_is_led_back(any_checkout: CheckoutFixture, link: dict[str, Any]) -> None:
    checkout = any_checkout
    path = await checkout.link(**link)
    begun = await checkout.pay(path, phone="0197000002")
    waiting, browser = begun.headers["Location"], carried(begun)
    again = await checkout.get(path, **browser)
    assert (again.status, again.headers["Location"]) == (303, waiting)
    assert (await checkout.get(f"{path}?lang=en", **browser)).headers["Location"] == f"{waiting}?lang=en"
    stranger = await checkout.get(path)
    if link:
        assert (stranger.status, "Un paiement est en cours sur ce code" in stranger.text) == (409, True)
        assert "Rien n’a été débité" not in stranger.text
    else:
        # A form that was open in another tab starts no second payment either.
        answer = await checkout.post(path, stranger.form("mtn") | {"phone_number": "0197000003"}, **browser)
        assert (answer.status, answer.headers["Location"]) == (303, waiting)
    assert await statuses(checkout) == ["pending"]
    await succeed(checkout, *checkout.operator.charges)
    assert (await checkout.get(path, **browser)).status == (410 if link else 200), "an hour later"


async def test_whoever_used_the_link_up_sees_the_receipt(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(**ONE_USE)
    begun = await checkout.pay(path)
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await checkout.work()
    again = await checkout.get(path, **carried(begun))
    assert again.headers["Location"] == begun.headers["Location"]
    assert "Paiement réussi" in (await checkout.get(again.headers["Location"])).text
    assert (await checkout.get(path)).status == 410


async def test_after_a_refusal_the_form_is_open_again(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(**ONE_USE)
    begun = await checkout.pay(path)
    checkout.operator.refuse(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await checkout.work()
    assert (await checkout.get(path, **carried(begun))).status == 200


async def test_the_cookie_is_signed_short_and_names_nobody(checkout: CheckoutFixture) -> None:
    path, elsewhere = await checkout.link(**ONE_USE), await checkout.link()
    begun = await checkout.pay(path, phone="0197000002")
    ((name, morsel),) = cookie_of(begun).items()
    assert (name, morsel["max-age"], morsel["path"]) == ("guichet-payment", str(20 * 60), "/")
    assert (morsel["samesite"], bool(morsel["httponly"])) == ("lax", True)
    assert "97000002" not in morsel.value
    nonce, issued, signature = morsel.value.split(".")
    other_signature = ("A" if signature[0] != "A" else "B") + signature[1:]
    for forged in (f"{nonce}.{issued}.{other_signature}", f"{'x' * 22}.{issued}.{signature}", nonce, "", "é"):
        assert (await checkout.get(path, Cookie=f"{name}={forged}")).status == 409, forged
    assert (await checkout.get(elsewhere, **carried(begun))).status == 200, "it is of one link"
    checkout.pass_time(COOKIE_LASTS // SECOND)
    assert (await checkout.get(path, **carried(begun))).status == 303
    checkout.pass_time(1)
    assert (await checkout.get(path, **carried(begun))).status == 200


async def test_another_number_is_given_when_the_prompt_is_over(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(**ONE_USE)
    waiting = await checkout.waiting(path, phone="0197000002")
    checkout.pass_time(PROMPT - 1)
    assert "/other" not in (await checkout.get(waiting)).text
    early = await checkout.get(f"{waiting}/other")
    assert (early.status, early.headers["Location"]) == (303, waiting)
    assert await stage(checkout, waiting) == "pending"
    checkout.pass_time(1)
    page = await checkout.get(waiting)
    assert f'href="{waiting}/other"' in page.text
    assert "vous est rendu automatiquement" in page.text
    assert await stage(checkout, waiting) == "overdue"
    assert (await checkout.get(path)).status == 409, "of others the place is kept as before"
    answer = await other(checkout, waiting, "0197000003")
    assert answer.status == 303
    second = answer.headers["Location"]
    first_payment, second_payment = await stored(checkout)
    assert (second_payment.attempt_of, second_payment.phone_number) == (first_payment.id, "2290197000003")
    assert (await checkout.get(path, **carried(answer))).headers["Location"] == second
    # Nor is a third one begun meanwhile, from either page.
    for page_path in (waiting, second):
        assert (await checkout.get(f"{page_path}/other")).headers["Location"] == second
    await check_uses(checkout)
    await succeed(checkout, second_payment.reference)
    await succeed(checkout, first_payment.reference)
    assert await statuses(checkout) == ["refunded", "succeeded"]
    (refund,) = await refunds(checkout)
    assert refund.automatic == "attempt_paid"
    assert await open_incidents(checkout) == [("automatic_refund", "incident_detail.second_attempt_paid")]
    await check_uses_after_refund(checkout)


async def check_uses_after_refund(checkout: CheckoutFixture) -> None:
    """A payment that was refunded stays a use of its link."""
    (link,) = await checkout.api("GET", "/payment-links")
    assert (link["uses_count"], link["uses_left"]) == (2, 0)
    await check_books(checkout.ctx.db)


@pytest.mark.parametrize("first_wins", [True, False])
async def test_on_a_permanent_link_one_of_the_attempts_is_kept(any_checkout: CheckoutFixture, first_wins: bool) -> None:
    checkout = any_checkout
    path = await checkout.link()
    waiting = await checkout.waiting(path, phone="0197000002")
    checkout.pass_time(PROMPT)
    second = (await other(checkout, waiting, "0197000003")).headers["Location"]
    checkout.pass_time(PROMPT)
    third = (await other(checkout, second, "0197000004")).headers["Location"]
    # Somebody else pays through the same link, and another customer twice on purpose.
    await checkout.waiting(path, phone="0197000005")
    await checkout.waiting(path, phone="0197000005")
    one, two, three, *others = list(checkout.operator.charges)
    assert {each.attempt_of for each in (await stored(checkout))[:3]} == {(await stored(checkout))[0].id}
    await succeed(checkout, *others)
    for reference in (one, three) if first_wins else (three, one):
        await succeed(checkout, reference)
    assert await statuses(checkout) == [
        "succeeded" if first_wins else "refunded",
        "pending",
        "refunded" if first_wins else "succeeded",
        "succeeded",
        "succeeded",
    ]
    await succeed(checkout, two)
    assert [each.payment_reference for each in await refunds(checkout)] == [three if first_wins else one, two]
    # Who looks at its page again sees what happened to it.
    assert "Paiement remboursé" in (await checkout.get(third if first_wins else waiting)).text
    await check_books(checkout.ctx.db)


async def test_after_a_success_there_is_no_other_attempt(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link()
    waiting = await checkout.waiting(path, phone="0197000002")
    checkout.pass_time(PROMPT)
    form = (await checkout.get(f"{waiting}/other")).form("mtn")
    await succeed(checkout, checkout.operator.last.payment.reference)
    for answer in (
        await checkout.get(f"{waiting}/other"),
        await checkout.post(f"{waiting}/other", form | {"phone_number": "0197000003"}),
    ):
        assert (answer.status, answer.headers["Location"]) == (303, waiting)
    assert await statuses(checkout) == ["succeeded"]


async def test_the_retry_of_a_failed_attempt_is_one_more_attempt(any_checkout: CheckoutFixture) -> None:
    """The first may still succeed."""
    checkout = any_checkout
    path = await checkout.link()
    waiting = await checkout.waiting(path, phone="0197000002")
    checkout.pass_time(PROMPT)
    answer = await other(checkout, waiting, "0197000003")
    second = answer.headers["Location"]
    checkout.operator.refuse(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    assert f'href="{second}/other"' in (await checkout.get(second)).text
    assert (await checkout.get(path, **carried(answer))).headers["Location"] == second
    await other(checkout, second, "0197000004")
    await succeed(checkout, checkout.operator.last.payment.reference)
    await succeed(checkout, next(iter(checkout.operator.charges)))
    assert await statuses(checkout) == ["refunded", "failed", "succeeded"]


@pytest.mark.both_databases
async def test_of_many_that_begin_at_once_one_does(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(**ONE_USE)
    waiting = await checkout.waiting(path, phone="0197000002")
    reference = checkout.operator.last.payment.reference
    checkout.pass_time(PROMPT)
    forms = [(await checkout.get(f"{waiting}/other")).form("mtn") for _ in range(8)]
    checkout.operator.approve(reference)
    phones = [f"01970001{n:02}" for n in range(8)]
    answers = await asyncio.gather(
        *(
            checkout.post(f"{waiting}/other", form | {"phone_number": phone})
            for form, phone in zip(forms, phones, strict=True)
        ),
        checkout.get(waiting),
    )
    assert {answer.status for answer in answers} <= {200, 303}
    assert len(await stored(checkout)) <= 2
    await check_uses(checkout)
    await succeed(checkout, *checkout.operator.charges)
    assert Counter(await statuses(checkout))["succeeded"] == 1
    await check_books(checkout.ctx.db)


async def test_pages_of_a_provider_have_a_life_of_their_own(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    waiting = await checkout.waiting(path, operator="wave_ci", phone="0701020304")
    checkout.pass_time(PROMPT)
    assert "Continuer avec Wave" in (await checkout.get(waiting)).text
    checkout.pass_time(checkout.operator.page_lasts // SECOND - PROMPT)
    page = (await checkout.get(waiting)).text
    assert ("Continuer avec Wave" in page, f"{waiting}/other" in page) == (False, True)


async def test_whoever_pays_one_time_too_many_reads_that_it_goes_back(checkout: CheckoutFixture) -> None:
    path = await checkout.link(**ONE_USE)
    first = await checkout.waiting(path, phone="0197000002")
    checkout.pass_time(PROMPT)
    second = (await other(checkout, first, "0197000003")).headers["Location"]
    await succeed(checkout, next(iter(checkout.operator.charges)))
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(60)
    page = await checkout.get(second)
    assert "Paiement en trop" in page.text
    assert page.wire_size < 8 * 1024
    await checkout.work()
    assert "Paiement remboursé" in (await checkout.get(second)).text
