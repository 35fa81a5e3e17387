"""A payment that succeeds though its link has no use for it is refunded without being asked, exactly once."""

import asyncio
from functools import partial
from typing import Any, Final

import pytest
from sqlalchemy import select

from guichet.clock import SECOND, later
from guichet.db.engine import require
from guichet.db.tables import payments as payment_table
from guichet.db.tables import refunds as refund_table
from guichet.domain.failures import RefusalReason
from guichet.domain.payments import CONFIRMED, Payment, Refund
from guichet.domain.posting_rules import ACTIVE, WalletStatus
from guichet.incidents import repository as incidents
from guichet.ledger import wallets
from guichet.payments import repository as payments
from guichet.payments.settlement import settle_payments, settlement_of
from guichet.providers.base import RefundRequest, Refused, Succeeded
from guichet.refunds import automatic, pending
from tests.checkout.checkout_fixture import CheckoutFixture
from tests.invariants import check_books

RESERVED = 15 * 60
AFTER_LINK_PAYMENTS: Final = partial(automatic.after_link_payments, "https://pay.example/pay")
ONE_USE: Final[dict[str, Any]] = {"type": "limité", "max_uses": 1}


async def two_attempts(checkout: CheckoutFixture, **link: Any) -> list[str]:
    """The references of two pending payments through one link: the second began when the place of the first lapsed."""
    path = await checkout.link(**(link or ONE_USE))
    await checkout.waiting(path, phone="0197000002")
    checkout.pass_time(RESERVED)
    await checkout.waiting(path, phone="0197000003")
    return list(checkout.operator.charges)


async def succeed(checkout: CheckoutFixture, *references: str) -> None:
    """The customer confirms, and the worker does everything."""
    for reference in references:
        checkout.operator.approve(reference)
    checkout.pass_time(3600)
    await checkout.work()


async def payment_of(checkout: CheckoutFixture, reference: str) -> Payment:
    return require(await payments.find(checkout.ctx.db, reference))


async def statuses(checkout: CheckoutFixture) -> list[str]:
    rows = await checkout.ctx.db.all(select(payment_table.c.status).order_by(payment_table.c.id))
    return [row[0] for row in rows]


async def refunds(checkout: CheckoutFixture) -> list[Refund]:
    return [Refund(*row) for row in await checkout.ctx.db.all(select(refund_table).order_by(refund_table.c.id))]


async def open_incidents(checkout: CheckoutFixture) -> list[tuple[str, str]]:
    return [(each.kind, each.detail.code) for each in await incidents.still_open(checkout.ctx.db)]


async def set_wallet(checkout: CheckoutFixture, status: WalletStatus) -> None:
    async with checkout.ctx.db.transaction() as tx:
        now = checkout.ctx.clock.now()
        await wallets.set_wallet_status(tx, checkout.merchant_id, "live", "XOF", status, now)


