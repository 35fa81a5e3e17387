"""Checkout sessions on the hosted page: one order, whose customer may try several operators and pays once."""

import asyncio
import json
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select, update

from guichet.back_office.anonymisation import CustomerKeys, anonymise_customer
from guichet.clock import HOUR, SECOND
from guichet.db.tables import events, payment_links, webhook_deliveries
from guichet.domain.audit_log import Actor
from guichet.domain.errors import Conflict
from guichet.payments import checkout_sessions
from tests.checkout.checkout_fixture import CheckoutFixture
from tests.checkout.test_automatic_refunds import open_incidents, refunds, statuses, succeed
from tests.checkout.test_other_attempts import PROMPT
from tests.invariants import check_books

ORDER: Final[dict[str, Any]] = {"amount": 5000, "description": "Commande 42", "external_id": "commande/42"}
DAY: Final = 24 * HOUR // SECOND
#: What the fake provider's customer types.
PHONES: Final = ("0197000002", "0197000003", "0197000004")


async def session(checkout: CheckoutFixture, key: str = "", **more: Any) -> tuple[dict[str, Any], str]:
    """A new session, and the path of its page on this server."""
    created = await checkout.api("POST", "/checkout-sessions", key, json=ORDER | more)
    return created, urlsplit(created["url"]).path


async def read(checkout: CheckoutFixture, key: str = "") -> dict[str, Any]:
    found: dict[str, Any] = await checkout.api("GET", "/checkout-sessions/commande%2F42", key)
    return found


async def end(checkout: CheckoutFixture, session: dict[str, Any], key: str) -> tuple[int, str, str]:
    """What an end is refused with."""
    path = f"/v1/checkout-sessions/{session['id']}/expire"
    answer = await checkout.send("POST", path, headers={"Authorization": f"Bearer {key}"})
    error = json.loads(answer.text)["error"]
    return answer.status, error["reason"], error["reference"]


async def told(checkout: CheckoutFixture) -> list[tuple[str, dict[str, Any]]]:
    """Name and object of each event, in the order in which they were stored."""
    rows = await checkout.ctx.db.all(select(events.c.event, events.c.body).order_by(events.c.id))
    return [(name, json.loads(body)["data"]) for name, body in rows]


@pytest.mark.both_databases
@pytest.mark.parametrize("env", ["live", "test"])
async def test_an_order_is_paid_on_its_page(any_checkout: CheckoutFixture, env: str) -> None:
    checkout = any_checkout
    key = checkout.live if env == "live" else checkout.test
    await checkout.api("PUT", "/webhooks/endpoint", key, json={"url": "https://merchant.example.com/hook"})
    created, path = await session(
        checkout,
        key,
        metadata={"panier": 77},
        return_url="https://shop.example/merci",
        cancel_url="https://shop.example/",
    )
    assert (created["status"], created["payment_reference"]) == ("open", None)
    page = await checkout.get(path)
    assert page.status == 200
    assert 'href="https://shop.example/"' in page.text
    assert {form["operator"] for form in page.forms()} > {"mtn", "wave_ci", "VISA"}
    waiting = await checkout.waiting(path, phone="0197000000")
    if env == "live":
        checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    receipt = (await checkout.get(waiting)).text
    [payment] = await checkout.api("GET", "/payments", key)
    assert f"https://shop.example/merci?reference={payment['reference']}" in receipt
    assert (payment["status"], payment["external_id"], payment["payment_link"]) == ("succeeded", None, None)
    assert payment["checkout_session"] == {"id": created["id"], "external_id": "commande/42"}
    paid = await read(checkout, key)
    assert paid == created | {"status": "completed", "payment_reference": payment["reference"]}
    assert await told(checkout) == [("payment.succeeded", payment), ("checkout_session.completed", paid)]
    rows = await checkout.ctx.db.all(select(webhook_deliveries.c.event).order_by(webhook_deliveries.c.id))
    assert [row[0] for row in rows] == ["payment.succeeded", "checkout_session.completed"]
    listed = await checkout.api("GET", "/events?type=checkout_session.completed", key)
    assert [event["data"] for event in listed] == [paid]
    assert (await checkout.get(path)).headers["Location"] == waiting, "any browser sees the receipt"
    assert await end(checkout, created, key) == (409, "session_completed", payment["reference"])
    assert (await checkout.api("GET", "/payment-links")) == []
    await check_books(checkout.ctx.db)


