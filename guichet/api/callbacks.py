"""POST|PUT /providers/{name}/callback[/{reference}]: where providers notify us.

Source: docs/providers/README.md, "Rules common to every family".
Not part of the merchant's contract: no key is asked for, and the answer tells a stranger nothing. 200 once the
callback was stored, which makes the worker ask the provider; otherwise 500, or 429 when one payment is named too often,
so that the provider tries again; 413 when it is larger than any callback is.
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.api.http import read_body
from guichet.context import AppContext
from guichet.domain.errors import InvalidRequest
from guichet.providers.base import Callback
from guichet.schemas.envelope import failure
from guichet.schemas.validation import MAX_BODY
from guichet.server.error_handler import JsonResponse

PREFIX: Final = "/providers"
_METHODS: Final = ("POST", "PUT")


def callback_routes(ctx: AppContext) -> list[Route]:
    async def callback(request: Request) -> Response:
        from guichet.provider_callbacks.receive import receive  # noqa: PLC0415 - a server listens without

        body = await read_body(request)
        if len(body) > MAX_BODY:
            return JsonResponse(failure(InvalidRequest(f"Le corps de la requête dépasse {MAX_BODY // 1024} Kio.")), 413)
        received = Callback(request.method, request.url.path, dict(request.headers), body)
        await receive(ctx, request.path_params["name"], request.path_params.get("reference"), received)
        return Response()

    return [
        Route(PREFIX + path, callback, methods=_METHODS)
        for path in ("/{name}/callback", "/{name}/callback/{reference}")
    ]
