"""What all calls of the simulated Wave share: the key and the errors (docs/providers/wave.md)."""

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import credential
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave_payloads import LIFETIME_MINUTES, error


class WaveApi(SimulatedProvider):
    name = "wave"
    title = "Wave"
    lifetime = LIFETIME_MINUTES * 60
    #: The customer may try again before the payment counts as cancelled.
    second_chance = 2.0
    errors = {
        ResponseKind.UNAUTHORIZED: error(401, "no-matching-api-key"),
        ResponseKind.RATE_LIMITED: error(429, "rate-limit-exceeded", {"Retry-After": "2"}),
        ResponseKind.UNAVAILABLE: error(503, "service-unavailable"),
        ResponseKind.NOT_CONFIGURED: error(403, "invalid-wallet"),
        ResponseKind.REFUSED: error(400, "request-validation-error"),
        ("credit", ResponseKind.REFUSED): error(400, "checkout-refund-failed"),
        ("payout", ResponseKind.REFUSED): error(400, "insufficient-funds"),
        ResponseKind.SERVER_ERROR: error(500, "internal-server-error"),
    }

    def check_access(self, request: Request) -> Response | None:
        if "authorization" not in request.headers:
            return error(401, "missing-auth-header").response()
        return self.error(ResponseKind.UNAUTHORIZED) if credential(request) is None else None
