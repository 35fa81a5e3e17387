"""Wave Business: its paths, and its signed events (docs/providers/wave.md)."""

from starlette.routing import BaseRoute, Route

from guichet_simulator.http_helpers import json_bytes
from guichet_simulator.models import FAILED, CallbackRequest, QueuedCallback, Transaction
from guichet_simulator.signatures import hmac_signature_header
from guichet_simulator.wave.api import Endpoint, WaveApi
from guichet_simulator.wave.merchants import WaveMerchants
from guichet_simulator.wave.payloads import EVENTS, session_object
from guichet_simulator.wave.payout_batches import WavePayoutBatches
from guichet_simulator.wave.payouts import WavePayouts
from guichet_simulator.wave.sessions import WaveSessions
from guichet_simulator.wave.transactions import WaveTransactions


class Wave(WaveApi):
    def routes(self) -> list[BaseRoute]:
        def route(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
            return Route(path, self.signed(endpoint), methods=[method])

        merchants = WaveMerchants(self)
        sessions, payouts = WaveSessions(self, merchants), WavePayouts(self, merchants)
        batches, transactions = WavePayoutBatches(self, merchants), WaveTransactions(self, sessions)
        return [
            route("/v1/checkout/sessions", sessions.create, "POST"),
            route("/v1/checkout/sessions", sessions.by_transaction),
            route("/v1/checkout/sessions/search", sessions.search),
            route("/v1/checkout/sessions/{id}", sessions.read),
            route("/v1/checkout/sessions/{id}/expire", sessions.expire, "POST"),
            route("/v1/checkout/sessions/{id}/refund", sessions.refund, "POST"),
            route("/v1/payout", payouts.create, "POST"),
            route("/v1/payout/{id}", payouts.read),
            route("/v1/payout/{id}/reverse", payouts.reverse, "POST"),
            route("/v1/payouts/search", payouts.search),
            route("/v1/payout-batch", batches.create, "POST"),
            route("/v1/payout-batch/{id}", batches.read),
            route("/v1/verify_recipient/", payouts.verify_recipient, "POST"),
            route("/v1/balance", transactions.balance),
            route("/v1/transactions", transactions.list_day),
            route("/v1/transactions/{id}/refund", transactions.refund, "POST"),
            route("/v1/aggregated_merchants", merchants.read_all),
            route("/v1/aggregated_merchants", merchants.create, "POST"),
            route("/v1/aggregated_merchants/{id}", merchants.read),
            route("/v1/aggregated_merchants/{id}", merchants.update, "PUT"),
            route("/v1/aggregated_merchants/{id}", merchants.delete, "DELETE"),
            Route("/c/{id}", self.hosted_page),
        ]

    def callback_request(self, tx: Transaction, queued: QueuedCallback) -> CallbackRequest | None:
        """Signed when the secret is a signing secret (`wave_…_WHS_…`); otherwise the secret itself is the bearer."""
        dashboard = self.ctx.dashboard(self.name)
        event = EVENTS.get("attempt_failed" if queued.claim == FAILED else queued.claim)
        no_event = queued.claim == FAILED and tx.state == FAILED
        if dashboard.callback_url is None or event is None or tx.kind == "credit" or no_event:
            return None
        data = session_object(tx, queued.claim)
        body = json_bytes({"id": f"EV_{queued.event_id[:16]}", "type": event, "data": data})
        secret = dashboard.secret or ""
        if "_WHS_" in secret:
            now = self.ctx.clock.now()
            signature = hmac_signature_header(body, queued, secret=secret, separator=b"", now=now)
            return CallbackRequest(dashboard.callback_url, body, {"Wave-Signature": signature})
        bearer = f"not-{secret}" if queued.forged else secret
        return CallbackRequest(dashboard.callback_url, body, {"Authorization": f"Bearer {bearer}"})