async def test_after_a_refusal_another_operator_is_chosen(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    _, path = await session(checkout, checkout.test)
    refused = await checkout.waiting(path, phone="0197000001")
    assert path in (await checkout.get(refused)).text, "the failure leads back to the form"
    declined = await checkout.waiting(path, phone="0197000003", operator="moov")
    await checkout.get(declined)
    assert await statuses(checkout) == ["failed", "failed"]
    await checkout.waiting(path, phone="0197000000", operator="mtn")
    assert (await read(checkout, checkout.test))["status"] == "completed"
    assert await statuses(checkout) == ["failed", "failed", "succeeded"]
    assert await refunds(checkout) == []


async def test_only_the_operators_of_the_session_are_offered(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    created, path = await session(
        checkout,
        operators=["MOOV", "VISA", "moov"],
        customer={"firstname": "Awa", "lastname": "Diallo", "email": "awa@example.com", "address": "Rue 12"},
    )
    assert created["operators"] == ["moov", "VISA"]
    page = await checkout.get(path)
    assert {form["operator"] for form in page.forms()} == {"moov", "VISA"}
    assert page.form("VISA")["email"] == "awa@example.com"
    refused = await checkout.post(path, page.form("moov") | {"operator": "mtn", "phone_number": PHONES[0]})
    assert (refused.status, await statuses(checkout)) == (422, [])
    await checkout.waiting(path, operator="moov")
    [payment] = await checkout.api("GET", "/payments")
    assert [payment["customer"][name] for name in ("firstname", "lastname", "email")] == [
        "Awa",
        "Diallo",
        "awa@example.com",
    ]


@pytest.mark.both_databases
async def test_two_browsers_at_once_begin_one_payment(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    _, path = await session(checkout)
    forms = [(await checkout.get(path)).form("mtn") | {"phone_number": phone} for phone in PHONES]
    answers = await asyncio.gather(*(checkout.post(path, form) for form in forms))
    assert await statuses(checkout) == ["pending"]
    assert 303 in {answer.status for answer in answers} <= {303, 409}
    waiting = (await checkout.get(path)).headers["Location"]
    checkout.operator.refuse(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    assert (await checkout.get(waiting)).status == 200
    # And so do those that follow a failure, whichever page they came from.
    forms = [(await checkout.get(path)).form("mtn") | {"phone_number": phone} for phone in PHONES]
    answers = await asyncio.gather(*(checkout.post(path, form) for form in forms))
    assert await statuses(checkout) == ["failed", "pending"]
    assert {answer.status for answer in answers} <= {303, 409}


async def test_a_second_success_is_refunded(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    created, path = await session(checkout)
    waiting = await checkout.waiting(path, phone=PHONES[0])
    first = checkout.operator.last.payment.reference
    for seconds in (6, PROMPT - 7):
        checkout.pass_time(seconds)
        assert (await checkout.get(path)).headers["Location"] == waiting, "the first can still be confirmed"
    checkout.pass_time(2)
    await checkout.waiting(path, phone=PHONES[1])  # In another browser, which knows nothing of the first.
    second = checkout.operator.last.payment.reference
    assert await statuses(checkout) == ["pending", "pending"]
    await succeed(checkout, second)
    await succeed(checkout, first)
    [refund] = await refunds(checkout)
    assert (refund.payment_reference, refund.automatic, refund.status) == (first, "attempt_paid", "succeeded")
    assert await open_incidents(checkout) == [("automatic_refund", "incident_detail.second_attempt_paid")]
    assert await read(checkout) == created | {"status": "completed", "payment_reference": second}
    names = [name for name, _ in await told(checkout)]
    assert names.count("checkout_session.completed") == 1
    assert names.count("payment.succeeded") == 2
    assert second in (await checkout.get((await checkout.get(path)).headers["Location"])).text
    await check_books(checkout.ctx.db)


async def test_it_expires_only_without_a_pending_payment(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    created, path = await session(checkout)
    waiting = await checkout.waiting(path, phone=PHONES[0])
    payment = checkout.operator.last.payment.reference
    assert await end(checkout, created, checkout.live) == (409, "session_pending", payment)
    checkout.pass_time(DAY)
    await checkout.work()
    assert (await read(checkout))["status"] == "open"
    assert (await checkout.get(path)).status == 410, "nobody can begin to pay"
    checkout.operator.refuse(payment)
    checkout.pass_time(3600)
    await checkout.work()
    expired = await read(checkout)
    assert expired == created | {"status": "expired"}
    assert await told(checkout) == [
        ("payment.failed", await checkout.api("GET", f"/payments/{payment}")),
        ("checkout_session.expired", expired),
    ]
    assert (await checkout.get(waiting)).status == 200
    assert (await checkout.get(path)).status == 410


@pytest.mark.both_databases
async def test_an_end_by_request_is_final(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    created, path = await session(checkout, customer={"firstname": "Awa"})
    form = (await checkout.get(path)).form("mtn") | {"phone_number": PHONES[0]}
    ended = await checkout.api("POST", f"/checkout-sessions/{created['id']}/expire")
    assert ended["status"] == "expired"
    assert ended["expires_at"] < created["expires_at"]
    assert await checkout.api("POST", f"/checkout-sessions/{created['id']}/expire") == ended
    assert (await checkout.post(path, form)).status == 410
    assert (await statuses(checkout), [name for name, _ in await told(checkout)]) == ([], ["checkout_session.expired"])
    [row] = await checkout.ctx.db.all(select(payment_links.c.customer))
    assert row[0] is None


@pytest.mark.both_databases
async def test_a_payment_and_the_end_of_its_session_do_not_cross(any_checkout: CheckoutFixture) -> None:
    """Whichever holds the link first: never an expired session with a payment that may succeed."""
    checkout = any_checkout
    for number in range(4):
        created, path = await session(checkout, external_id=f"commande {number}")
        form = (await checkout.get(path)).form("mtn") | {"phone_number": f"019700010{number}"}
        [row] = await checkout.ctx.db.all(
            select(payment_links.c.id).where(payment_links.c.session_reference == created["id"])
        )
        _, ended = await asyncio.gather(
            checkout.post(path, form), checkout_sessions.expire(checkout.ctx, row[0]), return_exceptions=True
        )
        begun = [
            each for each in await checkout.api("GET", "/payments") if each["checkout_session"]["id"] == created["id"]
        ]
        found = await checkout.api("GET", f"/checkout-sessions/{created['id']}")
        assert (found["status"], len(begun)) in (("expired", 0), ("open", 1))
        assert isinstance(ended, Conflict) == (len(begun) == 1)


async def test_a_payment_sees_an_end_that_its_page_did_not(checkout: CheckoutFixture) -> None:
    """The page had been read before the worker ended the session: the row decides, under the lock of the link."""
    created, path = await session(checkout)
    form = (await checkout.get(path)).form("mtn") | {"phone_number": PHONES[0]}
    await checkout.ctx.db.write(
        update(payment_links).where(payment_links.c.session_reference == created["id"]).values(session_status="expired")
    )
    assert (await checkout.post(path, form)).status == 409
    assert await statuses(checkout) == []


@pytest.mark.both_databases
async def test_what_a_crash_leaves_is_completed_by_the_worker(any_checkout: CheckoutFixture) -> None:
    """The process died after the row was stored and the provider asked: nobody opens the page again."""
    checkout = any_checkout
    _, path = await session(checkout)
    await checkout.waiting(path, phone=PHONES[0])
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(2 * DAY)
    await checkout.work()
    rows = await checkout.ctx.db.all(select(payment_links.c.session_status))
    assert [row[0] for row in rows] == ["completed"]
    assert [name for name, _ in await told(checkout)] == ["payment.succeeded", "checkout_session.completed"]


async def test_a_forgotten_customer_is_in_no_session(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    known = {"firstname": "Awa", "email": "awa@example.com"}
    _, path = await session(
        checkout,
        description="Robe d’Awa",
        metadata={"pour": "Awa"},
        return_url="https://shop.example/Awa",
        cancel_url="https://shop.example/Awa",
        customer=known,
    )
    await checkout.waiting(path, phone=PHONES[0])
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(3600)
    await checkout.work()
    keys, ctx = CustomerKeys(None, "awa@example.com"), checkout.ctx
    await anonymise_customer(ctx.db, ctx.clock, checkout.merchant_id, keys, Actor("Ada", "root"), "Lettre du 3 mai")
    rows = [await ctx.db.scan(select(table)) for table in (payment_links, events)]
    assert len(rows[1]) == 2
    assert "awa" not in str(rows).lower()
