"""Writes that are repeated when their connection breaks: nobody knows then whether the first one happened
(docs/decisions.md, "Lost answers")."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from guichet.db.engine import Database
from guichet.db.errors import ConnectionLost

T = TypeVar("T")

#: How often in all a write is tried.
_ATTEMPTS: Final = 3


async def repeat_when_lost(db: Database, write: Callable[[], Awaitable[T]]) -> T:
    """The result of `write`, which is done again when its connection is lost, because the primary stopped or changed.

    `write` must find out by a constraint or a condition that it was done before, and then change nothing. What it found
    may be on the old primary's disk alone so far, so this waits for the standby before it is believed.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            result = await write()
        except ConnectionLost:
            if not attempts_left:
                raise
        else:
            break
    if attempts_left < _ATTEMPTS - 1:
        await db.wait_for_replication()
    return result
