"""From the form to the receipt: the payment of a link is an ordinary payment, and its page shows its state."""

import asyncio
import re
from urllib.parse import urlsplit

import pytest

from guichet.application import application
from guichet.domain.money import french
from tests.checkout.checkout_fixture import CheckoutFixture
from tests.fakes.passing_time import pass_seconds
from tests.patience import PATIENCE
from tests.service_fixture import serving


async def test_the_page_waits_then_shows_a_receipt(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    await checkout.api("PUT", "/webhooks/endpoint", json={"url": "https://merchant.example.com/hook"})
    path = await checkout.link(5000, "Trois pagnes wax")
    page = await checkout.get(waiting := await checkout.waiting(path))
    assert page.status == 200
    assert "Validez le paiement sur votre téléphone" in page.text
    assert re.search(r'<noscript><meta http-equiv="refresh" content="\d+"></noscript>', page.text)
    assert "0197000045" not in page.text.replace("\u00a0", "")
    payment = (await checkout.api("GET", "/payments"))[0]
    assert payment["status"] == "pending"
    checkout.operator.approve(payment["reference"])
    checkout.pass_time(6)
    receipt = await checkout.get(waiting)
    for text in ("Paiement réussi", "Boutique Kora", "Trois pagnes wax", payment["reference"], payment["identifier"]):
        assert text in receipt.text
    # Whole francs leave a phone: 5 000 + 87,50 is 5 088, and the lines add up.
    for amount in (5000_00, 88_00, 5088_00):
        assert french(amount, "XOF") in receipt.text
    payment = (await checkout.api("GET", "/payments"))[0]
    assert (payment["status"], payment["amount"], payment["total_amount"]) == ("succeeded", 5000, 5087.5)
    assert payment["description"] == "Trois pagnes wax"
    assert (await checkout.api("GET", "/payment-links"))[0]["uses_count"] == 1
    assert [entry["event"] for entry in await checkout.api("GET", "/webhooks/deliveries")] == ["payment.succeeded"]
    assert (await checkout.api("GET", "/balance"))["balance"] == 5000


async def test_a_refusal_is_shown_with_its_reason_and_frees_its_use_of_the_link(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=1)
    waiting = await checkout.waiting(path)
    busy = await checkout.get(path)
    assert busy.status == 409
    assert "Un paiement est en cours sur ce code" in busy.text
    checkout.operator.refuse(checkout.operator.last.payment.reference, "insufficient_funds")
    checkout.pass_time(6)
    page = await checkout.get(waiting)
    assert "Votre solde ne suffit pas" in page.text
    assert "Rien n’a été débité" in page.text
    assert (await checkout.get(path)).status == 200
    second = await checkout.waiting(path)
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    assert "Paiement réussi" in (await checkout.get(second)).text
    used = await checkout.get(path)
    assert used.status == 410
    assert "déjà été utilisé" in used.text


@pytest.mark.parametrize("uses", [3])
async def test_fifty_customers_share_three_uses(any_checkout: CheckoutFixture, uses: int) -> None:
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=uses)
    forms = [(await checkout.get(path)).form("mtn") for _ in range(50)]
    checkout.operator.slowness = 0.05
    answers = await asyncio.gather(
        *(checkout.post(path, form | {"phone_number": f"0197{n:06}"}) for n, form in enumerate(forms, start=100))
    )
    started = [answer for answer in answers if answer.status == 303]
    refused = [answer for answer in answers if answer.status == 409]
    assert len(started) == uses
    assert len(refused) == 50 - uses
    assert all("ce formulaire n’a rien débité" in answer.text for answer in refused)
    assert len(checkout.operator.charges) == uses
    assert len(await checkout.api("GET", "/payments")) == uses
    # One fails: exactly one more customer gets in.
    checkout.operator.slowness = 0
    checkout.operator.refuse(next(iter(checkout.operator.charges)))
    checkout.pass_time(6)
    for answer in started:
        await checkout.get(answer.headers["Location"])
    late = await asyncio.gather(
        *(checkout.post(path, form | {"phone_number": f"0196{n:06}"}) for n, form in enumerate(forms, start=100))
    )
    fresh = {a.headers["Location"] for a in late if a.status == 303} - {a.headers["Location"] for a in started}
    assert len(fresh) == 1
    assert len(checkout.operator.charges) == uses + 1
    assert (await checkout.api("GET", "/payment-links"))[0]["uses_count"] == 0


