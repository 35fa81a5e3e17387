"""The search of the staff across merchants, one payment with its provider's side, and that each read is logged."""

import re
from urllib.parse import urlsplit

import pytest

from guichet.db.engine import require
from guichet.domain.payments import Payment
from guichet.payments import repository
from guichet.providers.base import Refused
from tests.console.admin.operations import Operations, act
from tests.console.links_payer import pay
from tests.fakes.scripted_provider import done
from tests.payments.conftest import stored
from tests.payments.test_refunds import refund_of
from tests.service_fixture import MerchantClient


async def _paid(operations: Operations) -> Payment:
    live = operations.live
    live.first.script("status", done)
    paid = await live.merchant.pay(external_id="commande 7")
    await live.service.run_worker(60)
    return await stored(live, paid)


async def test_a_payment_is_found_by_each_of_its_names(operations: Operations) -> None:
    payment = await _paid(operations)
    refund = await refund_of(operations.live, {"reference": payment.reference})
    other = await operations.live.service.merchant()
    await other.pay("5678", external_id="commande 7")
    support = await operations.staff(role="support")
    link = f'href="/admin/payments/{payment.id}"'
    phone = f"+{payment.phone_number}"
    names = (payment.reference, payment.reference.upper(), refund["reference"], phone, payment.provider_reference)
    for name in names:
        page = await act(support, "/admin/payments", q=f" {name} ")
        assert (page.status, page.text.count('href="/admin/payments/')) == (200, 1), name
        assert link in page.text, name
    page = await act(support, "/admin/payments", q="commande 7")
    assert page.text.count('href="/admin/payments/') == 2, "of both merchants"
    for nonsense in ("", "co", "ommande", "%", "'", "\0", "0" * 300, "99999999999999999999"):
        page = await act(support, "/admin/payments", q=nonsense)
        assert (page.status, link in page.text) == (200, False), nonsense
    searched = await operations.acts("payment.searched")
    assert len(searched) == len(names) + 1 + 7
    assert {each[1] for each in searched} == {"awa@example.com"}
    assert searched[0][2:] == (payment.reference, {"count": 1, "payments": [payment.reference]})
    assert not any("commande" in each[2] or "229" in each[2] for each in searched), "what was typed stays out"


async def test_a_payment_is_found_by_the_order_of_its_checkout_session(operations: Operations) -> None:
    other = await operations.live.service.merchant()
    for merchant in (operations.live.merchant, other):
        order = {"amount": 5000, "description": "Robe", "external_id": "commande/42"}
        client = MerchantClient(merchant.service, merchant.id, merchant.keys)
        session = (await client.post("/checkout-sessions", order)).data
        await pay(operations.console.browser(), urlsplit(session["url"]).path, "0197000002")
    support = await operations.staff(role="support")
    page = await act(support, "/admin/payments", q="commande/42")
    assert page.text.count('href="/admin/payments/') == 2
    page = await act(support, "/admin/payments", q="commande/4")
    assert page.text.count('href="/admin/payments/') == 2, "by its beginning"
    assert 'href="/admin/payments/' not in (await act(support, "/admin/payments", q="commande/43")).text


async def test_many_beginnings_do_not_hide_the_order_itself(operations: Operations) -> None:
    first, second = operations.live.merchant, await operations.live.service.merchant()
    for number in range(60):
        await first.pay(external_id=f"commande-1{number}")
    wanted = await second.pay(external_id="commande-1")
    support = await operations.staff(role="support")
    page = await act(support, "/admin/payments", q="commande-1")
    assert page.text.count('href="/admin/payments/') == 50
    payment = require(await repository.find(operations.live.ctx.db, wanted["reference"]))
    assert f'href="/admin/payments/{payment.id}"' in page.text


async def test_a_search_that_shows_many_is_logged_with_all_of_them(sqlite_operations: Operations) -> None:
    payment = await _paid(sqlite_operations)
    shown = [(await sqlite_operations.live.service.merchant(f"M{number}")) for number in range(7)]
    references = {(await each.pay("5678", external_id="commande 7"))["reference"] for each in shown}
    finance = await sqlite_operations.staff()
    await act(finance, "/admin/payments", q="commande 7")
    ((_, _, subject, after),) = await sqlite_operations.acts("payment.searched")
    assert (subject, after["count"]) == ("several", 8)
    assert set(after["payments"]) == references | {payment.reference}


async def test_one_payment_shows_its_providers_side_and_is_logged(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    payment = await _paid(operations)
    auditor = await operations.staff(role="auditor")
    page = await auditor.get(f"/admin/payments/{payment.id}")
    for shown in (payment.reference, payment.provider_reference, "first", payment.phone_number, "commande 7"):
        assert str(shown) in page.text
    viewed = await operations.acts("payment.viewed")
    assert [each[1:3] for each in viewed] == [("awa@example.com", payment.reference)]
    await auditor.get(f"/admin/incidents/{payment.reference}")
    assert len(await operations.acts("payment.viewed")) == 2
    page = await auditor.get(f"/admin/payments/{payment.id}")
    story = re.sub(r"<[^>]+>|\s+", " ", page.text.partition("Ce qui s’est passé")[2])
    for told in ("Paiement réussi", "float:first::XOF → wallet", "Action : Paiement consulté", "Qui : awa@example.com"):
        assert told in re.sub(" +", " ", story), told
    support = await operations.staff("ada@example.com", "support")
    page = await support.get(f"/admin/payments/{payment.id}")
    assert payment.reference in page.text
    assert "Paiement consulté" not in page.text, "support may not read the audit log"


async def test_what_failed_says_why_in_the_words_of_the_reader(sqlite_operations: Operations) -> None:
    operations, live = sqlite_operations, sqlite_operations.live
    live.first.script("status", Refused("insufficient_funds"))
    payment = await stored(live, await live.merchant.pay())
    await live.service.run_worker(60)
    support = await operations.staff(role="support")
    page = await support.get(f"/admin/payments/{payment.id}")
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text))
    for told in (
        "Motif de l’échec solde insuffisant",
        f"Téléphone +{payment.phone_number}",
        "Motif : solde insuffisant",
        "Ce que le marchand lit : Le solde du client ne suffisait pas.",
    ):
        assert told in shown, told
    assert '<span lang="en">' not in page.text


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'])
async def test_what_others_wrote_is_text(sqlite_operations: Operations, text: str) -> None:
    live = sqlite_operations.live
    payment = await stored(live, await live.merchant.pay(external_id=text, description=text))
    support = await sqlite_operations.staff(role="support")
    for page in (await support.get(f"/admin/payments/{payment.id}"), await act(support, "/admin/payments", q=text)):
        assert page.status == 200
        assert text not in page.text
        assert "&lt;" in page.text
