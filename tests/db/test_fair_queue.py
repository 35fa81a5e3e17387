"""Claims of a fair queue: turns, shares, first attempts before retries."""

from collections import Counter
from collections.abc import Sequence
from uuid import uuid4

from guichet.clock import SECOND, Instant, later
from guichet.db import tables as t
from guichet.db.engine import Database
from guichet.db.queues.fair_queue import RETRIES_EVERY, FairQueue
from guichet.db.queues.fair_share import Shares
from guichet.domain.events import Delivery
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import EndedAttempt
from guichet.webhooks.sender import Attempt
from tests.db.rows import DELIVERY, MERCHANT, insert_rows

NOW = Instant(1_000 * SECOND)
UNTIL = later(NOW, 30 * SECOND)
ALL = 1_000


def shares(
    others: int = ALL, free: dict[str, int] | None = None, slow: Sequence[str] = (), slow_free: int = 0
) -> Shares:
    return Shares(free or {}, others, list(slow), slow_free)


async def add(db: Database, merchant: int, rows: int, *, due: int = 1, attempts: int = 0, **columns: object) -> None:
    common = {**DELIVERY, "merchant_id": merchant, "attempts": attempts, **columns}
    made = [{**common, "reference": str(uuid4()), "next_attempt_at": due + number} for number in range(rows)]
    await insert_rows(db, t.webhook_deliveries, made)


async def add_merchants(db: Database, most: int) -> None:
    await insert_rows(db, t.merchants, [{**MERCHANT, "name": "N"}] * (most - 1))


async def claimed(
    queue: FairQueue[Delivery], db: Database, most: int, allowed: Shares, now: Instant = NOW
) -> list[int]:
    """The merchants of one claim."""
    found = await queue.claim(db, now, UNTIL, most, allowed)
    return sorted(job.merchant_id for job in found.jobs)


async def test_every_merchant_gets_one_before_any_gets_two(merchant_db: Database) -> None:
    """However long the backlog of the one that came first."""
    await add_merchants(merchant_db, 4)
    await add(merchant_db, 1, 600)
    for merchant in (2, 3, 4):
        await add(merchant_db, merchant, 2, due=5_000)
    queue = deliveries.delivery_queue()
    assert await claimed(queue, merchant_db, 4, shares()) == [1, 2, 3, 4]
    assert await claimed(queue, merchant_db, 6, shares()) == [1, 1, 1, 2, 3, 4]


async def test_slots_go_round(merchant_db: Database) -> None:
    """With fewer slots than merchants, nobody is served twice before everybody was served once."""
    await add_merchants(merchant_db, 5)
    for merchant in range(1, 6):
        await add(merchant_db, merchant, 10)
    queue = deliveries.delivery_queue()
    served = [await claimed(queue, merchant_db, 2, shares()) for _ in range(5)]
    assert served == [[1, 2], [3, 4], [1, 5], [2, 3], [4, 5]]


async def test_a_merchant_gets_its_share_and_no_more(merchant_db: Database) -> None:
    await add_merchants(merchant_db, 4)
    for merchant in range(1, 5):
        await add(merchant_db, merchant, 50)
    queue = deliveries.delivery_queue()
    found = await claimed(queue, merchant_db, 40, shares(2, {"1": 0, "2": 20, "3": 1}))
    assert Counter(found) == {2: 20, 3: 1, 4: 2}


async def test_merchants_in_timeout_get_what_they_may_have_together(merchant_db: Database) -> None:
    await add_merchants(merchant_db, 6)
    for merchant in range(1, 7):
        await add(merchant_db, merchant, 9)
    slow = ["1", "2", "3", "4", "5"]
    queue = deliveries.delivery_queue()
    served: set[int] = set()
    while len(served) < len(slow):  # However long another one has something to send: chance leaves nobody out.
        found = await claimed(queue, merchant_db, 40, shares(1, dict.fromkeys(slow, 1), slow, 3))
        taken = [merchant for merchant in found if merchant != 6]
        assert len(taken) == len(set(taken)) <= 3
        served |= set(taken)
        assert found


