"""A cache of what every request reads: API keys, catalogues. A change is seen within one second (D39)."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from guichet.clock import SECOND, Clock, Instant

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Less than the second that is promised, so that the read itself fits in.
FRESH_FOR: Final = 9 * SECOND // 10
_MOST: Final = 10_000


class ReadCache(Generic[K, V]):
    """Remembers up to 10 000 values for 0.9 s each; None is not remembered, so a new key works at once."""

    def __init__(self, clock: Clock, load: Callable[[K], Awaitable[V]]) -> None:
        self._clock = clock
        self._load = load
        self._values: OrderedDict[K, tuple[Instant, V]] = OrderedDict()

    async def get(self, key: K) -> V:
        now = self._clock.now()
        if (held := self._values.get(key)) and 0 <= now - held[0] < FRESH_FOR:
            return held[1]
        value = await self._load(key)
        if value is None:
            self._values.pop(key, None)
            return value
        self._values[key] = (now, value)
        self._values.move_to_end(key)
        if len(self._values) > _MOST:
            self._values.popitem(last=False)
        return value
