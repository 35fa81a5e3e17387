"""Single items that come at the same time are written as one batch."""

import asyncio

import pytest

from guichet.db.batching import Batching
from guichet.db.errors import StorageUnavailable
from tests.patience import PATIENCE


async def test_simultaneous_items_are_written_in_one_batch() -> None:
    written: list[list[int]] = []
    gate = asyncio.Event()

    async def write(items: list[int]) -> list[int]:
        written.append(items)
        await gate.wait()
        if 7 in items:
            raise ValueError("7")
        return [10 * item for item in items]

    batches = Batching(write, most=3)
    alone = asyncio.create_task(batches.add(1))
    while not written:
        await asyncio.sleep(0)
    others = [asyncio.create_task(batches.add(item)) for item in (2, 3, 4, 5, 6, 7)]
    await asyncio.sleep(0)
    others[1].cancel()
    gate.set()
    results = await asyncio.gather(alone, *others, return_exceptions=True)
    assert written == [[1], [2, 3, 4], [5, 6, 7]]
    assert [result if isinstance(result, int) else type(result) for result in results] == [
        10, 20, asyncio.CancelledError, 40, ValueError, ValueError, ValueError,
    ]  # fmt: skip
    assert await batches.add(8) == 80, "an error is over with its batch"


async def test_as_many_batches_as_may_are_written_at_once_and_nobody_waits_for_ever() -> None:
    written: list[list[int]] = []
    gate = asyncio.Event()

    async def write(items: list[int]) -> list[int]:
        written.append(items)
        await gate.wait()
        return items

    batches = Batching(write, most=3, at_once=2, patience=0.05)
    begun: list[asyncio.Task[int]] = []
    for items in ((1, 2), (3,)):
        begun += [asyncio.create_task(batches.add(item)) for item in items]
        while written[-1:] != [list(items)]:
            await asyncio.sleep(0)
    for item in (4, 5):
        with pytest.raises(StorageUnavailable):
            await batches.add(item)
    begun.append(asyncio.create_task(batches.add(6)))
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*begun) == [1, 2, 3, 6]
    assert written == [[1, 2], [3], [6]], "what was given up is not written"


async def test_items_that_the_next_batch_has_no_room_for_do_not_wait_for_ever_either() -> None:
    gates = [asyncio.Event(), asyncio.Event()]

    async def write(items: list[int]) -> list[int]:
        await gates[items[0]].wait()
        return items

    batches = Batching(write, most=1, patience=0.05)
    first, second = (asyncio.create_task(batches.add(item)) for item in (0, 1))
    third = asyncio.create_task(batches.add(2))
    await asyncio.sleep(0)
    gates[0].set()
    assert await first == 0
    with pytest.raises(StorageUnavailable):
        await third
    gates[1].set()
    assert await second == 1


async def test_an_item_that_comes_right_after_an_answer_is_written() -> None:
    async def write(items: list[int]) -> list[int]:
        return items

    batches = Batching(write, most=3)
    async with asyncio.timeout(PATIENCE):
        assert [await batches.add(item) for item in (1, 2, 3)] == [1, 2, 3]


async def test_what_comes_while_a_batch_gathers_is_written_with_it() -> None:
    written: list[list[int]] = []

    async def write(items: list[int]) -> list[int]:
        written.append(items)
        await asyncio.sleep(0)
        return items

    batches = Batching(write, most=3, at_once=2, gathers=0.1)
    added: list[asyncio.Task[int]] = []
    for item in (1, 2):
        added.append(asyncio.create_task(batches.add(item)))
        for _ in range(5):
            await asyncio.sleep(0)
    assert not written
    async with asyncio.timeout(PATIENCE):
        assert await asyncio.gather(*added) == [1, 2]
        assert await batches.add(3) == 3, "alone"
    assert written == [[1, 2], [3]]


async def test_a_full_batch_gathers_no_more() -> None:
    async def write(items: list[int]) -> list[int]:
        return items

    batches = Batching(write, most=3, gathers=10 * PATIENCE)
    async with asyncio.timeout(PATIENCE):
        assert await asyncio.gather(*map(batches.add, (1, 2, 3))) == [1, 2, 3]


async def test_two_batches_that_gather_at_once_write_each_item_once() -> None:
    written: list[list[int]] = []
    gate = asyncio.Event()

    async def write(items: list[int]) -> list[int]:
        written.append(items)
        if 1 in items:
            await gate.wait()
        return items

    batches = Batching(write, most=8, at_once=2, gathers=0.02)
    first = asyncio.create_task(batches.add(1))
    while not written:
        await asyncio.sleep(0.001)
    second = asyncio.create_task(batches.add(2))
    await asyncio.sleep(0)
    gate.set()
    async with asyncio.timeout(PATIENCE):
        assert [await first, await second] == [1, 2]
        assert await batches.add(3) == 3
    assert written == [[1], [2], [3]]
