"""What all calls of the simulated Wave share: the key and the errors (docs/providers/wave.md)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import credential, json_response
from guichet_simulator.models import Kind, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.signatures import is_signed_now
from guichet_simulator.store import undocumented_order
from guichet_simulator.wave.payloads import LIFETIME_MINUTES, error
from guichet_simulator.wave.wallets import wallet_of

Endpoint = Callable[[Request], Awaitable[Response]]


class WaveApi(SimulatedProvider):
    name = "wave"
    signing_key = "wave_sn_WHS_simulator"
    not_shown: ClassVar[Mapping[str, str]] = {
        "duplicate": "a repeat creates a second session",
    }
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
        ("payout", ResponseKind.REFUSED): error(400, "recipient-account-blocked"),
        ("payout", ResponseKind.FLOAT_EMPTY): error(400, "insufficient-funds"),
        ResponseKind.SERVER_ERROR: error(500, "internal-server-error"),
    }

    def signed(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint, for a key that was created with signing: refuses every request without a valid signature."""

        async def checked(request: Request) -> Response:
            secret = self.ctx.dashboard(self.name).signing_secret
            if secret is not None:
                header, body = request.headers.get("wave-signature"), await request.body()
                if header is None:
                    return error(401, "missing-signature").response()
                if not is_signed_now(header, body, secret=secret, now=self.ctx.clock.now()):
                    return error(401, "invalid-signature").response()
            return await endpoint(request)

        return checked

    def check_access(self, request: Request) -> Response | None:
        if "authorization" not in request.headers:
            return error(401, "missing-auth-header").response()
        return self.error(ResponseKind.UNAUTHORIZED) if credential(request) is None else None

    def find_own(self, request: Request, kind: Kind, ref: str, resource: str = "") -> Transaction | None:
        """What belongs to the wallet of the request's key."""
        tx = self.ctx.find(self.name, kind, ref, resource)
        return tx if tx and tx.operator == wallet_of(request).name else None

    async def search(
        self, request: Request, kind: Kind, resource: str, payload: Callable[[Transaction], dict[str, Any]]
    ) -> Response:
        """What was made under the client's reference."""
        if refusal := self.check_access(request):
            return refusal
        self.ctx.apply_due_decisions()
        where = "provider = 'wave' AND kind = ? AND resource = ? AND operator = ? AND client_ref = ?"
        reference = request.query_params.get("client_reference")
        found = self.ctx.store.select(where, kind, resource, wallet_of(request).name, reference)
        rows = [payload(tx) for tx in undocumented_order(found)]
        forced = self.ctx.forced_scenario(self.name, "status")
        return await self.respond("status", forced, lambda: json_response({"result": rows}))
