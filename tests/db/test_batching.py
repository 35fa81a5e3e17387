"""Single items that come at the same time are written as one batch."""

import asyncio

from guichet.db.batching import Batching


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
