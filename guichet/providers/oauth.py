"""Access tokens that expire: fetched when needed, kept until shortly before their end, renewed once after a 401."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from guichet.clock import SECOND, Clock, Instant
from guichet.providers.base import NotProcessed, Unknown
from guichet.providers.client import ProviderResponse

#: A token is given up this long before its end: the call it is for takes time too.
_SPARE: Final = 60 * SECOND
#: What is assumed of a token whose end is not stated, in seconds.
_UNSTATED: Final = 300

Outcome = ProviderResponse | NotProcessed | Unknown


class AccessTokens:
    """The token of one product of one connection. The only state a connector has; losing it costs one call."""

    def __init__(self, clock: Clock, fetch: Callable[[], Awaitable[Outcome]]) -> None:
        self._clock = clock
        self._fetch = fetch
        self._token: str | None = None
        self._until: Instant = 0
        self._fetching = asyncio.Lock()

    async def call(self, send: Callable[[str], Awaitable[Outcome]]) -> Outcome:
        """`send` with a token. Without one nothing was sent: NotTaken. A 401 to a kept token is worth a new one."""
        kept = self._token if self._clock.now() < self._until else None
        token = kept or await self._renewed()
        if isinstance(token, NotProcessed):
            return token
        answer = await send(token)
        if kept is None or not isinstance(answer, ProviderResponse) or answer.status != 401:
            return answer
        if self._token == kept:
            self._token, self._until = None, 0
        again = await self._renewed()
        return again if isinstance(again, NotProcessed) else await send(again)

    async def _renewed(self) -> str | NotProcessed:
        async with self._fetching:
            if self._token is not None and self._clock.now() < self._until:
                return self._token
            answer = await self._fetch()
            if not isinstance(answer, ProviderResponse):
                return NotProcessed("operator_unavailable", f"no token: {answer.raw}")
            body = (answer.object() or {}) if answer.ok else {}
            token = body.get("access_token")
            if not isinstance(token, str) or not token:
                ours = answer.status in (400, 401, 403)
                # The body of a token answer may hold a token: only its status is told.
                return NotProcessed("configuration" if ours else "operator_unavailable", f"no token: {answer.status}")
            try:
                life = int(body.get("expires_in", _UNSTATED)) * SECOND
            except (TypeError, ValueError):
                life = _UNSTATED * SECOND
            self._token = token
            self._until = self._clock.now() + life - min(_SPARE, life // 2)
            return token
