"""Wave Business: its paths, keys, errors and signed events (docs/providers/wave.md)."""

from collections.abc import Mapping
from typing import ClassVar

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import Refused, credential, json_bytes
from guichet_simulator.models import FAILED, CallbackRequest, QueuedCallback, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.signatures import is_signed_now
from guichet_simulator.wave.merchants import WaveMerchants
from guichet_simulator.wave.payloads import EVENTS, LIFETIME_MINUTES, error, session_object
from guichet_simulator.wave.payouts import WavePayoutBatches, WavePayouts
from guichet_simulator.wave.sessions import WaveSessions, WaveTransactions


class Wave(SimulatedProvider):
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
        ("credit", ResponseKind.AMBIGUOUS): error(400, "insufficient-funds"),
        ("payout", ResponseKind.REFUSED): error(400, "recipient-account-blocked"),
        ("payout", ResponseKind.FLOAT_EMPTY): error(400, "insufficient-funds"),
        ResponseKind.SERVER_ERROR: error(500, "internal-server-error"),
    }

    async def check_access(self, request: Request) -> None:
        """The key, and the client's signature when the key was created with signing."""
        secret = self.dashboard.signing_secret
        if secret is not None:
            header, body = request.headers.get("wave-signature"), await request.body()
            if header is None:
                raise Refused(error(401, "missing-signature"))
            if not is_signed_now(header, body, secret=secret, now=self.ctx.clock.now()):
                raise Refused(error(401, "invalid-signature"))
        if "authorization" not in request.headers:
            raise Refused(error(401, "missing-auth-header"))
        if credential(request) is None:
            raise Refused(self.error(ResponseKind.UNAUTHORIZED))

    def routes(self) -> list[BaseRoute]:
        merchants = WaveMerchants(self)
        sessions, payouts = WaveSessions(self, merchants), WavePayouts(self, merchants)
        batches, transactions = WavePayoutBatches(self, merchants), WaveTransactions(self, sessions)
        return [
            self.route("/v1/checkout/sessions", sessions.create, "POST"),
            self.route("/v1/checkout/sessions", sessions.by_transaction),
            self.route("/v1/checkout/sessions/search", sessions.search),
            self.route("/v1/checkout/sessions/{id}", sessions.read),
            self.route("/v1/checkout/sessions/{id}/expire", sessions.expire, "POST"),
            self.route("/v1/checkout/sessions/{id}/refund", sessions.refund, "POST"),
            self.route("/v1/payout", payouts.create, "POST"),
            self.route("/v1/payout/{id}", payouts.read),
            self.route("/v1/payouts/search", payouts.search),
            self.route("/v1/payout-batch", batches.create, "POST"),
            self.route("/v1/payout-batch/{id}", batches.read),
            self.route("/v1/verify_recipient/", payouts.verify_recipient, "POST"),
            self.route("/v1/balance", transactions.balance),
            self.route("/v1/transactions", transactions.list_day),
            self.route("/v1/transactions/{id}/refund", transactions.refund, "POST"),
            self.route("/v1/aggregated_merchants", merchants.read_all),
            self.route("/v1/aggregated_merchants", merchants.create, "POST"),
            self.route("/v1/aggregated_merchants/{id}", merchants.read),
            self.route("/v1/aggregated_merchants/{id}", merchants.update, "PUT"),
            self.route("/v1/aggregated_merchants/{id}", merchants.delete, "DELETE"),
            Route("/c/{id}", self.hosted_page),
        ]

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        """Signed when the secret is a signing secret (`wave_…_WHS_…`); otherwise the secret itself is the bearer."""
        event = EVENTS.get("attempt_failed" if queued.claim == FAILED else queued.claim)
        no_event = queued.claim == FAILED and tx.state == FAILED
        if event is None or tx.kind == "credit" or no_event:
            return None
        data = session_object(tx, queued.claim)
        body = json_bytes({"id": f"EV_{queued.event_id[:16]}", "type": event, "data": data})
        secret = self.dashboard.secret or ""
        if "_WHS_" in secret:
            return CallbackRequest(url, body, {"Wave-Signature": self.sign(body, queued, b"")})
        bearer = f"not-{secret}" if queued.forged else secret
        return CallbackRequest(url, body, {"Authorization": f"Bearer {bearer}"})
