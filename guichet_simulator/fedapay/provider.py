"""FedaPay: its paths, its errors and its signed events (docs/providers/fedapay.md)."""

from typing import ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.context import SimulatorContext
from guichet_simulator.fedapay.payloads import (
    FLOAT_EMPTY,
    NOT_ALLOWED,
    PAYOUT_MODES,
    PUSH_MODES,
    error,
    payout_object,
    transaction_object,
)
from guichet_simulator.fedapay.payouts import FedaPayPayouts
from guichet_simulator.fedapay.records import Records
from guichet_simulator.fedapay.transactions import FedaPayTransactions
from guichet_simulator.http_helpers import ErrorResponse, json_bytes, json_response
from guichet_simulator.models import CallbackRequest, QueuedCallback, Transaction
from guichet_simulator.scenarios import ResponseKind

_CLAIMS: Final = ("succeeded", "failed", "expired")


class FedaPay(SimulatedProvider):
    name = "fedapay"
    title = "FedaPay"
    signing_key = "wh_live_simulator"
    lifetime = 24 * 3600
    #: Growing, two minutes apart at most; ten failures switch the webhook off.
    retries = (5, 30, 60, 120, 120, 120, 120, 120, 120)
    errors: ClassVar = {
        ResponseKind.UNAUTHORIZED: error(401, "Erreur d'authentification"),
        ResponseKind.RATE_LIMITED: ErrorResponse(429, {"message": "Trop de requêtes"}, {"Retry-After": "2"}),
        ResponseKind.UNAVAILABLE: error(503, "Service indisponible"),
        ResponseKind.NOT_CONFIGURED: error(400, NOT_ALLOWED),
        ("credit", ResponseKind.NOT_CONFIGURED): error(403, NOT_ALLOWED, {}),
        ResponseKind.REFUSED: error(400, "Numéro invalide", {"phone_number": ["est invalide"]}),
        ("credit", ResponseKind.FLOAT_EMPTY): error(400, FLOAT_EMPTY),
        ResponseKind.SERVER_ERROR: ErrorResponse(500),
    }

    def __init__(self, ctx: SimulatorContext) -> None:
        super().__init__(ctx)
        self._records = Records(self)

    def routes(self) -> list[BaseRoute]:
        transactions, payouts = FedaPayTransactions(self, self._records), FedaPayPayouts(self, self._records)
        return [
            self.route("/v1/transactions", transactions.create, "POST"),
            self.route("/v1/transactions", transactions.search),
            self.route("/v1/transactions/search", transactions.search),
            self.route("/v1/transactions/merchant/{reference}", transactions.read_by_reference),
            self.route("/v1/transactions/{id:int}", transactions.read),
            self.route("/v1/transactions/{id:int}", transactions.delete, "DELETE"),
            self.route("/v1/transactions/{id:int}/token", transactions.token, "POST"),
            self.route("/v1/payouts", payouts.create, "POST"),
            self.route("/v1/payouts", payouts.search),
            self.route("/v1/payouts/search", payouts.search),
            self.route("/v1/payouts/start", payouts.start, "PUT"),
            self.route("/v1/payouts/merchant/{reference}", payouts.read_by_reference),
            self.route("/v1/payouts/{id:int}", payouts.read),
            self.route("/v1/balances", payouts.balances),
            self.route("/v1/currencies", self.currencies),
            self.route("/v1/webhooks", self.webhooks),
            self.route("/v1/{mode}", transactions.push, "POST"),
            Route("/pay/{token}", transactions.page),
        ]

    async def currencies(self, request: Request) -> Response:
        modes = sorted({*PUSH_MODES, *PAYOUT_MODES})
        return json_response({"v1/currencies": [{"id": 1, "iso": "XOF", "code": 952, "modes": modes}]})

    async def webhooks(self, request: Request) -> Response:
        url = self.dashboard.callback_url
        rows = [{"id": 1, "url": url, "enabled": True, "ssl_verify": True}] if url else []
        return json_response({"v1/webhooks": rows, "meta": {"next_page": None}})

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        now, record = self.ctx.clock.now(), self._records.made_by_any(tx.kind, tx.ref)
        if record is None or queued.claim not in _CLAIMS:
            return None
        claim = queued.claim if queued.claim != tx.state else None
        if tx.kind == "debit":
            entity = transaction_object(record, tx, now, expired=False, claim=claim)
        else:
            entity = payout_object(record, tx, now, claim=claim)
        kind = "transaction" if tx.kind == "debit" else "payout"
        event = {
            "id": queued.id,
            "name": f"{kind}.{entity['status']}",
            "object": kind,
            "object_id": record["id"],
            "entity": entity,
            "account": {"id": entity["account_id"], "name": "Simulateur", "country": "BJ"},
        }
        body = json_bytes(event)
        return CallbackRequest(url, body, {"X-FEDAPAY-SIGNATURE": self.sign(body, queued, b".", scheme="s")})
