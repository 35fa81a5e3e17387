"""Request limits that merchants have of their own (`guichet merchant limits`; D166).

Who sends a request is known only once its key was looked up, and the limit stands in front of that. So the limits are
learnt from requests that were authenticated: nothing is read for them, and while no merchant has one nothing is done.
"""

from dataclasses import dataclass
from typing import Final

from starlette.types import Scope

from guichet.domain.errors import KeyExpired, Unauthorized
from guichet.domain.merchants import Caller
from guichet.merchants.api_keys import key_hash
from guichet.server.rate_limits import RateLimit
from guichet.server.request_context import CALLER, ERROR_CODE, header

#: Keys that a process remembers.
_MOST: Final = 10_000
_KEY_FAULTS: Final = (Unauthorized.code, KeyExpired.code)


@dataclass(frozen=True, slots=True)
class MerchantRate:
    """`key`: what the requests are counted by."""

    limit: RateLimit
    key: str


class MerchantRates:
    """By the hash of the key that a request names. The first request of a key in a process is counted for its address
    as well, because its merchant is not known yet."""

    def __init__(self) -> None:
        self._rates: dict[str, MerchantRate] = {}

    def of(self, scope: Scope) -> MerchantRate | None:
        """The limit of the request's merchant; None if it has none, or is not known yet."""
        return self._rates.get(_key_of(scope)) if self._rates else None

    def learn(self, scope: Scope) -> MerchantRate | None:
        """After the request: what it must still be counted for, if its merchant's limit was not known before.

        A key that works no more is forgotten: its requests must not use up what the merchant may ask.
        """
        caller: Caller | None = scope.get(CALLER)
        own = None if caller is None else caller.merchant.rate_limit
        if own is None and not self._rates:
            return None
        key = _key_of(scope)
        if caller is None or own is None:
            if caller is not None or scope.get(ERROR_CODE) in _KEY_FAULTS:
                self._rates.pop(key, None)
            return None
        before = self._rates.pop(key, None)
        while len(self._rates) >= _MOST:
            del self._rates[next(iter(self._rates))]
        self._rates[key] = MerchantRate(RateLimit("merchant", own), str(caller.merchant.id))
        return self._rates[key] if before is None else None


def _key_of(scope: Scope) -> str:
    """A hash of the key, read as `Authenticator` reads it."""
    return key_hash((header(scope, b"authorization") or "").partition(" ")[2].strip())
