"""JSON responses, and the contract's error envelope (docs/contract.md, "Errors")."""

from starlette.responses import Response

from guichet.domain.errors import GuichetError, Unauthorized
from guichet.schemas.json_codec import failure


class JsonResponse(Response):
    """A response whose content is JSON text already: bytes from `schemas/`, where amounts are written exactly."""

    media_type = "application/json"


def error_response(error: GuichetError) -> Response:
    """`error` in the envelope, with its status; a 401 also says how to authenticate."""
    response = JsonResponse(failure(error), error.status)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
