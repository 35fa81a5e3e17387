"""From the form to the receipt: the payment of a link is a payment like any other, and its page tells the truth."""

import asyncio
import re
from urllib.parse import urlsplit

import pytest

from guichet.domain.money import french
from tests.checkout.checkout_fixture import Shop


async def test_waiting_then_a_receipt(any_shop: Shop) -> None:
    shop = any_shop
    await shop.api("PUT", "/webhooks/endpoint", json={"url": "https://merchant.example.com/hook"})
    path = await shop.link(5000, "Trois pagnes wax")
    page = await shop.get(waiting := await shop.waiting(path))
    assert page.status == 200
    assert "Validez le paiement sur votre téléphone" in page.text
    assert re.search(r'<noscript><meta http-equiv="refresh" content="\d+"></noscript>', page.text)
    assert "0197000045" not in page.text.replace("\u00a0", "")
    payment = (await shop.api("GET", "/payments"))[0]
    assert payment["status"] == "pending"
    shop.operator.approve(payment["reference"])
    shop.pass_time(6)
    receipt = await shop.get(waiting)
    for text in ("Paiement réussi", "Boutique Kora", "Trois pagnes wax", payment["reference"], payment["identifier"]):
        assert text in receipt.text
    # Whole francs leave a phone: 5 000 + 87,50 is 5 088, and the lines add up.
    for amount in (5000_00, 88_00, 5088_00):
        assert french(amount, "XOF") in receipt.text
    payment = (await shop.api("GET", "/payments"))[0]
    assert (payment["status"], payment["amount"], payment["total_amount"]) == ("succeeded", 5000, 5087.5)
    assert payment["description"] == "Trois pagnes wax"
    assert (await shop.api("GET", "/payment-links"))[0]["uses_count"] == 1
    assert [entry["event"] for entry in await shop.api("GET", "/webhooks/deliveries")] == ["payment.succeeded"]
    assert (await shop.api("GET", "/balance"))["balance"] == 5000


async def test_a_refusal_is_told_with_its_reason_and_gives_the_use_back(any_shop: Shop) -> None:
    shop = any_shop
    path = await shop.link(type="limité", max_uses=1)
    waiting = await shop.waiting(path)
    busy = await shop.get(path)
    assert busy.status == 409
    assert "en train de payer" in busy.text
    shop.operator.refuse(shop.operator.last.reference, "insufficient_funds")
    shop.pass_time(6)
    page = await shop.get(waiting)
    assert "Votre solde ne suffit pas" in page.text
    assert "Rien n’a été débité" in page.text
    assert (await shop.get(path)).status == 200
    second = await shop.waiting(path)
    shop.operator.approve(shop.operator.last.reference)
    shop.pass_time(6)
    assert "Paiement réussi" in (await shop.get(second)).text
    used = await shop.get(path)
    assert used.status == 410
    assert "déjà été utilisé" in used.text


@pytest.mark.parametrize("uses", [3])
async def test_fifty_customers_and_three_uses(any_shop: Shop, uses: int) -> None:
    shop = any_shop
    path = await shop.link(type="limité", max_uses=uses)
    forms = [(await shop.get(path)).form("mtn") for _ in range(50)]
    shop.operator.slowness = 0.05
    answers = await asyncio.gather(
        *(shop.post(path, form | {"phone_number": f"0197{n:06}"}) for n, form in enumerate(forms, start=100))
    )
    started = [answer for answer in answers if answer.status == 303]
    refused = [answer for answer in answers if answer.status == 409]
    assert len(started) == uses
    assert len(refused) == 50 - uses
    assert all("Rien n’a été débité" in answer.text for answer in refused)
    assert len(shop.operator.charges) == uses
    assert len(await shop.api("GET", "/payments")) == uses
    # One fails: exactly one more customer gets in.
    shop.operator.slowness = 0
    shop.operator.refuse(next(iter(shop.operator.charges)))
    shop.pass_time(6)
    for answer in started:
        await shop.get(answer.headers["Location"])
    late = await asyncio.gather(
        *(shop.post(path, form | {"phone_number": f"0196{n:06}"}) for n, form in enumerate(forms, start=100))
    )
    fresh = {a.headers["Location"] for a in late if a.status == 303} - {a.headers["Location"] for a in started}
    assert len(fresh) == 1
    assert len(shop.operator.charges) == uses + 1
    assert (await shop.api("GET", "/payment-links"))[0]["uses_count"] == 0


