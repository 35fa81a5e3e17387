"""What all accounts hold, from appended rollups and the postings after them."""

from typing import Any

from guichet.clock import MINUTE, later
from guichet.ledger.hash_chain import SETTLED_AFTER, extend_hash_chain
from guichet.settings import Settings
from guichet.treasury import balances
from guichet.treasury.position import positions
from tests.fakes.scripted_provider import ScriptedProvider
from tests.ledger.test_treasury_movements import record
from tests.service_fixture import open_service


async def test_rollups_and_what_follows_them_are_the_same_as_all_postings(settings: Settings, raw_sql: Any) -> None:
    async with open_service(settings, accounts={"op": ScriptedProvider()}, routes={"mtn": ["op"]}) as service:
        db, now = service.ctx.db, service.ctx.clock.now()
        for number in range(5):
            await record(service, number, kind="opening", to="op:main", amount=1_00)
        expected = await balances.totals(db)
        assert not await balances.roll_up(db, now, 2), "nothing is settled yet"
        now = later(now, SETTLED_AFTER + MINUTE)
        await extend_hash_chain(db, now)
        assert await balances.roll_up(db, now, 2)
        await record(service, 5, kind="fee", amount=30, from_="op:main")
        assert not await balances.roll_up(db, later(now, MINUTE), 2)
        await balances.roll_up(db, later(now, 2 * MINUTE), 2)
        assert not await balances.roll_up(db, later(now, 3 * MINUTE), 2)
        assert await raw_sql.run("SELECT count(*), max(through_posting_id) FROM treasury_rollups") == [(3, 5)]
        found = await balances.totals(db)
        held = found["XOF", "float:op:main:XOF"]
        assert (held.held, expected["XOF", "float:op:main:XOF"].held) == (4_70, 5_00)
        [position] = await positions(db)
        assert (position.wallets, position.banks) == ({("op", "main"): 4_70}, {})
        assert (position.owed, position.held, position.ours, position.total) == (0, 0, 4_70, 4_70)
