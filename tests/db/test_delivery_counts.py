"""v0018 counts the deliveries that are there already, by event and status, as the triggers count later ones."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import asyncpg
from sqlalchemy import func, insert, select

from guichet.bootstrap import database
from guichet.clock import DAY, HOUR
from guichet.db.tables import list_counts, merchants, webhook_deliveries
from guichet.domain.events import DELIVERY_STATUSES
from guichet.settings import Settings
from tests.db.rows import DELIVERY, MERCHANT
from tests.db.schema import migrate_to

BEFORE, AFTER = "v0016_admits_v0015", "v0018_admits_v0016"
EVENTS = ("payment.succeeded", "payment.failed", "webhook.test")


async def _check(settings: Settings) -> None:
    await migrate_to(settings.database_url, BEFORE)
    db = database(settings)
    await db.open()
    await db.write(insert(merchants).values(MERCHANT))
    made = []
    for number in range(60):
        status, at = DELIVERY_STATUSES[number % 3], number * 7 * HOUR + 1
        row = {
            **DELIVERY,
            "reference": f"00000000-0000-4000-8000-{number:012d}",
            "event": EVENTS[number % 7 % 3],
            "status": status,
            "created_at": at,
            "delivered_at": at if status == "success" else None,
            "next_attempt_at": at if status == "pending" else None,
        }
        made.append(row)
        await db.write(insert(webhook_deliveries).values(row))
    await db.close()
    await migrate_to(settings.database_url, AFTER)
    await db.open()
    counted = select(*(list_counts.c[name] for name in ("list_name", "level", "bucket", "status", "row_count"))).where(
        list_counts.c.list_name.startswith("deliveries/")
    )
    found = {tuple(row[:4]): row[4] for row in await db.scan(counted)}
    widths = {"hour": HOUR, "day": DAY, "all": 1000 * DAY}
    expected = Counter(
        (f"deliveries/{row['event']}", level, row["created_at"] // width, row["status"])
        for row in made
        for level, width in widths.items()
    )
    assert found == expected
    assert (await db.scan(select(func.count()).select_from(webhook_deliveries)))[0][0] == 60
    await db.close()


async def test_existing_deliveries_are_counted_on_sqlite(base_settings: Settings, tmp_path: Path) -> None:
    await _check(replace(base_settings, home=tmp_path, database_url=f"sqlite:///{tmp_path / 'old.db'}"))


async def test_existing_deliveries_are_counted_on_postgresql(
    base_settings: Settings, postgres_server: str, tmp_path: Path
) -> None:
    connection = await asyncpg.connect(postgres_server)
    await connection.execute("CREATE DATABASE counted_deliveries")
    await connection.close()
    url = postgres_server.replace("/postgres?", "/counted_deliveries?")
    await _check(replace(base_settings, home=tmp_path, database_url=url))
