"""The rate limit in front of the routes, by client address: the first check of every request (D15, D40)."""

from collections.abc import Mapping, Sequence

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet import metrics
from guichet.domain.errors import RateLimited
from guichet.server.client_address import client_address
from guichet.server.json_response import error_response
from guichet.server.rate_limit import Allowance, RateLimit, RateLimiter
from guichet.settings import Network


class RateLimitMiddleware:
    """`limits`: by the beginning of the path; other paths are not counted.

    Every answer under a limit carries `X-RateLimit-Remaining`, a refusal also `Retry-After`
    (docs/contract.md, "Limits").
    """

    def __init__(
        self,
        app: ASGIApp,
        limiter: RateLimiter,
        limits: Mapping[str, RateLimit],
        trusted_proxies: Sequence[Network],
    ) -> None:
        self._app = app
        self._limiter = limiter
        self._limits = {prefix: limit for prefix, limit in limits.items() if limit.requests}
        self._trusted_proxies = trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._limit(scope["path"]) if scope["type"] == "http" else None
        if limit is None:
            await self._app(scope, receive, send)
            return
        address = client_address(scope, self._trusted_proxies)
        allowed = await self._limiter.hit(limit, address)
        announced = _announcing(await self._limiter.allowance(limit, address), send, refused=not allowed)
        if allowed:
            await self._app(scope, receive, announced)
        else:
            metrics.RATE_LIMITED.labels(limit.name).inc()
            await error_response(RateLimited())(scope, receive, announced)

    def _limit(self, path: str) -> RateLimit | None:
        return next((limit for prefix, limit in self._limits.items() if path.startswith(prefix)), None)


def _announcing(allowance: Allowance, send: Send, *, refused: bool) -> Send:
    async def announce(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-RateLimit-Remaining"] = str(allowance.remaining)
            if refused:
                headers["Retry-After"] = str(allowance.retry_after)
        await send(message)

    return announce
