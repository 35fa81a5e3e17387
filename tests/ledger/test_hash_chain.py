"""The hash chain as it grows: which postings it covers, when, and that two workers add each posting once."""

import asyncio
import hashlib
import json
from itertools import pairwise

import pytest
from sqlalchemy import select

from guichet.clock import MINUTE, later
from guichet.db.errors import ConstraintViolated
from guichet.db.tables import ledger_hash_chain, postings
from guichet.domain.ids import MerchantId
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import Movement, collection, float_account
from guichet.ledger import hash_chain
from guichet.ledger.postings import post
from guichet.settings import Settings
from tests.ledger.ledger_history import yesterday
from tests.service_fixture import ServiceFixture


async def _post(service: ServiceFixture, merchant_id: int, subjects: range) -> None:
    async with service.ctx.db.transaction() as tx:
        for subject in subjects:
            entries = collection(float_account("live", "", "XOF"), Hundredths(5000_00), Hundredths(0), "XOF")
            await post(
                tx,
                [
                    Movement(
                        MerchantId(merchant_id),
                        "live",
                        "XOF",
                        "payment.succeeded",
                        subject,
                        entries,
                        service.clock.now(),
                    )
                ],
            )


async def test_a_recent_posting_is_not_in_the_hash_chain_yet(settings: Settings) -> None:
    async with yesterday(settings) as service:
        merchant = await service.merchant()
        await _post(service, merchant.id, range(3))
        await service.run_worker(119)
        assert await service.ctx.db.scan(select(ledger_hash_chain)) == []
        await _post(service, merchant.id, range(3, 5))
        await service.run_worker(10)
        await service.run_worker(200)
        links = await service.ctx.db.scan(select(ledger_hash_chain).order_by(ledger_hash_chain.c.id))
        assert [(row[1], row[2], row[3]) for row in links] == [(1, 3, "1-3"), (4, 5, "4-5")]


async def test_the_digests_can_be_recomputed_from_the_documented_format(settings: Settings) -> None:
    """The format is public: `previous digest, then each row as a JSON array on a line of its own`."""
    async with yesterday(settings) as service:
        merchant = await service.merchant()
        await _post(service, merchant.id, range(1, 1203))
        await service.run_worker(200)
        rows = [list(row) for row in await service.ctx.db.scan(select(postings).order_by(postings.c.id))]
        links = await service.ctx.db.scan(select(ledger_hash_chain).order_by(ledger_hash_chain.c.id))
    assert [row[2] - row[1] + 1 for row in links] == [500, 500, 202]
    for link, following in pairwise(links):
        assert following[1] == link[2] + 1
    digest = "0" * 64
    for _, first, last, _, row_hashes, stated, _ in links:
        lines = [json.dumps(row, separators=(",", ":")) for row in rows if first <= row[0] <= last]
        digest = hashlib.sha256("\n".join([digest, *lines]).encode()).hexdigest()
        assert stated == digest
        assert row_hashes == "".join(hashlib.sha256(line.encode()).hexdigest()[:16] for line in lines)


async def test_two_workers_add_each_posting_once(settings: Settings) -> None:
    async with yesterday(settings) as service:
        merchant = await service.merchant()
        await _post(service, merchant.id, range(1, 8))
        now = later(service.clock.now(), 3 * MINUTE)
        await asyncio.gather(*(hash_chain.extend_hash_chain(service.ctx.db, now) for _ in range(5)))
        assert [row[3] for row in await service.ctx.db.scan(select(ledger_hash_chain))] == ["1-7"]


async def test_ids_of_rolled_back_rows_do_not_count_as_missing(settings: Settings) -> None:
    async with yesterday(settings) as service:
        merchant = await service.merchant()
        await _post(service, merchant.id, range(1, 3))
        for _ in range(2):
            with pytest.raises(ConstraintViolated):
                await _post(service, merchant.id, range(7, 0, -1))
        await _post(service, merchant.id, range(8, 10))
        await service.run_worker(200)
        ids = [row[0] for row in await service.ctx.db.scan(select(postings.c.id).order_by(postings.c.id))]
        [row] = await service.ctx.db.scan(select(ledger_hash_chain))
        assert hash_chain.parse_ids(row[3], 100) == ids
        assert row[3] == hash_chain.format_ids(ids)


def test_ids_are_written_as_ranges() -> None:
    for ids in ([], [1], [1, 2, 3], [1, 3], [4, 5, 9, 11, 12, 13]):
        assert hash_chain.parse_ids(hash_chain.format_ids(ids), 100) == ids
    assert hash_chain.format_ids([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
    assert hash_chain.parse_ids("1-999999999999", 3) == [1, 2, 3]
    assert hash_chain.parse_ids("one", 3) == []
