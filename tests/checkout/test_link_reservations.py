"""A pending payment keeps its use of a `limité` link for some minutes; a later success still counts."""

import asyncio
import random
from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import select

from guichet.db.tables import payment_links, payments
from guichet.domain.payment_links import PaymentLink
from guichet.settings import Settings
from tests.checkout.checkout_fixture import Answer, CheckoutFixture, open_checkout
from tests.invariants import check_books

#: Seconds that a reservation lasts unless the setting says otherwise.
RESERVED = 15 * 60


async def uses(checkout: CheckoutFixture) -> tuple[int, int | None]:
    """`uses_count` and `uses_left` of the newest link."""
    link = (await checkout.api("GET", "/payment-links"))[0]
    return link["uses_count"], link["uses_left"]


async def confirm(checkout: CheckoutFixture, waiting: str, reference: str) -> None:
    """The customer confirms, and looks at the payment's page again."""
    checkout.operator.approve(reference)
    checkout.pass_time(6)
    assert "Paiement réussi" in (await checkout.get(waiting)).text


async def pay_at_once(checkout: CheckoutFixture, path: str, customers: int, first: int = 100) -> list[Answer]:
    forms = [(await checkout.get(path)).form("mtn") for _ in range(customers)]
    numbered = [form | {"phone_number": f"0197{n:06}"} for n, form in enumerate(forms, start=first)]
    return await asyncio.gather(*(checkout.post(path, form) for form in numbered))


async def check_uses(checkout: CheckoutFixture) -> None:
    """What the links say agrees with their payments."""
    db = checkout.ctx.db
    rows = await db.all(select(payments.c.link_id, payments.c.status, payments.c.link_reserved_until))
    held = Counter(row[0] for row in rows if row[1] == "pending" and row[2] is not None)
    succeeded = Counter(row[0] for row in rows if row[1] == "succeeded")
    for link in [PaymentLink(*row) for row in await db.all(select(payment_links))]:
        assert link.reserved_uses == link.completed_uses + held[link.id]
        assert link.uses_count == succeeded[link.id]
        assert link.max_uses is None or link.reserved_uses <= link.max_uses


async def test_a_use_that_nobody_confirms_is_free_again_after_some_minutes(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=1)
    typed = (await checkout.get(path)).form("mtn") | {"phone_number": "0197000003"}
    await checkout.waiting(path, phone="0197000002")
    checkout.pass_time(RESERVED - 1)
    assert (await checkout.get(path)).status == 409
    assert (await checkout.post(path, typed)).status == 409
    checkout.pass_time(1)
    assert (await checkout.get(path)).status == 200
    assert (await checkout.post(path, typed)).status == 303
    assert (await checkout.get(path)).status == 409
    assert await uses(checkout) == (0, 1)
    await check_uses(checkout)


async def test_a_late_success_is_credited_and_counted(any_checkout: CheckoutFixture) -> None:
    """Of a link of one use it goes back: `test_automatic_refunds.py`."""
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=2)
    late, other = [await checkout.waiting(path, phone=phone) for phone in ("0197000002", "0197000003")]
    checkout.pass_time(RESERVED)
    third = await checkout.waiting(path, phone="0197000004")
    references = list(checkout.operator.charges)
    await confirm(checkout, other, references[1])
    await confirm(checkout, third, references[2])
    assert await uses(checkout) == (2, 0)
    used_up = await checkout.get(path)
    assert (used_up.status, "déjà été utilisé" in used_up.text) == (410, True)
    await confirm(checkout, late, references[0])
    assert await uses(checkout) == (3, 0)
    assert (await checkout.api("GET", "/balance"))["balance"] == 15_000
    assert (await checkout.get(path)).status == 410
    await check_uses(checkout)
    await check_books(checkout.ctx.db)


async def test_a_late_success_takes_the_place_that_is_left(any_checkout: CheckoutFixture) -> None:
    """Two uses: one lapsed and succeeded late, one is held. There is no third."""
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=2)
    lapsing = await checkout.waiting(path, phone="0197000002")
    reference = checkout.operator.last.payment.reference
    checkout.pass_time(RESERVED)
    for phone in ("0197000003", "0197000004"):
        await checkout.waiting(path, phone=phone)
    checkout.operator.refuse(checkout.operator.last.payment.reference)
    await confirm(checkout, lapsing, reference)
    await checkout.work()
    assert (await checkout.get(path)).status == 409
    await check_uses(checkout)
    checkout.pass_time(RESERVED)
    await checkout.waiting(path, phone="0197000005")
    assert (await checkout.get(path)).status == 409
    await check_uses(checkout)


