"""Token buckets: how often something may be done for each of many keys, so that no stranger decides how often.

Time is monotonic microseconds (`Clock.monotonic`), which nobody can set back.
"""

from typing import Final

from guichet.clock import SECOND

#: Keys that are remembered. Beyond them all are forgotten, which gives each a full bucket again: little to whoever can
#: name so many keys, since each of them has one.
_MOST_KEYS: Final = 10_000


class TokenBuckets:
    """Each key has `burst` tokens at first and gets one back every `1 / per_second` seconds, up to `burst`."""

    def __init__(self, *, burst: int, per_second: float) -> None:
        self._interval = round(SECOND / per_second)
        #: A bucket that will be full within this time has a token: it lacks `burst` - 1 at most.
        self._within = (burst - 1) * self._interval
        #: By key: when its bucket will be full. That one number says how many tokens there are at any time.
        self._full_at: dict[object, int] = {}

    def is_empty(self, key: object, now: int) -> bool:
        """Whether `take` would find no token of `key`."""
        return self._full_at.get(key, now) > now + self._within

    def take(self, key: object, now: int) -> bool:
        """Takes a token of `key`; False when there is none. `now`: monotonic microseconds."""
        full_at = self._full_at.get(key, now)
        if full_at > now + self._within:
            return False
        if len(self._full_at) >= _MOST_KEYS:
            self._full_at.clear()
        self._full_at[key] = max(full_at, now) + self._interval
        return True