async def test_the_second_success_of_a_link_of_one_use_goes_back(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    await checkout.api("PUT", "/webhooks/endpoint", json={"url": "https://merchant.example.com/hook"})
    first, second = await two_attempts(checkout)
    await succeed(checkout, first)
    assert (await statuses(checkout), await refunds(checkout)) == (["succeeded", "pending"], [])
    await succeed(checkout, second)
    assert await statuses(checkout) == ["succeeded", "refunded"]
    (refund,) = await refunds(checkout)
    assert (refund.payment_reference, refund.status, refund.automatic) == (second, "succeeded", "link_paid")
    assert checkout.operator.refunded == [second]
    assert await open_incidents(checkout) == [("automatic_refund", "incident_detail.paid_link_paid_again")]
    assert (await checkout.api("GET", "/balance"))["balance"] == 5000
    told = [each["event"] for each in reversed(await checkout.api("GET", "/webhooks/deliveries"))]
    assert told == ["payment.succeeded", "payment.succeeded", "refund.succeeded", "payment.refunded"]
    (listed,) = await checkout.api("GET", "/refunds")
    assert listed["reason"] == "Remboursement automatique : ce lien, d'un seul usage, était déjà payé"
    await check_books(checkout.ctx.db, events_queued=True)


async def test_a_payment_that_came_late_is_the_first_if_it_succeeds_first(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    first, second = await two_attempts(checkout)
    await succeed(checkout, second)
    await succeed(checkout, first)
    assert await statuses(checkout) == ["refunded", "succeeded"]
    assert checkout.operator.refunded == [first]
    await check_books(checkout.ctx.db)


async def test_links_of_more_uses_keep_a_late_success(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=2)
    for phone in ("0197000002", "0197000003"):
        await checkout.waiting(path, phone=phone)
    checkout.pass_time(RESERVED)
    await checkout.waiting(path, phone="0197000004")
    await succeed(checkout, *checkout.operator.charges)
    assert (await statuses(checkout), await refunds(checkout)) == (["succeeded"] * 3, [])


async def settlements(checkout: CheckoutFixture, references: list[str]) -> list[Any]:
    """What each of two workers applies when both hear of a success in the same moment."""
    found = []
    for reference in references:
        payment = await payment_of(checkout, reference)
        outcome = Succeeded(payment.total_amount, payment.currency)
        found.append(await settlement_of(checkout.ctx, payment, CONFIRMED, outcome, act=None, overrides=False))
    return found


@pytest.mark.both_databases
@pytest.mark.parametrize("together", [True, False], ids=["one transaction", "two workers"])
async def test_of_two_successes_in_the_same_moment_one_comes_second(
    any_checkout: CheckoutFixture, together: bool
) -> None:
    checkout, db = any_checkout, any_checkout.ctx.db
    for number in range(8):
        checkout.operator.charges.clear()
        one, other = await settlements(checkout, await two_attempts(checkout))
        # Each is heard of twice: by polling, and by a callback.
        calls = [[other, one, other]] if together else [[one], [other], [other], [one]]
        await asyncio.gather(
            *(settle_payments(db, checkout.ctx.hand_over, AFTER_LINK_PAYMENTS, call) for call in calls)
        )
        assert len(await refunds(checkout)) == number + 1
    await checkout.work()
    assert sorted(await statuses(checkout)) == ["refunded"] * 8 + ["succeeded"] * 8
    assert len(checkout.operator.refunded) == len(set(checkout.operator.refunded)) == 8
    await check_books(db)


@pytest.mark.both_databases
async def test_two_workers_send_one_refund(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    first, second = await settlements(checkout, await two_attempts(checkout))
    await settle_payments(checkout.ctx.db, checkout.ctx.hand_over, AFTER_LINK_PAYMENTS, [first])
    await settle_payments(checkout.ctx.db, checkout.ctx.hand_over, AFTER_LINK_PAYMENTS, [second])
    workers = [checkout.service.worker() for _ in range(3)]
    await asyncio.gather(*(each.run_until_idle() for each in workers))
    assert checkout.operator.refunded == [second.payment.reference]
    assert (await checkout.api("GET", "/balance"))["balance"] == 5000
    await check_books(checkout.ctx.db)


@pytest.mark.both_databases
@pytest.mark.parametrize("step", ["settled", "claimed", "held"])
async def test_a_process_that_dies_leaves_the_refund_to_the_next(any_checkout: CheckoutFixture, step: str) -> None:
    checkout, ctx = any_checkout, any_checkout.ctx
    both = await settlements(checkout, await two_attempts(checkout))
    for settlement in both:
        await settle_payments(ctx.db, ctx.hand_over, AFTER_LINK_PAYMENTS, [settlement])
    (refund,) = await refunds(checkout)
    now = ctx.clock.now()
    if step != "settled":
        leased = await pending.lease(ctx.db, refund.id, now, later(now, 30 * SECOND), now)
        assert leased is not None
        if step == "held":
            assert await automatic.hold(ctx, leased, both[1].payment) is not None
    checkout.pass_time(60)
    await checkout.work()
    assert await statuses(checkout) == ["succeeded", "refunded"]
    assert checkout.operator.refunded == [both[1].payment.reference]
    await check_books(ctx.db)


async def test_it_waits_for_a_frozen_wallet(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    first, second = await two_attempts(checkout)
    await succeed(checkout, first)
    await set_wallet(checkout, "Gelé")
    await succeed(checkout, second)
    for _ in range(3):
        checkout.pass_time(3600)
        await checkout.work()
    assert await statuses(checkout) == ["succeeded", "succeeded"]
    assert [each.status for each in await refunds(checkout)] == ["pending"]
    assert await open_incidents(checkout) == [("automatic_refund", "incident_detail.refund_awaits_wallet")]
    await set_wallet(checkout, ACTIVE)
    checkout.pass_time(3600)
    await checkout.work()
    assert await statuses(checkout) == ["succeeded", "refunded"]
    assert checkout.operator.refunded == [second]
    await check_books(checkout.ctx.db)


async def test_it_waits_where_no_account_refunds(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    checkout.operator.refundable = False
    await succeed(checkout, *(await two_attempts(checkout)))
    assert [each.status for each in await refunds(checkout)] == ["pending"]
    assert await open_incidents(checkout) == [("automatic_refund", "incident_detail.refund_awaits_route")]
    assert (await checkout.api("GET", "/balance"))["balance"] == 5000, "nobody spends what is to go back"
    checkout.operator.refundable = True
    checkout.pass_time(3600)
    await checkout.work()
    assert [each.status for each in await refunds(checkout)] == ["succeeded"]
    await check_books(checkout.ctx.db)


async def test_it_waits_where_nobody_knows_who_paid(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    checkout.operator.own_refunds = False
    path = await checkout.link(**ONE_USE)
    for _ in range(2):
        await checkout.waiting(path, operator="wave_ci", phone="0701020304")
        checkout.pass_time(RESERVED)
    await succeed(checkout, *checkout.operator.charges)
    assert [each.status for each in await refunds(checkout)] == ["pending"]
    assert sorted(kind for kind, _ in await open_incidents(checkout)) == ["automatic_refund", "payee_unconfirmed"]
    assert checkout.operator.refunded == []


async def test_a_refusal_opens_the_incident_again(any_checkout: CheckoutFixture, monkeypatch: Any) -> None:
    checkout = any_checkout
    reason: RefusalReason = "refused"

    async def refuses(request: RefundRequest) -> Refused:
        return Refused(reason)

    first, second = await two_attempts(checkout)
    await succeed(checkout, first)
    monkeypatch.setattr(checkout.operator, "refund", refuses)
    await succeed(checkout, second)
    assert [each.status for each in await refunds(checkout)] == ["failed"]
    assert await open_incidents(checkout) == [("automatic_refund", "incident_detail.automatic_refund_failed")]
    assert (await checkout.api("GET", "/balance"))["balance"] == 10_000
    await check_books(checkout.ctx.db)


async def test_a_merchant_cannot_refund_it_a_second_time(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    both = await settlements(checkout, await two_attempts(checkout))
    for settlement in both:
        await settle_payments(checkout.ctx.db, checkout.ctx.hand_over, AFTER_LINK_PAYMENTS, [settlement])
    (refund,) = await refunds(checkout)
    headers = {"Authorization": f"Bearer {checkout.live}"}
    url = f"{checkout.url}/v1/payments/{both[1].payment.reference}/refund"
    async with checkout.http.post(url, json={}, headers=headers) as answer:
        error = (await answer.json())["error"]
    assert (answer.status, error["reason"], error["reference"]) == (409, "already_refunded", refund.reference)
