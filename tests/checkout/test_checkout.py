"""The card page of the test environment: two choices, once (docs/contract.md, "The test environment")."""

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.checkout.checkout_fixture import Shop


@pytest.mark.parametrize(("choice", "status"), [("succeeded", "succeeded"), ("failed", "failed")])
async def test_a_choice_leads_back_to_the_merchant(any_shop: Shop, choice: str, status: str) -> None:
    shop = any_shop
    path = await shop.card(return_url="https://shop.example.com/done?order=42&x=a%20b#end")
    page = await shop.get(path)
    assert page.status == 200
    assert "Environnement de test" in page.text
    for text in ("Paiement réussi", "Paiement refusé", "Boutique Kora"):
        assert text in page.text
    assert "form-action 'self' https:;" in page.headers["Content-Security-Policy"]
    answer = await shop.post(path, {"outcome": choice})
    assert answer.status == 303
    payment = (await shop.api("GET", "/payments", shop.test))[0]
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


async def test_without_a_return_page_there_is_a_result(shop: Shop) -> None:
    path = await shop.card()
    answer = await shop.post(path, {"outcome": "failed"})
    assert answer.headers["Location"] == path
    page = await shop.get(path)
    assert page.status == 200
    assert "pas abouti" in page.text
    assert "Environnement de test" in page.text


async def test_after_the_end_nothing_changes(any_shop: Shop) -> None:
    shop = any_shop
    path = await shop.card(return_url="https://shop.example.com/")
    await shop.api("PUT", "/webhooks/endpoint", shop.test, json={"url": "https://merchant.example.com/hook"})
    answers = await asyncio.gather(
        *(shop.post(path, {"outcome": choice}) for choice in ("succeeded", "failed", "succeeded", "failed"))
    )
    assert len({answer.headers["Location"] for answer in answers}) == 1
    payment = (await shop.api("GET", "/payments", shop.test))[0]
    other = "failed" if payment["status"] == "succeeded" else "succeeded"
    again = await shop.post(path, {"outcome": other})
    assert again.headers["Location"] == answers[0].headers["Location"]
    page = await shop.get(path)
    assert "Retourner chez Boutique Kora" in page.text
    assert not page.forms()
    assert (await shop.api("GET", "/payments", shop.test))[0] == payment
    assert len(await shop.api("GET", "/webhooks/deliveries", shop.test)) == 1


async def test_no_choice_is_no_choice(shop: Shop) -> None:
    path = await shop.card()
    for form in ({}, {"outcome": ""}, {"outcome": "refunded"}, {"choice": "succeeded"}):
        assert (await shop.post(path, form)).status == 422
    assert (await shop.api("GET", "/payments", shop.test))[0]["status"] == "pending"


async def test_another_site_cannot_choose(shop: Shop) -> None:
    path = await shop.card()
    answer = await shop.post(path, {"outcome": "succeeded"}, Sec_Fetch_Site="cross-site")
    assert answer.status == 403
    assert (await shop.api("GET", "/payments", shop.test))[0]["status"] == "pending"


async def test_a_name_that_is_markup_stays_text(shop: Shop) -> None:
    page = await shop.get(await shop.card(description="</dd><script>alert(1)</script>"))
    assert "<script>alert" not in page.text
