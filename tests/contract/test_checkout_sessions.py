"""Checkout sessions in the API: created once, repeated, read, ended, and each environment's own."""

import asyncio
from typing import Any, Final, cast
from uuid import uuid4

import pytest
from sqlalchemy import bindparam, func, insert, select, update

from guichet.clock import iso, later
from guichet.db import tables
from guichet.db.engine import require
from guichet.db.sqlite.database import SqliteDatabase
from guichet.domain.events import EVENTS
from guichet.domain.ids import PaymentId
from guichet.domain.payment_links import LIMITED
from guichet.payments import checkout_sessions
from guichet.payments.checkout_sessions import DueSessions
from guichet.worker.housekeeping import Housekeeping
from tests.db.rows import LINK, PAYMENT
from tests.service_fixture import MerchantClient, ServiceFixture

ORDER: Final[dict[str, Any]] = {"amount": 5000, "description": "Commande 42", "external_id": "commande/42"}
DAYS: Final = 24 * 3600 * 1_000_000
_SESSION_NAMES: Final = {*LINK, "max_uses", "test", "expires_at", "session_status", "session_reference"}
INSERT_SESSION: Final = (
    insert(tables.payment_links)
    .values({name: bindparam(name) for name in _SESSION_NAMES})
    .returning(tables.payment_links.c.id)
)
INSERT_PAYMENT: Final = (
    insert(tables.payments)
    .values({name: bindparam(name) for name in (*PAYMENT, "link_id")})
    .returning(tables.payments.c.id)
)


@pytest.fixture
async def merchant(service: ServiceFixture) -> MerchantClient:
    return await service.merchant()


@pytest.mark.both_databases
@pytest.mark.parametrize("by", ["external_id", "key"])
async def test_an_order_that_is_repeated_after_its_end_answers_its_session(
    service: ServiceFixture, merchant: MerchantClient, by: str
) -> None:
    now = service.clock.now()
    order = ORDER | {"expires_at": iso(later(now, DAYS))}
    headers = {"Idempotency-Key": "s-1"} if by == "key" else {}
    if by == "key":
        del order["external_id"]
    created = await merchant.post("/checkout-sessions", order, headers=headers)
    service.clock.advance(2 * DAYS / 1_000_000)
    again = await merchant.post("/checkout-sessions", order, headers=headers)
    assert (again.status, again.data) == (201, created.data), "before the worker has ended it"
    await Housekeeping(service.ctx).step()
    again = await merchant.post("/checkout-sessions", order, headers=headers)
    assert (again.status, again.data) == (201, created.data | {"status": "expired"})
    other = await merchant.post("/checkout-sessions", order | {"external_id": "commande/43"})
    assert (other.status, list(other.error["details"])) == (422, ["expires_at"])


@pytest.mark.both_databases
async def test_a_repeated_order_answers_the_same_session(merchant: MerchantClient) -> None:
    """Whatever its body says, at the same time too, and a warning says what differs."""
    answers = await asyncio.gather(*(merchant.post("/checkout-sessions", ORDER) for _ in range(5)))
    assert {answer.status for answer in answers} == {201}
    created = answers[0].data
    assert [answer.data for answer in answers] == [created] * 5
    other = await merchant.post("/checkout-sessions", ORDER | {"amount": 7000.0, "metadata": {"a": 1}})
    assert (other.status, other.data) == (201, created)
    [warned] = other.body["warnings"]
    assert warned["code"] == "session_differs"
    assert "5000 au lieu de 7000" in warned["message"]
    for name in (created["id"], "commande%2F42"):
        assert (await merchant.get(f"/checkout-sessions/{name}")).data == created
    await merchant.post(f"/checkout-sessions/{created['id']}/expire")
    assert (await merchant.post("/checkout-sessions", ORDER)).data["status"] == "expired"