async def test_a_failure_after_the_place_was_taken_gives_nothing_back(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=1)
    first = await checkout.waiting(path, phone="0197000002")
    reference = checkout.operator.last.payment.reference
    checkout.pass_time(RESERVED)
    await checkout.waiting(path, phone="0197000003")
    checkout.operator.refuse(reference)
    checkout.pass_time(6)
    assert "Rien n’a été débité" in (await checkout.get(first)).text
    assert (await checkout.get(path)).status == 409
    await check_uses(checkout)


@pytest.mark.both_databases
async def test_sixty_four_customers_share_the_uses_that_lapsed(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=3)
    for phone in ("0197000002", "0197000003", "0197000004"):
        await checkout.waiting(path, phone=phone)
        checkout.pass_time(60)
    checkout.pass_time(RESERVED - 2 * 60)  # The time of the first two has passed, the third is still held.
    answers = await pay_at_once(checkout, path, 64)
    assert Counter(answer.status for answer in answers) == {303: 2, 409: 62}
    assert len(checkout.operator.charges) == 5
    await check_uses(checkout)


@pytest.mark.both_databases
async def test_a_place_is_taken_from_a_payment_that_is_settled_at_that_moment(any_checkout: CheckoutFixture) -> None:
    """Whichever comes first, each use is given back or counted once."""
    checkout = any_checkout
    rng = random.Random(20261122)
    path = await checkout.link(type="limité", max_uses=4)
    waiting: dict[str, str] = {}
    for step in range(12):
        page = await checkout.get(path)
        forms = [(await checkout.get(path)).form("mtn") for _ in range(6)] if page.status == 200 else []
        for reference in rng.sample(sorted(waiting), min(3, len(waiting))):
            checkout.operator.approve(reference) if rng.random() < 0.3 else checkout.operator.refuse(reference)
        phones = [f"0197{step:03}{n:03}" for n in range(2, 2 + len(forms))]
        new = [checkout.post(path, form | {"phone_number": phone}) for form, phone in zip(forms, phones, strict=True)]
        answers = await asyncio.gather(*new, *(checkout.get(page) for page in waiting.values()))
        assert {answer.status for answer in answers} <= {200, 303, 409, 410}
        tokens = await checkout.ctx.db.all(select(payments.c.reference, payments.c.checkout_token))
        waiting |= {reference: f"{path}/{token}" for reference, token in tokens}
        await check_uses(checkout)
        checkout.pass_time(rng.choice([6, 6, 400, RESERVED]))
    assert len(waiting) > 4, "places were taken again"
    await check_books(checkout.ctx.db)


async def test_a_payment_keeps_its_use_while_nobody_needs_it(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(type="limité", max_uses=2)
    waiting = await checkout.waiting(path, phone="0197000002")
    reference = checkout.operator.last.payment.reference
    checkout.pass_time(10 * RESERVED)
    await checkout.waiting(path, phone="0197000003")
    await confirm(checkout, waiting, reference)
    assert await uses(checkout) == (1, 1)
    assert (await checkout.get(path)).status == 409
    await check_uses(checkout)


async def test_a_permanent_link_counts_late_successes(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link()
    waiting = await checkout.waiting(path)
    reference = checkout.operator.last.payment.reference
    checkout.pass_time(10 * RESERVED)
    await confirm(checkout, waiting, reference)
    assert await uses(checkout) == (1, None)
    assert (await checkout.get(path)).status == 200
    await check_uses(checkout)


@pytest.mark.parametrize("minutes", [1, 60])
async def test_the_setting_says_how_long_a_use_is_kept(sqlite_settings: Settings, minutes: int) -> None:
    async with open_checkout(replace(sqlite_settings, link_reservation_minutes=minutes)) as checkout:
        path = await checkout.link(type="limité", max_uses=1)
        await checkout.waiting(path)
        checkout.pass_time(minutes * 60 - 1)
        assert (await checkout.get(path)).status == 409
        checkout.pass_time(1)
        assert (await checkout.get(path)).status == 200