async def test_a_double_click_charges_once(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link()
    form = (await checkout.get(path)).form("mtn") | {"phone_number": "0197000045"}
    checkout.operator.slowness = 0.1
    answers = await asyncio.gather(*(checkout.post(path, form) for _ in range(20)))
    assert {answer.status for answer in answers} == {303}
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert len(checkout.operator.charges) == 1
    assert len(await checkout.api("GET", "/payments")) == 1


async def test_losing_the_last_use_while_typing_is_explained(checkout: CheckoutFixture) -> None:
    path = await checkout.link(type="limité", max_uses=1)
    typed = (await checkout.get(path)).form("moov") | {"phone_number": "0195000000"}
    waiting = await checkout.waiting(path)
    late = await checkout.post(path, typed)
    assert late.status == 409
    assert "Un paiement vient de commencer sur ce code" in late.text
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await checkout.get(waiting)
    later = await checkout.post(path, typed)
    assert later.status == 409
    assert "Ce code vient d’être payé" in later.text
    # Who paid and sends the form again sees the receipt, not a closed door.
    assert (await checkout.get(waiting)).status == 200


async def test_reloading_or_resending_after_the_end_shows_the_result(checkout: CheckoutFixture) -> None:
    path = await checkout.link(type="limité", max_uses=1)
    form = (await checkout.get(path)).form("mtn") | {"phone_number": "0197000045"}
    waiting = (await checkout.post(path, form)).headers["Location"]
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await checkout.get(waiting)
    again = await checkout.post(path, form)
    assert again.headers["Location"] == waiting
    assert "Paiement réussi" in (await checkout.get(waiting)).text
    assert len(checkout.operator.charges) == 1


async def test_the_status_for_the_script_is_small(checkout: CheckoutFixture) -> None:
    waiting = await checkout.waiting(await checkout.link())
    page = await checkout.get(waiting)
    state_path = re.search(r'data-wait="([^"]+)" data-stage="pending"', page.text)
    assert state_path is not None
    state = await checkout.get(state_path[1])
    assert state.text == '{"stage":"pending"}'
    script = re.search(r'<script src="([^"]+)" defer></script>', page.text)
    assert script is not None
    asset = await checkout.get(script[1], Accept_Encoding="br")
    assert asset.wire_size < 1024
    assert "immutable" in asset.headers["Cache-Control"]
    checkout.operator.refuse(checkout.operator.last.payment.reference)
    assert (await checkout.get(state_path[1])).text == '{"stage":"pending"}'  # It was polled a moment ago.
    checkout.pass_time(6)
    assert (await checkout.get(state_path[1])).text == '{"stage":"failed"}'


async def test_a_slow_provider_does_not_delay_the_page(checkout: CheckoutFixture) -> None:
    waiting = await checkout.waiting(await checkout.link())
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.operator.slowness = 3
    assert "Validez le paiement" in (await checkout.get(waiting)).text
    async with asyncio.timeout(PATIENCE):
        while "Paiement réussi" not in (await checkout.get(waiting)).text:
            await asyncio.sleep(0.2)


async def test_a_page_waits_twenty_seconds_at_most_for_a_slow_initiation(checkout: CheckoutFixture) -> None:
    """The customer sees that the payment waits, and its outcome once the provider answered."""
    checkout.operator.initiation_timeout = 75
    checkout.operator.slowness = 30
    paying = asyncio.create_task(checkout.waiting(await checkout.link()))
    while not checkout.ctx.slow_initiations:
        await asyncio.sleep(0.01)
    await pass_seconds(20)
    waiting = await paying
    assert "Validez le paiement" in (await checkout.get(waiting)).text
    await pass_seconds(10)
    while checkout.ctx.slow_initiations:
        await asyncio.wait(checkout.ctx.slow_initiations)
    checkout.operator.slowness = 0
    checkout.operator.approve(checkout.operator.last.payment.reference)
    assert "Paiement réussi" in (await checkout.get(waiting)).text


async def test_pages_ask_a_provider_once_in_five_seconds_whichever_process_serves_them(
    checkout: CheckoutFixture,
) -> None:
    waiting = await checkout.waiting(await checkout.link())
    reference = checkout.operator.last.payment.reference
    await checkout.api("GET", f"/payments/{reference}")
    async with serving(application(checkout.service, None)) as other:
        for page in (checkout.url, other) * 3:
            async with checkout.http.get(page + waiting) as answer:
                assert answer.status == 200
    assert checkout.operator.questions == 1
    checkout.pass_time(5)
    await checkout.get(waiting)
    assert checkout.operator.questions == 2


async def test_the_page_links_to_the_page_of_the_provider(checkout: CheckoutFixture) -> None:
    waiting = await checkout.waiting(await checkout.link(), operator="wave_sn", phone="771234567")
    page = await checkout.get(waiting)
    assert "Terminez le paiement chez Wave" in page.text
    assert 'rel="noreferrer">Continuer avec Wave' in page.text
    assert urlsplit(checkout.operator.last.return_url or "").path == urlsplit(waiting).path


async def test_a_long_wait_warns_against_paying_again(checkout: CheckoutFixture) -> None:
    waiting = await checkout.waiting(await checkout.link())
    assert "deuxième fois" not in (await checkout.get(waiting)).text
    checkout.pass_time(120)
    page = await checkout.get(waiting)
    assert "Ne payez pas une deuxième fois" in page.text


async def test_a_refunded_payment_is_shown_as_refunded(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    waiting = await checkout.waiting(await checkout.link())
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await checkout.get(waiting)
    await checkout.api("POST", f"/payments/{checkout.operator.last.payment.reference}/refund", json={})
    await checkout.work()
    assert "Paiement remboursé" in (await checkout.get(waiting)).text


async def test_development_links_to_the_simulated_phone(checkout: CheckoutFixture) -> None:
    page = await checkout.get(await checkout.waiting(await checkout.link()))
    assert 'href="/simulator/phone"' in page.text