async def test_a_key_names_one_session(merchant: MerchantClient) -> None:
    body = {"amount": 5000, "description": "Commande 43"}
    first, again, other = [
        await merchant.post("/checkout-sessions", sent, headers={"Idempotency-Key": "k-1"})
        for sent in (body, body, body | {"amount": 6000})
    ]
    assert (first.status, again.status, again.data) == (201, 201, first.data)
    assert (other.status, other.body["error"]["reason"]) == (409, "idempotency_key_reused")
    link = {"amount": 5000, "description": "x"}
    made = await merchant.live.post("/payment-links", link, headers={"Idempotency-Key": "k-1"})
    assert made.status == 201, "another route has keys of its own"


async def test_what_a_session_cannot_be(service: ServiceFixture, merchant: MerchantClient) -> None:
    now = service.clock.now()
    wrong: tuple[tuple[str, Any], ...] = (
        ("amount", 10.5),
        ("description", None),
        ("external_id", ""),
        ("return_url", "javascript:alert(1)"),
        ("cancel_url", "ftp://shop.example"),
        ("operators", []),
        ("operators", "mtn"),
        ("operators", ["mtn", "nobody"]),
        ("expires_at", iso(now)),
        ("expires_at", iso(later(now, 31 * DAYS))),
        ("customer", "Awa"),
        ("fee_amount", 5),
        ("livemode", True),
    )
    for name, value in wrong:
        answer = await merchant.post("/checkout-sessions", ORDER | {name: value})
        assert answer.status == 422, name
        assert name in answer.body["error"]["details"], (name, answer.body)
    for name in (ORDER["external_id"].replace("/", "%2F"), "0b7d1a0e-3f5b-4f0e-9a4e-6d1c2b3a4f55", "%00"):
        assert (await merchant.get(f"/checkout-sessions/{name}")).status == 404
    ends = iso(later(now, 30 * DAYS))
    made = await merchant.post("/checkout-sessions", ORDER | {"expires_at": ends, "operators": ["MTN"]})
    assert (made.data["expires_at"], made.data["operators"]) == (ends, ["mtn"])


@pytest.mark.both_databases
async def test_environments_and_merchants_do_not_see_each_other(
    service: ServiceFixture, merchant: MerchantClient
) -> None:
    test, live = [(await each.post("/checkout-sessions", ORDER)).data for each in (merchant, merchant.live)]
    assert test["id"] != live["id"]
    other = await service.merchant()
    for name in (test["id"], "commande%2F42"):
        assert (await other.get(f"/checkout-sessions/{name}")).status == 404
        assert (await other.post(f"/checkout-sessions/{name}/expire")).status == 404
    assert (await merchant.live.get(f"/checkout-sessions/{test['id']}")).status == 404
    assert (await merchant.live.get("/payment-links")).data == []
    link = await merchant.live.post("/payment-links", ORDER)
    assert (link.status, link.data["external_id"]) == (201, "commande/42"), "links have external_ids of their own"
    before = link.data["id"] - 1
    for path in (f"/payment-links/{before}", f"/payment-links/{before - 1}"):
        assert (await merchant.live.get(path)).status == 404
        assert (await merchant.live.post(f"{path}/close")).status == 404
    listed = (await merchant.live.get("/payment-links")).body
    assert ([each["id"] for each in listed["data"]], listed["meta"]["total"]) == ([link.data["id"]], 1)


async def test_the_worker_ends_what_nobody_pays(service: ServiceFixture, merchant: MerchantClient) -> None:
    await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    created = (await merchant.post("/checkout-sessions", ORDER)).data
    await service.run_worker(24 * 3600 - 60)
    assert (await merchant.get(f"/checkout-sessions/{created['id']}")).data == created
    await service.run_worker(120)
    expired = (await merchant.get(f"/checkout-sessions/{created['id']}")).data
    assert expired == created | {"status": "expired"}
    [event] = (await merchant.get("/events")).data
    assert (event["event"], event["livemode"], event["data"]) == ("checkout_session.expired", False, expired)
    [delivery] = (await merchant.get("/webhooks/deliveries?event=checkout_session.expired")).data
    assert delivery["id"] == event["id"]
    assert (await merchant.get("/webhooks/endpoint")).data["events"] == list(EVENTS)


