"""What the bench loads is what Guichet would have stored, and the reads of the console cost no more when there are more
payments: SQLite counts the steps that each of them takes."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, cast

from bench import seed, servers
from guichet.bootstrap import service
from guichet.clock import DAY, HOUR, Instant, earlier, later
from guichet.console.overview.figures import Days
from guichet.context import AppContext
from guichet.db.lists.pages import PageBounds
from guichet.db.sqlite.database import SqliteDatabase
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payments import PaymentSummary
from guichet.history import staff_search
from guichet.history.figures import month_figures
from guichet.history.search import search
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.wallet_statement import newest_movements
from guichet.payments.lists import PaymentFilter, page
from guichet.server.health_checks import failing_endpoints
from guichet.webhooks import delivery_log
from guichet.webhooks.delivery_log import DeliveryFilter
from guichet.webhooks.resend import listed

FEW, MANY = 2_000, 20_000
MINE: tuple[MerchantId, Environment] = (MerchantId(1), "test")
FREQUENT_NUMBER, FREQUENT_NAME = seed.FREQUENT[0], "Awa Diallo"
EVER = Instant(0)


async def _figures(ctx: AppContext) -> None:
    days = Days.until(ctx.clock.now(), ctx.settings.time_zone)
    await month_figures(ctx.db, *MINE, days.bounds, "XOF", 7, days.bounds[-2])


async def _movements(ctx: AppContext) -> None:
    now = ctx.clock.now()
    await newest_movements(ctx.db, WalletKey(*MINE, "XOF"), EVER, now, 26, now)


async def _month(ctx: AppContext) -> None:
    since = earlier(ctx.clock.now(), 200 * DAY + HOUR // 3)
    wanted = PaymentFilter(since=since, until=later(since, 30 * DAY))
    await page(ctx.db, *MINE, PaymentSummary, wanted, PageBounds(26))


async def _search(ctx: AppContext, typed: str, *phone_numbers: str) -> None:
    await search(ctx.db, *MINE, typed, phone_numbers, ctx.clock.now())


READS: dict[str, Callable[[AppContext], Awaitable[Any]]] = {
    "overview": _figures,
    "payments": lambda ctx: page(ctx.db, *MINE, PaymentSummary, PaymentFilter(), PageBounds(26)),
    "payments of a status": lambda ctx: page(
        ctx.db, *MINE, PaymentSummary, PaymentFilter(status="failed"), PageBounds(26)
    ),
    "payments of a month": _month,
    "number of a tenth of all": lambda ctx: _search(ctx, FREQUENT_NUMBER, FREQUENT_NUMBER),
    "name of a tenth of all": lambda ctx: _search(ctx, FREQUENT_NAME),
    "external_id": lambda ctx: _search(ctx, seed.external_id(7)),
    "beginning of all external_ids": lambda ctx: _search(ctx, "order-"),
    "last four digits": lambda ctx: _search(ctx, FREQUENT_NUMBER[-4:]),
    "staff: number of a tenth of all": lambda ctx: staff_search.search(ctx.db, ctx.registry, FREQUENT_NUMBER),
    "staff: deliveries": lambda ctx: listed(ctx.db, None, EVER, None),
    "staff: a merchant's deliveries": lambda ctx: listed(ctx.db, MINE[0], EVER, "success"),
    "staff: none of a merchant's deliveries": lambda ctx: listed(ctx.db, MINE[0], EVER, "failed"),
    "staff: failing endpoints": lambda ctx: failing_endpoints(ctx.db, ctx.clock.now()),
    "deliveries": lambda ctx: delivery_log.page(ctx.db, *MINE, PageBounds(26)),
    "no deliveries": lambda ctx: delivery_log.page(ctx.db, *MINE, PageBounds(26), DeliveryFilter("failed")),
    "statement": _movements,
}
#: How many times the steps may grow. Figures by hour become more until each hour has every operator and result; failing
#: endpoints are looked for among the deliveries of a day; four digits among the payments of 31 days, at most 10 000.
MOST = {**dict.fromkeys(READS, 2.0), "overview": 10, "staff: failing endpoints": 8, "last four digits": 10}


async def test_reads_of_the_console_do_not_grow(tmp_path: Path) -> None:
    steps: dict[int, dict[str, int]] = {}
    for count in (FEW, MANY):
        async with _seeded(tmp_path / str(count), count) as ctx:
            steps[count] = {name: await _steps(ctx, read) for name, read in READS.items()}
    grown = {name: steps[MANY][name] / steps[FEW][name] for name in READS}
    assert {name: times for name, times in grown.items() if times > MOST[name]} == {}, (grown, steps)


@asynccontextmanager
async def _seeded(home: Path, count: int) -> AsyncIterator[AppContext]:
    settings = servers.settings_for(home)
    await seed.seed(settings, count)
    with closing(sqlite3.connect(settings.sqlite_path)) as connection:
        # The rows keep the rules of the tables, which the load does not check.
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        total = "SELECT row_count FROM list_counts WHERE list_name = 'payments' AND level = 'all' AND status = ''"
        number = count // 2 + 1
        assert sum(row[0] for row in connection.execute(total)) == count
        stored = connection.execute(
            "SELECT phone_number, firstname, lastname, external_id, status FROM payments WHERE id = ?", (number + 1,)
        ).fetchone()
        assert stored == (*seed.customer(number, count), seed.external_id(number), seed.status_of(number))
    async with service(settings) as opened:
        yield opened.ctx


async def _steps(ctx: AppContext, read: Callable[[AppContext], Awaitable[Any]]) -> int:
    """Tens of SQLite's steps, of the second time: the first one may keep something for those after it."""
    await read(ctx)
    db = cast(SqliteDatabase, ctx.db)
    scanning = [db._scan_connections.get() for _ in range(2)]
    taken = 0

    def count() -> bool:
        nonlocal taken
        taken += 1
        return False

    for connection in (db._reader, *scanning):
        connection.set_progress_handler(count, 10)
    for connection in scanning:
        db._scan_connections.put(connection)
    await read(ctx)
    await asyncio.sleep(0)
    db._reader.set_progress_handler(None)
    for _ in scanning:
        connection = db._scan_connections.get()
        connection.set_progress_handler(None)
        db._scan_connections.put(connection)
    return taken
