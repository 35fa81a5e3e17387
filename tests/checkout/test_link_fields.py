"""What a link gives to its payments: its external_id, its metadata, and the merchant's page where customers return."""

import json
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import structs
from sqlalchemy import select

from guichet.application import application
from guichet.db.tables import events, incidents
from guichet.providers.base import NotProcessed
from tests.checkout.checkout_fixture import CheckoutFixture
from tests.fakes.recording_database import RecordingDatabase
from tests.service_fixture import serving

SHOP = "https://shop.example/merci?panier=77"


def _returns_to(text: str) -> str | None:
    """Where the button back to the merchant leads."""
    found = re.search(r'href="([^"]+)" rel="noreferrer">Retourner', text)
    return unescape(found[1]) if found else None


async def _settled(checkout: CheckoutFixture, waiting: str, *, approve: bool = True) -> str:
    reference = checkout.operator.last.payment.reference
    checkout.operator.approve(reference) if approve else checkout.operator.refuse(reference)
    checkout.pass_time(6)
    return (await checkout.get(waiting)).text


@pytest.mark.both_databases
async def test_a_payment_says_which_link_it_comes_from(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    await checkout.api("PUT", "/webhooks/endpoint", json={"url": "https://merchant.example.com/hook"})
    metadata = {"association": 7, "é": ["à", None]}
    named = await checkout.link(external_id="cotisation/2026", metadata=metadata)
    waiting = await checkout.waiting(named)
    await checkout.waiting(await checkout.link())
    [plain, payment] = await checkout.api("GET", "/payments")
    [other, link] = await checkout.api("GET", "/payment-links")
    assert payment["payment_link"] == {"id": link["id"], "external_id": "cotisation/2026"}
    assert plain["payment_link"] == {"id": other["id"], "external_id": None}
    assert (payment["metadata"], plain["metadata"]) == (metadata, None)
    assert await checkout.api("GET", f"/payments/{payment['reference']}") == payment
    checkout.operator.approve(payment["reference"])
    checkout.pass_time(6)
    await checkout.get(waiting)
    [row] = await checkout.ctx.db.scan(select(events.c.body))
    told: Any = json.loads(row[0])["data"]
    assert (told["payment_link"], told["metadata"]) == (payment["payment_link"], metadata)
    assert (await checkout.api("POST", "/payments", checkout.test, json=_mobile()))["payment_link"] is None


def _mobile() -> dict[str, object]:
    return {"amount": 5000, "operator": "mtn", "phone_number": "2290197000000"}


async def test_metadata_of_a_link_reaches_its_payments_byte_for_byte(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    metadata = '{"b":1.50,  "a": "\\u00e9", "b": [ ]}'
    headers = {"Authorization": f"Bearer {checkout.live}"}
    body = f'{{"amount": 5000, "description": "x", "metadata": {metadata}}}'.encode()
    created = await checkout.send("POST", "/v1/payment-links", data=body, headers=headers)
    await checkout.waiting(urlsplit(json.loads(created.text)["data"]["url"]).path)
    listed = await checkout.send("GET", "/v1/payments", headers=headers)
    assert f'"metadata":{metadata},' in listed.text


async def test_customers_return_to_the_merchant_with_reference_and_status(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(return_url=SHOP)
    for approve, status in ((True, "succeeded"), (False, "failed")):
        waiting = await checkout.waiting(path)
        assert _returns_to((await checkout.get(waiting)).text) is None, "not before the end"
        address = _returns_to(await _settled(checkout, waiting, approve=approve))
        assert address is not None
        assert address.startswith(f"{SHOP}&")
        query = parse_qs(urlsplit(address).query)
        assert query == {"panier": ["77"], "reference": [checkout.operator.last.payment.reference], "status": [status]}
        # The provider leads the customer back to the payment's own page.
        assert urlsplit(checkout.operator.last.return_url or "").path == urlsplit(waiting).path


async def test_a_link_without_a_return_url_leads_nowhere(checkout: CheckoutFixture) -> None:
    text = await _settled(checkout, await checkout.waiting(await checkout.link()))
    assert "Paiement réussi" in text
    assert _returns_to(text) is None


async def test_a_failed_payment_can_be_tried_again_or_left(checkout: CheckoutFixture) -> None:
    waiting = await checkout.waiting(await checkout.link(return_url=SHOP))
    text = await _settled(checkout, waiting, approve=False)
    assert "Réessayer" in text
    assert _returns_to(text) is not None


async def test_lists_of_link_payments_cost_no_query_for_each(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    recording = RecordingDatabase(checkout.ctx.db)
    recorded = structs.replace(checkout.service, ctx=structs.replace(checkout.ctx, db=recording))
    headers = {"Authorization": f"Bearer {checkout.live}"}
    counts = []
    async with serving(application(recorded, None)) as url:
        for number in range(4):
            await checkout.waiting(await checkout.link(external_id=f"l{number}"), phone=f"01970000{number}5")
            recording.seen.clear()
            async with checkout.http.get(f"{url}/v1/payments", headers=headers) as answer:
                listed = (await answer.json())["data"]
            assert [each["payment_link"]["external_id"] for each in listed] == [f"l{n}" for n in range(number, -1, -1)]
            counts.append(len(recording.seen))
    assert counts[1:] == counts[1:2] * 3, "the first request reads the key and the catalogue too"


async def test_a_link_whose_route_does_not_work_shows_so_on_the_page(checkout: CheckoutFixture) -> None:
    async def refuse(charge: object) -> NotProcessed:
        return NotProcessed("configuration", "401")

    checkout.operator.initiate = refuse  # type: ignore[method-assign]
    page = await checkout.get(await checkout.waiting(await checkout.link()))
    assert (page.status, "problème de notre côté" in page.text) == (200, True)
    [row] = await checkout.ctx.db.scan(select(incidents.c.kind))
    assert row[0] == "misconfigured_route"
