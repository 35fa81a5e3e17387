"""What all calls of the simulated MTN share: tokens, subscription keys, target environments, errors.

Source: docs/providers/mtn.md, "Addresses and credentials", "Errors".
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import ErrorResponse, acceptable, basic_credential, credential, json_response
from guichet_simulator.mtn.payloads import ENVIRONMENTS, error
from guichet_simulator.scenarios import ResponseKind

PRODUCTS: Final = ("collection", "disbursement")
#: Seconds.
_TOKEN_LIFETIME: Final = 3600


class MtnApi(SimulatedProvider):
    name = "mtn"
    title = "MTN MoMo"
    new_platform = False
    lifetime = 300
    #: MTN sends a callback once.
    retries = ()
    errors = {
        ("token", ResponseKind.UNAUTHORIZED): ErrorResponse(401, {"error": "invalid_client"}),
        ResponseKind.UNAUTHORIZED: ErrorResponse(
            401, {"statusCode": 401, "message": "Access denied due to invalid credentials."}
        ),
        ResponseKind.RATE_LIMITED: ErrorResponse(
            429, {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 2 seconds."}, {"Retry-After": "2"}
        ),
        ResponseKind.UNAVAILABLE: error(503, "SERVICE_UNAVAILABLE"),
        ResponseKind.NOT_CONFIGURED: error(500, "NOT_ALLOWED_TARGET_ENVIRONMENT"),
        ResponseKind.DUPLICATE: error(409, "RESOURCE_ALREADY_EXIST"),
        ResponseKind.REFUSED: error(500, "PAYER_NOT_FOUND"),
        ("credit", ResponseKind.REFUSED): error(500, "PAYEE_NOT_FOUND"),
        ("credit", ResponseKind.FLOAT_EMPTY): error(500, "NOT_ENOUGH_FUNDS"),
        ResponseKind.SERVER_ERROR: ErrorResponse(500),
    }

    async def token(self, request: Request) -> Response:
        """A token is good for the product it was asked for only."""
        product = request.path_params["product"]
        if product not in PRODUCTS:
            return json_response({"statusCode": 404, "message": "Resource not found"}, 404)
        if self.new_platform and (refusal := _refused_by_new_gateway(request)):
            return refusal
        user = basic_credential(request).partition(":")[0]
        known = credential(request, "Basic") is not None and self._opens(user, product)
        if not known or not self._subscribed(request, product):
            return self.error(ResponseKind.UNAUTHORIZED, "token")
        return await self.respond_with_token(_TOKEN_LIFETIME, token_type="access_token", scope=product)  # noqa: S106

    def check_access(self, request: Request, product: str) -> Response | None:
        if not self._subscribed(request, product) or not self.token_is_valid(request, product):
            return self.error(ResponseKind.UNAUTHORIZED)
        if request.headers.get("x-target-environment") not in ENVIRONMENTS:
            return error(500, "NOT_ALLOWED_TARGET_ENVIRONMENT").response()
        return None

    def _subscribed(self, request: Request, product: str) -> bool:
        key = request.headers.get("ocp-apim-subscription-key")
        return acceptable(key) and self._opens(str(key), product)

    def _opens(self, name: str, product: str) -> bool:
        """Whether an API user or a subscription key is one of this product's wallet."""
        credentials = self.ctx.dashboard(self.name).credentials
        return credentials is None or product in credentials.get(name, ())


def _refused_by_new_gateway(request: Request) -> Response | None:
    """What only the new platform checks before it gives a token."""
    if "python-requests" in request.headers.get("user-agent", ""):
        return Response("<html><body>403 Forbidden</body></html>", 403, media_type="text/html")
    if request.headers.get("x-target-environment") not in ENVIRONMENTS:
        return json_response({"error": "Invalid or missing X-Target-Environment header"}, 400)
    if "%" in basic_credential(request):
        return Response(status_code=500)  # Credentials that were URL-encoded before they were put together.
    return None