async def test_a_double_click_charges_once(any_shop: Shop) -> None:
    shop = any_shop
    path = await shop.link()
    form = (await shop.get(path)).form("mtn") | {"phone_number": "0197000045"}
    shop.operator.slowness = 0.1
    answers = await asyncio.gather(*(shop.post(path, form) for _ in range(20)))
    assert {answer.status for answer in answers} == {303}
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert len(shop.operator.charges) == 1
    assert len(await shop.api("GET", "/payments")) == 1


async def test_the_last_use_taken_while_typing_has_its_own_words(shop: Shop) -> None:
    path = await shop.link(type="limité", max_uses=1)
    typed = (await shop.get(path)).form("moov") | {"phone_number": "0195000000"}
    waiting = await shop.waiting(path)
    late = await shop.post(path, typed)
    assert late.status == 409
    assert "vient d’être pris" in late.text
    shop.operator.approve(shop.operator.last.reference)
    shop.pass_time(6)
    await shop.get(waiting)
    later = await shop.post(path, typed)
    assert later.status == 409
    assert "juste avant vous" in later.text
    # Who paid and sends the form again sees the receipt, not a closed door.
    assert (await shop.get(waiting)).status == 200


async def test_reloading_or_sending_again_after_the_end_shows_the_outcome(shop: Shop) -> None:
    path = await shop.link(type="limité", max_uses=1)
    form = (await shop.get(path)).form("mtn") | {"phone_number": "0197000045"}
    waiting = (await shop.post(path, form)).headers["Location"]
    shop.operator.approve(shop.operator.last.reference)
    shop.pass_time(6)
    await shop.get(waiting)
    again = await shop.post(path, form)
    assert again.headers["Location"] == waiting
    assert "Paiement réussi" in (await shop.get(waiting)).text
    assert len(shop.operator.charges) == 1


async def test_the_script_is_told_in_a_few_bytes(shop: Shop) -> None:
    waiting = await shop.waiting(await shop.link())
    page = await shop.get(waiting)
    watched = re.search(r'data-wait="([^"]+)" data-stage="pending"', page.text)
    assert watched is not None
    state = await shop.get(watched[1])
    assert state.text == '{"stage":"pending"}'
    script = re.search(r'<script src="([^"]+)" defer></script>', page.text)
    assert script is not None
    asset = await shop.get(script[1], Accept_Encoding="br")
    assert asset.wire_size < 1024
    assert "immutable" in asset.headers["Cache-Control"]
    shop.operator.refuse(shop.operator.last.reference)
    assert (await shop.get(watched[1])).text == '{"stage":"pending"}'  # just asked: not again so soon
    shop.pass_time(6)
    assert (await shop.get(watched[1])).text == '{"stage":"failed"}'


async def test_a_slow_operator_does_not_keep_the_customer_waiting(shop: Shop) -> None:
    waiting = await shop.waiting(await shop.link())
    shop.operator.approve(shop.operator.last.reference)
    shop.operator.slowness = 3
    before = asyncio.get_running_loop().time()
    page = await shop.get(waiting)
    assert asyncio.get_running_loop().time() - before < 2.5
    assert "Validez le paiement" in page.text
    async with asyncio.timeout(5):
        while "Paiement réussi" not in (await shop.get(waiting)).text:
            await asyncio.sleep(0.2)


async def test_an_operator_with_a_page_of_its_own(shop: Shop) -> None:
    waiting = await shop.waiting(await shop.link(), operator="wave_sn", phone="771234567")
    page = await shop.get(waiting)
    assert "Terminez le paiement chez Wave" in page.text
    assert 'rel="noreferrer">Continuer avec Wave' in page.text
    assert urlsplit(shop.operator.last.return_url or "").path == urlsplit(waiting).path


async def test_a_long_wait_says_not_to_pay_again(shop: Shop) -> None:
    waiting = await shop.waiting(await shop.link())
    assert "deuxième fois" not in (await shop.get(waiting)).text
    shop.pass_time(120)
    page = await shop.get(waiting)
    assert "Ne payez pas une deuxième fois" in page.text


async def test_a_refunded_payment_says_so(any_shop: Shop) -> None:
    shop = any_shop
    waiting = await shop.waiting(await shop.link())
    shop.operator.approve(shop.operator.last.reference)
    shop.pass_time(6)
    await shop.get(waiting)
    await shop.api("POST", f"/payments/{shop.operator.last.reference}/refund", json={})
    await shop.work()
    assert "Paiement remboursé" in (await shop.get(waiting)).text


async def test_development_shows_the_way_to_the_simulated_phone(shop: Shop) -> None:
    page = await shop.get(await shop.waiting(await shop.link()))
    assert 'href="/simulator/phone"' in page.text
