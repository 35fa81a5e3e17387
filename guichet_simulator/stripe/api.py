"""What all calls of the simulated Stripe share: the key, errors, idempotent POSTs (docs/providers/stripe.md)."""

from collections.abc import Mapping
from typing import ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator import idempotency
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import acceptable, basic_credential, credential, json_response
from guichet_simulator.models import EXPIRED, Kind, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.stripe.payloads import error, invalid_request

_MAX_KEY: Final = 255


class StripeApi(SimulatedProvider):
    name = "stripe"
    signing_key = "whsec_simulator"
    not_shown: ClassVar[Mapping[str, str]] = {
        "duplicate": "a repeat gets the first response again, by Idempotency-Key",
    }
    title = "Stripe"
    retries = (5, 60, 300, 3600)
    #: A declined card leaves the session open. The real one stays open for a day.
    second_chance = 5.0
    ends_as = EXPIRED
    errors = {
        ResponseKind.UNAUTHORIZED: error(401, "invalid_request_error", "Invalid API Key provided: sk_****"),
        ResponseKind.RATE_LIMITED: error(
            429, "rate_limit_error", "Too many requests.", code="rate_limit", headers={"Retry-After": "2"}
        ),
        ResponseKind.UNAVAILABLE: error(503, "api_error", "Stripe is temporarily unavailable."),
        ResponseKind.NOT_CONFIGURED: error(403, "invalid_request_error", "This account cannot make live charges."),
        ResponseKind.REFUSED: invalid_request("Invalid integer.", code="parameter_invalid_integer"),
        ("credit", ResponseKind.REFUSED): invalid_request("Charge is disputed.", code="charge_disputed"),
        ResponseKind.SERVER_ERROR: error(500, "api_error", "An unknown error occurred."),
    }

    def check_access(self, request: Request) -> Response | None:
        """The key is a bearer token, or the user name of HTTP Basic."""
        return None if acceptable(_key(request)) else self.error(ResponseKind.UNAUTHORIZED)

    def is_live(self, request: Request) -> bool:
        """Whether the request's key is one of the live mode, which shares nothing with the test mode."""
        return "_live_" in _key(request)

    def find_own(self, request: Request, kind: Kind, ref: str) -> Transaction | None:
        """A session or a refund of the key's mode."""
        tx = self.ctx.find(self.name, kind, ref)
        return tx if tx and tx.detail["live"] is self.is_live(request) else None

    def stored_response(self, key: str | None, fingerprint: str) -> Response | None:
        """The first response to this Idempotency-Key, even if it was lost; None for a new key."""
        if key is None:
            return None
        if not 0 < len(key) <= _MAX_KEY:
            return invalid_request("Invalid Idempotency-Key.").response()
        try:
            return idempotency.stored_response(self.ctx.store, self.name, key=key, fingerprint=fingerprint)
        except idempotency.IdempotencyKeyReused:
            message = "Keys for idempotent requests can only be used with the same parameters."
            return error(400, "idempotency_error", message).response()

    def store_response(self, key: str | None, fingerprint: str, payload: object) -> Response:
        response = json_response(payload)
        if key is None:
            return response
        return idempotency.store_response(self.ctx.store, self.name, response, key=key, fingerprint=fingerprint)


def _key(request: Request) -> str:
    """The API key; empty when it is absent."""
    return credential(request) or basic_credential(request).partition(":")[0]
