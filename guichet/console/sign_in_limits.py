"""How often somebody may try to sign in, counted across processes (`accounts/sign_in.py` says what is counted when)."""

from typing import Final

from guichet import metrics
from guichet.accounts.sign_in import AttemptKind
from guichet.clock import DAY, HOUR, MINUTE
from guichet.server.rate_limit import RateLimiter
from guichet.server.rate_limits import RateLimit

_LIMITS: Final[dict[AttemptKind, RateLimit]] = {
    # A whole town may share an address.
    "address": RateLimit("sign-in-address", 60, window=15 * MINUTE),
    # Of all unknown browsers together, which could otherwise go on guessing for ever.
    "account": RateLimit("sign-in-account", 20, window=DAY),
    "factor": RateLimit("sign-in-factor", 20, window=DAY),
    "device": RateLimit("sign-in-device", 10, window=15 * MINUTE),
    "factor_device": RateLimit("sign-in-factor-device", 8, window=15 * MINUTE),
    "mail": RateLimit("sign-in-mail", 3, window=HOUR),
    "told": RateLimit("sign-in-told", 1, window=DAY),
}


class SignInLimits:
    def __init__(self, limiter: RateLimiter) -> None:
        self._limiter = limiter

    async def take(self, kind: AttemptKind, key: str) -> int:
        limit = _LIMITS[kind]
        allowance = await self._limiter.count(limit, key)
        if allowance.allowed:
            return 0
        metrics.RATE_LIMITED.labels(limit.name).inc()
        return allowance.retry_after
