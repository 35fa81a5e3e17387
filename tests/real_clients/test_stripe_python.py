"""Stripe's own library against the simulated Stripe."""

import asyncio
from typing import Any

import pytest
import stripe

from guichet_simulator.app import SECRETS
from tests.guichet_simulator.conftest import CallbackReceiver, Simulator
from tests.real_clients.conftest import customer, until

SECRET = SECRETS["stripe"]


def client(simulator: Simulator, key: str = "sk_test_simulator") -> stripe.StripeClient:
    return stripe.StripeClient(key, base_addresses={"api": f"{simulator.url}/stripe"}, max_network_retries=0)


def order(**more: Any) -> Any:
    price = {"currency": "xof", "unit_amount": 5000, "product_data": {"name": "Panier"}}
    return {
        "mode": "payment",
        "line_items": [{"quantity": 1, "price_data": price}],
        "success_url": "https://m.example/ok?session={CHECKOUT_SESSION_ID}",
        "cancel_url": "https://m.example/ko",
        "client_reference_id": "order-1",
        "metadata": {"basket": "12"},
        **more,
    }


async def test_a_session_is_paid_and_refunded(simulator: Simulator) -> None:
    api = client(simulator).v1
    session = await asyncio.to_thread(api.checkout.sessions.create, order())
    assert (session.status, session.payment_status, session.livemode) == ("open", "unpaid", False)
    assert session.url
    await customer(simulator, "order-1", "approve")
    paid = await asyncio.to_thread(api.checkout.sessions.retrieve, session.id)
    assert (paid.status, paid.payment_status, paid.amount_total) == ("complete", "paid", 5000)
    assert paid.metadata
    assert paid.metadata["basket"] == "12"
    intent = str(paid.payment_intent)
    part = await asyncio.to_thread(api.refunds.create, {"payment_intent": intent, "amount": 2000})
    done = await until(simulator, api.refunds.retrieve, part.id, wanted=lambda each: each.status != "pending")
    assert (done.status, done.amount, done.payment_intent) == ("succeeded", 2000, intent)
    balance = await asyncio.to_thread(api.balance.retrieve)
    assert [(each.amount, each.currency) for each in balance.available] == [(3000, "xof")]
    await asyncio.to_thread(api.refunds.create, {"payment_intent": intent})
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        await asyncio.to_thread(api.refunds.create, {"payment_intent": intent})
    assert refusal.value.code == "charge_already_refunded"
    assert await simulator.credits(family="stripe") == 1  # The second one is still on its way.


async def test_a_session_that_nobody_pays_expires(simulator: Simulator) -> None:
    api = client(simulator).v1
    session = await asyncio.to_thread(api.checkout.sessions.create, order())
    expired = await asyncio.to_thread(api.checkout.sessions.expire, session.id)
    assert (expired.status, expired.payment_status, expired.url) == ("expired", "unpaid", None)
    with pytest.raises(stripe.InvalidRequestError):
        await asyncio.to_thread(api.checkout.sessions.expire, session.id)
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        await asyncio.to_thread(api.checkout.sessions.retrieve, "cs_test_unknown")
    assert refusal.value.code == "resource_missing"


async def test_the_live_and_the_test_mode_share_nothing(simulator: Simulator) -> None:
    live, test = client(simulator, "sk_live_simulator").v1, client(simulator).v1
    await simulator.force("stripe", "final_success")
    session = await asyncio.to_thread(live.checkout.sessions.create, order())
    paid = await asyncio.to_thread(live.checkout.sessions.retrieve, session.id)
    assert (paid.livemode, paid.payment_status) == (True, "paid")
    assert (await asyncio.to_thread(live.balance.retrieve)).livemode is True
    assert (await asyncio.to_thread(test.balance.retrieve)).available == []
    with pytest.raises(stripe.InvalidRequestError):
        await asyncio.to_thread(test.checkout.sessions.retrieve, session.id)
    with pytest.raises(stripe.InvalidRequestError):
        await asyncio.to_thread(test.refunds.create, {"payment_intent": str(paid.payment_intent)})
    refund = await asyncio.to_thread(live.refunds.create, {"payment_intent": str(paid.payment_intent)})
    with pytest.raises(stripe.InvalidRequestError):
        await asyncio.to_thread(test.refunds.retrieve, refund.id)


