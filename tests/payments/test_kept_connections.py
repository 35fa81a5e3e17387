"""What outlasts a test (`tests/kept_connections.py`, `tests/kept_loops.py`) carries nothing of it into the next."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

from guichet.bootstrap import database
from guichet.settings import Settings
from tests.kept_loops import KeptLoop

SESSION = text("SELECT pg_backend_pid(), current_setting('application_name')")
RENAMED = text("SELECT set_config('application_name', 'left', false)")
LOCKED = text("SELECT pg_advisory_lock(1)")


async def _read(settings: Settings, *statements: Any) -> Any:
    """The first statement's row; all by the one connection of a database that is opened and closed."""
    db = database(settings)
    await db.open()
    try:
        rows = [await db.one(statement) for statement in statements]
        return tuple(rows[0] or ())
    finally:
        await db.close()


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_session_is_used_again_as_new(settings: Settings) -> None:
    first = await _read(settings, SESSION, RENAMED, LOCKED)
    other = await asyncpg.connect(settings.database_url)
    assert await other.fetchval("SELECT pg_try_advisory_lock(1)")
    await other.close()
    assert await _read(settings, SESSION) == first


def test_a_loop_is_used_again_whole_with_nothing_running() -> None:
    left: list[asyncio.Task[Any]] = []
    ended: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            ended.append("generator")

    async def leave(generator: AsyncIterator[int]) -> None:
        left.append(asyncio.create_task(asyncio.Event().wait()))
        assert await asyncio.to_thread(int) == 0
        assert await anext(generator) == 1

    loops = []
    for times in (1, 2):
        generator = numbers()
        with asyncio.Runner(loop_factory=KeptLoop.new) as runner:
            runner.run(leave(generator))
            loops.append(runner.get_loop())
        assert left[-1].cancelled()
        assert len(ended) == times
    assert loops[0] is loops[1]
