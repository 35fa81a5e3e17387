"""When a request is sent again, and after how long."""

from __future__ import annotations

import random

from guichet_sdk.errors import ApiConnection, GuichetError, RateLimited, ServerError

#: Seconds before the first repetition; each next one waits twice as long, up to the second number.
FIRST, LONGEST = 0.5, 8.0
#: A longer `Retry-After` is for the caller to decide about.
PATIENCE = 60.0


def delay(error: GuichetError, attempt: int, *, repeatable: bool) -> float | None:
    """Seconds to wait after attempt number `attempt` (0 is the first), or None: do not repeat.

    `repeatable`: doing it twice does no harm, as with a read, or a creation with its Idempotency-Key. A `ServerError`
    with a reference is about a payment that failed for good.
    """
    if isinstance(error, RateLimited):
        wait = error.retry_after or 0.0
        return None if wait > PATIENCE else wait + _backoff(attempt)
    lost = isinstance(error, ApiConnection) or (isinstance(error, ServerError) and error.reference is None)
    return _backoff(attempt) if repeatable and lost else None


def _backoff(attempt: int) -> float:
    """With jitter, or everybody whom an outage cut off would come back at one instant."""
    return float(min(FIRST * 2**attempt, LONGEST)) * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
