"""A short memory of what every request reads: what it keeps, and for how long."""

from guichet.db.read_cache import ReadCache
from tests.fakes.clock import ManualClock


async def test_a_change_is_seen_within_a_second() -> None:
    clock, stored = ManualClock(), {"key": 1}
    loads = 0

    async def load(key: str) -> int | None:
        nonlocal loads
        loads += 1
        return stored.get(key)

    memory = ReadCache(clock, load)
    assert [await memory.get("key") for _ in range(5)] == [1] * 5
    assert loads == 1
    stored["key"] = 2
    clock.advance(0.89)
    assert await memory.get("key") == 1
    clock.advance(0.02)
    assert await memory.get("key") == 2
    clock.advance(1)
    del stored["key"]
    assert await memory.get("key") is None


async def test_a_missing_row_is_not_cached() -> None:
    stored: dict[str, int] = {}

    async def load(key: str) -> int | None:
        return stored.get(key)

    memory = ReadCache(ManualClock(), load)
    assert await memory.get("new") is None
    stored["new"] = 1
    assert await memory.get("new") == 1


async def test_a_clock_that_goes_back_does_not_freeze_the_cache() -> None:
    clock, stored = ManualClock(), {"key": 1}

    async def load(key: str) -> int | None:
        return stored[key]

    memory = ReadCache(clock, load)
    assert await memory.get("key") == 1
    stored["key"] = 2
    clock.advance(-3600)
    assert await memory.get("key") == 2


async def test_the_size_of_the_cache_is_bounded() -> None:
    async def load(key: int) -> int | None:
        return key

    memory = ReadCache(ManualClock(), load)
    for key in range(10_050):
        await memory.get(key)
    assert len(memory._values) == 10_000
