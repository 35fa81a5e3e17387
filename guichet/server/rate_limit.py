"""The rate limit in front of the routes, by the address of the client (docs/contract.md, "Limits"; D40)."""

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet import metrics
from guichet.domain.errors import RateLimited
from guichet.server.client_address import ClientAddresses
from guichet.server.json_response import error_response
from guichet.server.rate_limiter import Allowance, RateLimiter
from guichet.server.rate_limits import RateLimit


class RateLimitMiddleware:
    """`limits`: by the beginning of the path; other paths are not counted.

    Every answer under a limit carries `X-RateLimit-Remaining`, a refusal also `Retry-After`
    (docs/contract.md, "Limits").
    """

    def __init__(
        self, app: ASGIApp, limiter: RateLimiter, limits: Mapping[str, RateLimit], addresses: ClientAddresses
    ) -> None:
        self._app = app
        self._limiter = limiter
        self._limits = {prefix: limit for prefix, limit in limits.items() if limit.requests}
        self._addresses = addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._limit(scope["path"]) if scope["type"] == "http" else None
        if limit is None:
            await self._app(scope, receive, send)
            return
        allowance = await self._limiter.count(limit, self._addresses.counted(scope))
        announced = _announcing(allowance, send)
        if allowance.allowed:
            await self._app(scope, receive, announced)
        else:
            metrics.RATE_LIMITED.labels(limit.name).inc()
            await error_response(RateLimited())(scope, receive, announced)

    def _limit(self, path: str) -> RateLimit | None:
        return next((limit for prefix, limit in self._limits.items() if path.startswith(prefix)), None)


def _announcing(allowance: Allowance, send: Send) -> Send:
    async def announce(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-RateLimit-Remaining"] = str(allowance.remaining)
            if not allowance.allowed:
                headers["Retry-After"] = str(allowance.retry_after)
        await send(message)

    return announce
