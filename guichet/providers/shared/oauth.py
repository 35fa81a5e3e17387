"""OAuth access tokens: fetched when needed, kept until shortly before they expire, renewed once after a 401."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Final

from guichet.clock import SECOND, Clock, Instant, later
from guichet.domain.failures import RefusalReason
from guichet.providers.base import NotProcessed
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import CallResult, ProviderClient, ProviderResponse

#: Seconds after which a request for a token is given up.
TOKEN_TIMEOUT: Final = 8.0
#: A token is renewed this long before it expires, because the call that it is for takes time too.
_MARGIN: Final = 60 * SECOND
#: Seconds that a token is assumed to live when the provider does not say.
_DEFAULT_LIFETIME: Final = Decimal(300)
_MAX_LIFETIME: Final = 365 * 24 * 3600


def basic_auth(user: str, password: str) -> str:
    """The `Authorization` header of HTTP Basic."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class AccessTokens:
    """The current token of one API. It is the only state a provider object has; losing it costs one call."""

    def __init__(self, http: ProviderClient, clock: Clock, fetch: Callable[[], Awaitable[CallResult]]) -> None:
        """`fetch` asks the provider for a new token."""
        self._http = http
        self._clock = clock
        self._fetch = fetch
        self._token: str | None = None
        self._expires_at = Instant(0)
        self._fetching = asyncio.Lock()

    async def send(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> CallResult:
        """As `ProviderClient.send`, with a token. NotProcessed when there is none: nothing was sent.

        A 401 to a token that was kept sends the request once more with a new one; the provider refused the first.
        """

        def with_token(token: str) -> Awaitable[CallResult]:
            sent_headers = {"Authorization": f"Bearer {token}", **(headers or {})}
            return self._http.send(method, path, json=json, query=query, headers=sent_headers)

        kept = self._token if self._clock.now() < self._expires_at else None
        token = kept or await self._current_or_new()
        if isinstance(token, NotProcessed):
            return token
        result = await with_token(token)
        if kept is None or not isinstance(result, ProviderResponse) or result.status != 401:
            return result
        if self._token == kept:
            self._token, self._expires_at = None, Instant(0)
        renewed = await self._current_or_new()
        return renewed if isinstance(renewed, NotProcessed) else await with_token(renewed)

    async def _current_or_new(self) -> str | NotProcessed:
        async with self._fetching:
            if self._token is not None and self._clock.now() < self._expires_at:
                return self._token
            result = await self._fetch()
            if not isinstance(result, ProviderResponse):
                return NotProcessed("operator_unavailable", ProviderAnswer.UNAUTHENTICATED(answer=result.raw))
            body = result.ok_object()
            token = body.get("access_token")
            if not isinstance(token, str) or not token:
                ours = result.status in (400, 401, 403)
                # The body may contain a token all the same, so only the status is logged.
                reason: RefusalReason = "configuration" if ours else "operator_unavailable"
                return NotProcessed(reason, ProviderAnswer.UNAUTHENTICATED(answer=result.status))
            lifetime = _lifetime(body.get("expires_in"))
            self._token = token
            self._expires_at = later(self._clock.now(), lifetime - min(_MARGIN, lifetime // 2))
            return token


def _lifetime(expires_in: object) -> int:
    """Microseconds; `expires_in` is seconds, as a number or as text. The default for anything that makes no sense."""
    try:
        seconds = Decimal(expires_in) if isinstance(expires_in, int | str | Decimal) else _DEFAULT_LIFETIME
    except ArithmeticError:
        seconds = _DEFAULT_LIFETIME
    usable = seconds.is_finite() and 0 <= seconds <= _MAX_LIFETIME
    return int(seconds if usable else _DEFAULT_LIFETIME) * SECOND