async def test_a_lost_answer_comes_again_under_its_key(simulator: Simulator) -> None:
    api = client(simulator).v1
    options: Any = {"idempotency_key": "k1"}
    await simulator.force("stripe", "lost_answer")
    with pytest.raises(stripe.APIConnectionError):
        await asyncio.to_thread(api.checkout.sessions.create, order(), options)
    session = await asyncio.to_thread(api.checkout.sessions.create, order(), options)
    assert len((await simulator.truth())["transactions"]) == 1
    assert (await asyncio.to_thread(api.checkout.sessions.retrieve, session.id)).id == session.id
    with pytest.raises(stripe.IdempotencyError):
        await asyncio.to_thread(api.checkout.sessions.create, order(client_reference_id="order-2"), options)


async def test_the_library_itself_repeats_what_was_lost(simulator: Simulator) -> None:
    api = stripe.StripeClient(
        "sk_test_simulator", base_addresses={"api": f"{simulator.url}/stripe"}, max_network_retries=2
    ).v1
    await simulator.force("stripe", "lost_answer")
    await asyncio.to_thread(api.checkout.sessions.create, order())
    assert len((await simulator.truth())["transactions"]) == 1


async def test_errors_have_the_classes_that_the_library_knows(simulator: Simulator) -> None:
    with pytest.raises(stripe.AuthenticationError):
        await asyncio.to_thread(client(simulator, "sk_test_invalid").v1.balance.retrieve)
    api = client(simulator).v1
    wrong = {
        "rate_limited": stripe.RateLimitError,
        "unavailable": stripe.APIError,
        "not_configured": stripe.PermissionError,
        "refused": stripe.InvalidRequestError,
    }
    for scenario, error in wrong.items():
        await simulator.force("stripe", scenario)
        with pytest.raises(error):
            await asyncio.to_thread(api.checkout.sessions.create, order())


async def test_events_are_verified_by_the_library(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "stripe", "callback_url": callback_receiver.url})
    await asyncio.to_thread(client(simulator).v1.checkout.sessions.create, order())
    await customer(simulator, "order-1", "approve")
    [notice] = await callback_receiver.wait_for(1)
    header = notice.headers["stripe-signature"]
    event = client(simulator).construct_event(notice.body, header, SECRET)
    assert event.type == "checkout.session.completed"
    assert event.data.object["client_reference_id"] == "order-1"
    for body, secret in ((notice.body + b" ", SECRET), (notice.body, "whsec_other")):
        with pytest.raises(stripe.SignatureVerificationError):
            client(simulator).construct_event(body, header, secret)


async def test_disputes_are_listed_and_told(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    api = client(simulator).v1
    await simulator.json("POST", "/control/dashboard", json={"family": "stripe", "callback_url": callback_receiver.url})
    ids, paths = [], []
    for number in range(3):
        await simulator.force("stripe", "final_success")
        reference = f"order-{number}"
        intent = {"metadata": {"reference": reference}}
        await asyncio.to_thread(
            api.checkout.sessions.create, order(client_reference_id=reference, payment_intent_data=intent)
        )
        [held] = (await simulator.truth(reference=reference))["transactions"]
        paths.append(f"/control/transactions/{held['id']}/dispute")
        ids.append((await simulator.json("POST", paths[-1], json={"status": "needs_response"}))["id"])
    options: Any = {"limit": 2, "expand": ["data.payment_intent"]}
    page = await asyncio.to_thread(api.disputes.list, options)
    assert (page.has_more, [each.id for each in page.data]) == (True, ids[:0:-1])
    newest = page.data[0]
    assert (newest.status, newest.amount, newest.reason) == ("needs_response", 5000, "fraudulent")
    assert newest.payment_intent.metadata["reference"] == "order-2"  # type: ignore[union-attr]
    found = await asyncio.to_thread(api.payment_intents.retrieve, newest.payment_intent.id)  # type: ignore[union-attr]
    assert (found.status, found.latest_charge, found.metadata["reference"]) == ("succeeded", newest.charge, "order-2")
    options["starting_after"] = ids[1]
    rest = await asyncio.to_thread(api.disputes.list, options)
    assert (rest.has_more, [each.id for each in rest.data]) == (False, ids[:1])
    assert (await asyncio.to_thread(client(simulator, "sk_live_simulator").v1.disputes.list)).data == []
    await simulator.json("POST", paths[0], json={"status": "lost"})
    assert (await asyncio.to_thread(api.disputes.list)).data[2].status == "lost"
    notices = await callback_receiver.wait_for(7)
    events = [
        client(simulator).construct_event(each.body, each.headers["stripe-signature"], SECRET) for each in notices
    ]
    about = sorted(event.type for event in events if event.type.startswith("charge."))
    assert about == ["charge.dispute.closed", *["charge.dispute.created"] * 3]
