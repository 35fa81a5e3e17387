"""Claims: by several workers, in order of time, past saturated partitions."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest
from msgspec import structs
from sqlalchemy import update

from guichet.clock import SECOND, Instant, later
from guichet.db import tables as t
from guichet.db.engine import Database
from guichet.db.lists.pages import PageBounds
from guichet.db.queues.fair_share import Shares
from guichet.db.queues.work_queue import WINDOW, Claim
from guichet.domain.ids import MerchantId
from guichet.payments import pending
from guichet.refunds import pending as pending_refunds
from guichet.webhooks import deliveries, delivery_log
from guichet.webhooks.deliveries import EndedAttempt
from guichet.webhooks.sender import Attempt
from tests.db.rows import DELIVERY, PAYMENT, REFUND, insert_rows

ROWS = 60
NOW = Instant(1_000 * SECOND)
UNTIL = later(NOW, 30 * SECOND)


async def fill(db: Database, rows: int = ROWS) -> None:
    made = [{"reference": str(uuid4()), "next_poll_at": number} for number in range(1, rows + 1)]
    sent = [{"reference": row["reference"], "next_attempt_at": row["next_poll_at"]} for row in made]
    payments = [{**PAYMENT, **row, "external_id": f"e{number}"} for number, row in enumerate(made, 1)]
    await insert_rows(db, t.payments, payments)
    await insert_rows(db, t.refunds, [{**REFUND, **row, "payment_id": number} for number, row in enumerate(made, 1)])
    await insert_rows(db, t.webhook_deliveries, [{**DELIVERY, **row} for row in sent])


async def claim_deliveries(db: Database, now: Instant, until: Instant, most: int, _: Sequence[str] = ()) -> Claim[Any]:
    """Without limits by merchant; `fair_queue.py` has tests of its own."""
    return await deliveries.delivery_queue().claim(db, now, until, most, Shares({}, most, [], 0))


CLAIMS: dict[str, Callable[..., Awaitable[Claim[Any]]]] = {
    "payments": pending.QUEUE.claim,
    "refunds": pending_refunds.QUEUE.claim,
    "deliveries": claim_deliveries,
}


async def claimed_of(queue: str, db: Database, most: int, saturated: Sequence[str] = ()) -> Sequence[Any]:
    return (await CLAIMS[queue](db, NOW, UNTIL, most, saturated)).jobs


@pytest.mark.parametrize("queue", CLAIMS)
async def test_no_row_is_claimed_twice(merchant_db: Database, worker_dbs: list[Database], queue: str) -> None:
    await fill(merchant_db)
    claimed: Counter[int] = Counter()

    async def work(mine: Database) -> None:
        while rows := await claimed_of(queue, mine, 7):
            assert len(rows) <= 7
            claimed.update(row.id for row in rows)

    await asyncio.gather(*(work(each) for each in worker_dbs))
    for each in worker_dbs:  # What was locked by another at the last look is not lost.
        claimed.update(row.id for row in await claimed_of(queue, each, ROWS))
    assert set(claimed.values()) == {1}
    assert len(claimed) == ROWS


@pytest.mark.parametrize("queue", CLAIMS)
async def test_a_claim_takes_the_oldest_rows_up_to_its_limit(merchant_db: Database, queue: str) -> None:
    """On fresh tables, whose statistics say nothing, as after `guichet migrate`."""
    await fill(merchant_db)
    assert sorted(row.id for row in await claimed_of(queue, merchant_db, 5)) == [1, 2, 3, 4, 5]
    assert sorted(row.id for row in await claimed_of(queue, merchant_db, 5)) == [6, 7, 8, 9, 10]


async def test_a_row_can_be_claimed_again_when_its_lease_ends(merchant_db: Database) -> None:
    await fill(merchant_db, 3)
    for queue in CLAIMS:
        assert len(await claimed_of(queue, merchant_db, 9)) == 3
        assert await claimed_of(queue, merchant_db, 9) == []
    again = {queue: (await claim(merchant_db, UNTIL, UNTIL + 1, 9)).jobs for queue, claim in CLAIMS.items()}
    assert [len(jobs) for jobs in again.values()] == [3, 3, 3]
    assert [row.attempts for row in again["deliveries"]] == [2, 2, 2]


async def test_rows_of_a_saturated_partition_do_not_hide_others(merchant_db: Database) -> None:
    """However many they are, and although they are older."""
    crowd = [(number, "saturated") for number in range(1, 2 * WINDOW)]
    others = [(5_000 + number, f"free{number}") for number in range(3)]
    rows = [
        {"reference": str(uuid4()), "next_poll_at": due, "provider_account": partition}
        for due, partition in [*crowd, *others]
    ]
    await insert_rows(merchant_db, t.payments, [{**PAYMENT, **row} for row in rows])
    ours: list[dict[str, Any]] = [{**REFUND, **row, "payment_id": number} for number, row in enumerate(rows, 1)]
    for refund in ours[len(crowd) :]:
        refund["provider_account"] = None
    await insert_rows(merchant_db, t.refunds, ours)
    for queue in ("payments", "refunds"):
        found = [
            *await claimed_of(queue, merchant_db, 2, ["saturated"]),
            *await claimed_of(queue, merchant_db, 2, ["saturated"]),
        ]
        assert sorted(row.id for row in found) == [2 * WINDOW, 2 * WINDOW + 1, 2 * WINDOW + 2], queue
        assert await claimed_of(queue, merchant_db, 9, ["saturated"]) == []
        assert len(await claimed_of(queue, merchant_db, 9)) == 9, "not saturated any more"


async def test_a_claim_says_when_to_look_again(merchant_db: Database) -> None:
    await fill(merchant_db, 3)
    for claim in CLAIMS.values():
        assert (await claim(merchant_db, 2, UNTIL, 2)).next_due == 2, "there may be more"
        assert (await claim(merchant_db, 2, UNTIL, 9)).next_due == 3, "the third comes due"
        assert (await claim(merchant_db, 3, UNTIL, 1)).next_due == 3
        assert (await claim(merchant_db, 3, UNTIL, 9)).next_due == UNTIL, "the leases end"
    claimed = await pending.QUEUE.claim(merchant_db, UNTIL, later(UNTIL, 5), 9)
    assert (len(claimed.jobs), claimed.next_due) == (3, UNTIL + 5), "there are no more, and no claim asks for them"
    async with merchant_db.transaction() as tx:
        await tx.write(update(t.payments).values(status="failed", next_poll_at=None))
    assert (await pending.QUEUE.claim(merchant_db, UNTIL, UNTIL, 2)).next_due is None


async def test_results_are_recorded_in_one_batch(merchant_db: Database) -> None:
    await fill(merchant_db, 4)
    one, two, three, four = await claimed_of("deliveries", merchant_db, 4)
    outcomes = [
        EndedAttempt(one, Attempt(True, 204), NOW, 5),
        EndedAttempt(two, Attempt(False, 500), NOW, 5, next_due=UNTIL),
        EndedAttempt(three, Attempt(False, None), NOW, 5),
        EndedAttempt(structs.replace(four, attempts=0), Attempt(False, 500), NOW, 5),
    ]
    await deliveries.record(merchant_db, outcomes)
    found, _ = await delivery_log.page(merchant_db, MerchantId(1), "test", PageBounds(10))
    states = {
        row.id: (row.status, row.response_code, row.delivered_at, row.last_attempt_at, row.next_attempt_at)
        for row in found
    }
    assert states == {
        one.id: ("success", 204, NOW, NOW, None),
        two.id: ("pending", 500, None, NOW, UNTIL),
        three.id: ("failed", None, None, NOW, None),
        four.id: ("pending", None, None, None, UNTIL),  # Another attempt was claimed since.
    }


async def test_a_lease_has_one_holder(merchant_db: Database, worker_dbs: list[Database]) -> None:
    await fill(merchant_db, 1)
    # Payments and refunds number their rows apart: the first of each is leased.
    leases: list[Any] = [pending.lease, pending_refunds.lease]
    for leasing in leases:
        held = await asyncio.gather(*(leasing(each, 1, NOW, UNTIL, NOW) for each in worker_dbs for _ in range(5)))
        assert sum(row is not None for row in held) == 1
        assert await leasing(merchant_db, 1, UNTIL - 1, UNTIL, UNTIL - 1) is None
        assert await leasing(merchant_db, 1, UNTIL, UNTIL + 1, UNTIL) is not None
