"""JSON answers: a body that is already encoded, and an error in the contract's envelope."""

from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from guichet.domain.errors import GuichetError, NotFound, Unauthorized
from guichet.schemas.json_output import failure

_JSON: Final = (b"content-type", b"application/json")
NO_SUCH_ADDRESS: Final = "Cette adresse n'existe pas."


class JsonResponse(Response):
    """A body that is JSON already, under the two headers it needs; more can be put on `headers`."""

    media_type = "application/json"
    background = None

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.status_code = status
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _JSON]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def error_response(error: GuichetError) -> Response:
    response = JsonResponse(failure(error), error.status)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def no_such_address(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer for every path that no route serves."""
    await error_response(NotFound(NO_SUCH_ADDRESS))(scope, receive, send)