async def waiting_sessions(service: ServiceFixture, merchant: MerchantClient, count: int) -> list[PaymentId]:
    """The payments of new sessions that have ended, each with one that nobody ends."""
    ended = service.clock.now() - 1
    session = LINK | {"type": LIMITED, "max_uses": 1, "test": True, "expires_at": ended, "session_status": "open"}
    made = []
    async with service.ctx.db.transaction() as tx:
        for number in range(count):
            own = {"token": f"{count} {number}", "session_reference": str(uuid4()), "merchant_id": merchant.id}
            row = await tx.write(INSERT_SESSION, **session | own)
            pending = PAYMENT | {"reference": str(uuid4()), "merchant_id": merchant.id, "next_poll_at": 2**62}
            made += [await tx.write(INSERT_PAYMENT, **pending, link_id=require(row)[0])]
    return [PaymentId(require(row)[0]) for row in made]


@pytest.mark.both_databases
async def test_sessions_that_wait_for_a_payment_keep_no_other_waiting(
    service: ServiceFixture, merchant: MerchantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout_sessions, "LOOKED_AT", 2)
    payments = await waiting_sessions(service, merchant, 9)
    due = DueSessions(service.ctx)
    while await due.step():
        pass
    created = [(await merchant.post("/checkout-sessions", ORDER | {"external_id": name})).data for name in "abcde"]
    service.clock.advance(25 * 3600)
    while await due.step():
        pass
    names = [f"/checkout-sessions/{session['id']}" for session in created]
    assert {(await merchant.get(name)).data["status"] for name in names} == {"expired"}
    number, status = tables.payments.c.id, tables.payments.c.status
    for payment_id in payments[3:5]:
        await service.ctx.db.write(
            update(tables.payments)
            .where(number == payment_id)
            .values({status: "failed", "next_poll_at": None})
            .returning(number)
        )
    for _ in range(6):
        await due.step()
    [row] = await service.ctx.db.all(select(func.count()).where(tables.payment_links.c.session_status == "open"))
    assert row[0] == 7


@pytest.mark.both_databases
async def test_an_old_payment_that_is_pending_keeps_a_session_open(
    service: ServiceFixture, merchant: MerchantClient
) -> None:
    """However many were begun after it."""
    await waiting_sessions(service, merchant, 1)
    [session] = await service.ctx.db.all(select(tables.payment_links.c.id, tables.payment_links.c.session_reference))
    failed = PAYMENT | {"merchant_id": merchant.id, "status": "failed", "next_poll_at": None, "link_id": session[0]}
    async with service.ctx.db.transaction() as tx:
        for _ in range(201):
            await tx.write(INSERT_PAYMENT, **failed | {"reference": str(uuid4())})
    answer = await merchant.post(f"/checkout-sessions/{session[1]}/expire")
    assert (answer.status, answer.error["reason"]) == (409, "session_pending")


async def test_a_turn_has_a_fixed_cost(service: ServiceFixture, merchant: MerchantClient) -> None:
    """However many sessions have a payment that nobody ends."""
    taken, steps = 0, []

    def count() -> bool:
        nonlocal taken
        taken += 1
        return False

    worker = Housekeeping(service.ctx)
    for many in (600, 2400):
        await waiting_sessions(service, merchant, many)
        for _ in range(15):  # One walk comes to all of them.
            await worker.step()
        service.clock.advance(11)
        taken = 0
        cast("SqliteDatabase", service.ctx.db)._reader.set_progress_handler(count, 100)
        await worker.step()
        steps.append(taken)
    assert steps[1] < 1.5 * steps[0], steps
