"""The card page of the test environment: two choices, once (docs/contract.md, "The test environment")."""

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.checkout.checkout_fixture import CheckoutFixture


@pytest.mark.parametrize(("choice", "status"), [("succeeded", "succeeded"), ("failed", "failed")])
async def test_the_choice_redirects_to_the_merchant(any_checkout: CheckoutFixture, choice: str, status: str) -> None:
    checkout = any_checkout
    path = await checkout.card(return_url="https://shop.example.com/done?order=42&x=a%20b#end")
    page = await checkout.get(path)
    assert page.status == 200
    assert "Environnement de test" in page.text
    for text in ("Paiement réussi", "Paiement refusé", "Boutique Kora"):
        assert text in page.text
    assert "form-action 'self' https:;" in page.headers["Content-Security-Policy"]
    answer = await checkout.post(path, {"outcome": choice})
    assert answer.status == 303
    payment = (await checkout.api("GET", "/payments", checkout.test))[0]
    where = urlsplit(answer.headers["Location"])
    assert (where.netloc, where.path, where.fragment) == ("shop.example.com", "/done", "end")
    assert where.query.startswith("order=42&x=a%20b&")
    assert parse_qs(where.query) == {
        "order": ["42"],
        "x": ["a b"],
        "reference": [payment["reference"]],
        "status": [status],
    }
    assert payment["status"] == status


async def test_without_a_return_url_the_page_shows_the_result(checkout: CheckoutFixture) -> None:
    path = await checkout.card()
    answer = await checkout.post(path, {"outcome": "failed"})
    assert answer.headers["Location"] == path
    page = await checkout.get(path)
    assert page.status == 200
    assert "pas abouti" in page.text
    assert "Environnement de test" in page.text


async def test_a_final_payment_ignores_later_choices(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.card(return_url="https://shop.example.com/")
    await checkout.api("PUT", "/webhooks/endpoint", checkout.test, json={"url": "https://merchant.example.com/hook"})
    answers = await asyncio.gather(
        *(checkout.post(path, {"outcome": choice}) for choice in ("succeeded", "failed", "succeeded", "failed"))
    )
    assert len({answer.headers["Location"] for answer in answers}) == 1
    payment = (await checkout.api("GET", "/payments", checkout.test))[0]
    other = "failed" if payment["status"] == "succeeded" else "succeeded"
    again = await checkout.post(path, {"outcome": other})
    assert again.headers["Location"] == answers[0].headers["Location"]
    page = await checkout.get(path)
    assert "Retourner chez Boutique Kora" in page.text
    assert not page.forms()
    assert (await checkout.api("GET", "/payments", checkout.test))[0] == payment
    assert len(await checkout.api("GET", "/webhooks/deliveries", checkout.test)) == 1


async def test_an_unknown_choice_decides_nothing(checkout: CheckoutFixture) -> None:
    path = await checkout.card()
    for form in ({}, {"outcome": ""}, {"outcome": "refunded"}, {"choice": "succeeded"}):
        assert (await checkout.post(path, form)).status == 422
    assert (await checkout.api("GET", "/payments", checkout.test))[0]["status"] == "pending"


async def test_a_choice_from_another_site_is_refused(checkout: CheckoutFixture) -> None:
    path = await checkout.card()
    answer = await checkout.post(path, {"outcome": "succeeded"}, Sec_Fetch_Site="cross-site")
    assert answer.status == 403
    assert (await checkout.api("GET", "/payments", checkout.test))[0]["status"] == "pending"


async def test_markup_in_a_name_is_escaped(checkout: CheckoutFixture) -> None:
    page = await checkout.get(await checkout.card(description="</dd><script>alert(1)</script>\u202e"))
    assert "<script>alert" not in page.text
    assert ("\u202e" in page.text, "\\u202e" in page.text) == (False, True)
