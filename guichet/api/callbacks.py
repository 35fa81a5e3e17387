"""POST|PUT /providers/{name}/callback[/{reference}]: where providers notify us.

Source: docs/providers/README.md, "Rules common to every family".
Not part of the merchant's contract: no key, an answer without meaning to a stranger. 200 once what it speaks of was
asked about or the notification was stored; 500 otherwise, so that the operator tries again.
"""

from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.context import AppContext
from guichet.db.engine import StorageError
from guichet.domain.errors import RateLimited
from guichet.logs import log
from guichet.payments.provider_callbacks import receive
from guichet.providers.base import Callback
from guichet.server.rate_limit import RateLimiter

_MAX_BODY: Final = 64 * 1024
#: Notifications a minute from one address; an operator sends a few per payment.
_PER_MINUTE: Final = 3000


def routes(ctx: AppContext) -> list[Route]:
    limiter = RateLimiter(_PER_MINUTE, ctx.settings.trusted_proxies, "callbacks")

    async def notified(request: Request) -> Response:
        allowance = await limiter.take(request.scope)
        if allowance is not None and not allowance.allowed:
            return Response(status_code=RateLimited.status, headers={"Retry-After": str(allowance.retry_after)})
        try:
            body = await _limited_body(request)
            if body is None:
                return Response(status_code=413)
            callback = Callback(request.method, request.url.path, dict(request.headers), body)
            await receive(ctx, request.path_params["name"], request.path_params.get("reference"), callback)
        except StorageError as error:
            log.error("callback.storage", error=repr(error))
            return Response(status_code=500)
        except ClientDisconnect:
            return Response(status_code=499)
        return Response(status_code=200)

    verbs = ["POST", "PUT"]
    return [
        Route("/providers/{name}/callback", notified, methods=verbs),
        Route("/providers/{name}/callback/{reference}", notified, methods=verbs),
    ]


async def _limited_body(request: Request) -> bytes | None:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            return None
    return body
