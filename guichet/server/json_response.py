"""JSON responses, and the contract's error envelope (docs/contract.md, "Errors")."""

from starlette.responses import Response

from guichet.domain.errors import GuichetError, RateLimited, Unauthorized
from guichet.schemas.json_codec import failure


class JsonResponse(Response):
    """A response whose content is JSON text already: bytes from `schemas/`, where amounts are written exactly."""

    def __init__(self, content: bytes, status_code: int = 200) -> None:
        """Of what Starlette does for a response of any kind, only what this one needs."""
        self.status_code = status_code
        self.body = content
        self.background = None
        self.raw_headers = [(b"content-length", b"%d" % len(content)), (b"content-type", b"application/json")]


def error_response(error: GuichetError) -> Response:
    """`error` in the envelope, with its status; a 401 also says how to authenticate, a 429 when to try again."""
    response = JsonResponse(failure(error), error.status)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited):  # The least that it can be; the limit in front of the routes knows better.
        response.headers["Retry-After"] = "1"
    return response
