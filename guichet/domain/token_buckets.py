"""Token buckets: how often something may be done for each of many keys, so that no stranger decides how often.

Time is monotonic microseconds (`Clock.monotonic`), which nobody can set back.
"""

from collections import OrderedDict
from typing import Final

from guichet.clock import SECOND

#: Keys that are remembered; the one that was used longest ago is forgotten, which gives it a full bucket.
_MOST_KEYS: Final = 10_000


class TokenBuckets:
    """Each key has `burst` tokens at first and gets one back every `1 / per_second` seconds, up to `burst`."""

    def __init__(self, *, burst: int, per_second: float) -> None:
        self._burst = burst
        self._refill = per_second / SECOND
        #: By key: the tokens left, and when.
        self._left: OrderedDict[object, tuple[float, int]] = OrderedDict()

    def take(self, key: object, now: int) -> bool:
        """Takes a token of `key`; False when there is none. `now`: monotonic microseconds."""
        tokens, since = self._left.pop(key, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - since) * self._refill)
        allowed = tokens >= 1
        self._left[key] = (tokens - allowed, now)
        if len(self._left) > _MOST_KEYS:
            self._left.popitem(last=False)
        return allowed
