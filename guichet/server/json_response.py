"""JSON responses, and the contract's error envelope (docs/contract.md, "Errors")."""

from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from guichet.domain.errors import GuichetError, RateLimited, Unauthorized
from guichet.schemas.json_codec import failure

_TYPE: Final = (b"content-type", b"application/json")


class JsonResponse(Response):
    """A response whose content is JSON text already: bytes from `schemas/`, where amounts are written exactly.

    Nothing of Starlette's has to be found out about it, which takes 10,000 instructions of each request.
    """

    def __init__(self, content: bytes, status: int = 200) -> None:
        self.body = content
        self.status_code = status
        self.background = None
        self.raw_headers = [(b"content-length", b"%d" % len(content)), _TYPE]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def error_response(error: GuichetError) -> Response:
    """`error` in the envelope, with its status; a 401 also says how to authenticate, a 429 when to try again."""
    response = JsonResponse(failure(error), error.status)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited):  # The least that it can be; the limit in front of the routes knows better.
        response.headers["Retry-After"] = "1"
    return response