async def test_first_attempts_go_before_retries(merchant_db: Database) -> None:
    await add(merchant_db, 1, 300, attempts=2)
    await add(merchant_db, 1, 3, due=5_000)
    queue = deliveries.delivery_queue()
    await queue.claim(merchant_db, NOW, UNTIL, 0, shares())  # The look at retries of this second is over.
    found = (await queue.claim(merchant_db, NOW, UNTIL, 5, shares())).jobs
    assert [job.attempts for job in found] == [1, 1, 1]
    found = (await queue.claim(merchant_db, NOW, UNTIL, 5, shares())).jobs
    assert [job.attempts for job in found] == [3] * 5


async def test_retries_are_looked_at_once_a_second_in_any_case(merchant_db: Database) -> None:
    await add(merchant_db, 1, 300, due=5_000)
    await add(merchant_db, 1, 3, attempts=2)
    queue = deliveries.delivery_queue()
    await queue.claim(merchant_db, NOW, UNTIL, 0, shares())
    assert [job.attempts for job in (await queue.claim(merchant_db, NOW, UNTIL, 2, shares())).jobs] == [1, 1]
    due = later(NOW, RETRIES_EVERY)
    assert [job.attempts for job in (await queue.claim(merchant_db, due, UNTIL, 2, shares())).jobs] == [3, 3]


async def test_a_claim_of_what_nobody_may_have_now_says_to_look_again_soon(merchant_db: Database) -> None:
    await add(merchant_db, 1, 3)
    found = await deliveries.delivery_queue().claim(merchant_db, NOW, UNTIL, 5, shares(0))
    assert found.jobs == []
    assert found.next_due is not None
    assert NOW < found.next_due < later(NOW, SECOND)


async def test_a_saturated_destination_is_left_alone(merchant_db: Database) -> None:
    await add_merchants(merchant_db, 2)
    await add(merchant_db, 1, 3, destination="shared:443")
    await add(merchant_db, 2, 3, destination="own:443")
    found = await deliveries.delivery_queue().claim(merchant_db, NOW, UNTIL, 9, shares(), ["shared:443"])
    assert [job.destination for job in found.jobs] == ["own:443"] * 3


async def test_an_event_waits_until_the_one_before_it_was_tried(merchant_db: Database) -> None:
    await add(merchant_db, 1, 600, due=1, destination="other:443")
    await add(merchant_db, 1, 2, due=0, payment_id=7)
    queue = deliveries.delivery_queue()
    found = (await queue.claim(merchant_db, NOW, UNTIL, 9, shares())).jobs
    (first,) = [job for job in found if job.payment_id == 7]
    while found := (await queue.claim(merchant_db, NOW, UNTIL, 100, shares())).jobs:
        assert not [job for job in found if job.payment_id == 7]
    await deliveries.record(merchant_db, [EndedAttempt(first, Attempt(False, 500), NOW, 5, UNTIL)])
    (second,) = (await queue.claim(merchant_db, NOW, UNTIL, 9, shares())).jobs
    assert second.id > first.id


async def test_the_claim_of_an_attempt_that_was_not_made_is_released(merchant_db: Database) -> None:
    await add(merchant_db, 1, 2, payment_id=7)
    queue = deliveries.delivery_queue()
    (first,) = (await queue.claim(merchant_db, NOW, UNTIL, 9, shares())).jobs
    again = later(NOW, SECOND)
    await deliveries.release_claims(merchant_db, [first], again)
    assert (await queue.claim(merchant_db, NOW, UNTIL, 9, shares())).jobs == [], "the second event still waits for it"
    (repeated,) = (await queue.claim(merchant_db, again, UNTIL, 9, shares())).jobs
    assert (repeated.id, repeated.attempts, repeated.last_attempt_at) == (first.id, 1, None)
    later_claim = (await queue.claim(merchant_db, UNTIL, later(UNTIL, 1), 9, shares())).jobs
    assert [job.attempts for job in later_claim] == [2]
    await deliveries.release_claims(merchant_db, [first], again)  # Another attempt was claimed since: nothing changes.
    assert [
        job.attempts for job in (await queue.claim(merchant_db, later(UNTIL, 1), later(UNTIL, 2), 9, shares())).jobs
    ] == [3]
