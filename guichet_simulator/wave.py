"""Wave Business: checkout sessions, their refund, signed events (docs/providers/wave.md)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.domain import money
from guichet_simulator.context import SimulatorContext
from guichet_simulator.fees import balance_change
from guichet_simulator.http_helpers import hundredths, json_bytes, json_object, json_response, new_uuid
from guichet_simulator.models import (
    EXPIRED,
    FAILED,
    PENDING,
    SUCCEEDED,
    CallbackRequest,
    Kind,
    QueuedCallback,
    Transaction,
)
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.signatures import hmac_signature_header
from guichet_simulator.wave_api import Endpoint, WaveApi
from guichet_simulator.wave_payloads import EVENTS, error, payout_object, session_object
from guichet_simulator.wave_payouts import WavePayouts
from guichet_simulator.wave_transactions import WaveTransactions

_MAX_REFERENCE: Final = 255


class Wave(WaveApi):
    def __init__(self, ctx: SimulatorContext) -> None:
        super().__init__(ctx)
        self._payouts = WavePayouts(self)

    def routes(self) -> list[BaseRoute]:
        sessions, payouts = "/v1/checkout/sessions", self._payouts

        def route(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
            return Route(path, self.signed(endpoint), methods=[method])

        return [
            route(sessions, self.create, "POST"),
            route(sessions, self.by_transaction),
            route(f"{sessions}/search", self.search),
            route(f"{sessions}/{{id}}", self.read),
            route(f"{sessions}/{{id}}/expire", self.expire, "POST"),
            route(f"{sessions}/{{id}}/refund", self.refund, "POST"),
            route("/v1/payout", payouts.create, "POST"),
            route("/v1/payout/{id}", payouts.read),
            route("/v1/payout/{id}/reverse", payouts.reverse, "POST"),
            route("/v1/payouts/search", self.search_payouts),
            route("/v1/balance", self.balance),
            route("/v1/transactions", WaveTransactions(self).list),
            Route("/c/{id}", self.hosted_page),
        ]

    async def create(self, request: Request) -> Response:
        if refusal := self.check_access(request):
            return refusal
        body = await json_object(request)
        if body is None:
            return error(400, "request-not-json").response()
        if invalid := _invalid_fields(body):
            details = [{"loc": [name], "msg": "invalid value"} for name in invalid]
            return self.error(ResponseKind.REFUSED, echo={"details": details})
        mobile = str(body.get("restrict_payer_mobile") or "").removeprefix("+") or None
        scenario = self.ctx.choose_scenario(self.name, "debit", mobile or body["amount"])
        amount = hundredths(body["amount"], "XOF")
        assert amount is not None

        def create() -> Response:
            ref = "cos-" + new_uuid().replace("-", "")[:16]
            tx = self.ctx.create_transaction(
                self.name,
                "debit",
                scenario,
                operator="wave",
                ref=ref,
                client_ref=body.get("client_reference"),
                phone=mobile,
                amount=amount,
                currency="XOF",
                lifetime=self.lifetime,
                detail={
                    "digits": mobile or body["amount"],
                    "page_url": f"{self.address}/c/{ref}",
                    "success_url": body["success_url"],
                    "cancel_url": body["error_url"],
                    "aggregated_merchant_id": body.get("aggregated_merchant_id"),
                    "transaction_id": "T_" + new_uuid().replace("-", "")[:12].upper(),
                },
            )
            return json_response(session_object(tx))

        return await self.respond("debit", scenario, create)

    async def read(self, request: Request) -> Response:
        found = self._find_session(request)
        if isinstance(found, Response):
            return found
        return await self.respond_to_status(found, lambda: json_response(session_object(found)))

    def _find_session(self, request: Request) -> Transaction | Response:
        if refusal := self.check_access(request):
            return refusal
        tx = self.ctx.find(self.name, "debit", request.path_params["id"])
        return tx or error(404, "checkout-session-not-found").response()

    async def by_transaction(self, request: Request) -> Response:
        if refusal := self.check_access(request):
            return refusal
        self.ctx.apply_due_decisions()
        found = self.ctx.store.select(
            "provider = 'wave' AND kind = 'debit' AND json_extract(detail, '$.transaction_id') = ?",
            request.query_params.get("transaction_id"),
        )
        if not found or found[0].state != SUCCEEDED:
            return error(404, "checkout-session-not-found").response()
        return json_response(session_object(found[0]))

    async def search(self, request: Request) -> Response:
        return await self._search(request, "debit", session_object)

    async def search_payouts(self, request: Request) -> Response:
        return await self._search(request, "credit", payout_object)

    async def _search(self, request: Request, kind: Kind, payload: Callable[[Transaction], dict[str, Any]]) -> Response:
        if refusal := self.check_access(request):
            return refusal
        self.ctx.apply_due_decisions()
        found = self.ctx.store.select(
            "provider = 'wave' AND kind = ? AND client_ref = ? AND (kind = 'debit' OR parent IS NULL)",
            kind, request.query_params.get("client_reference"),
        )  # fmt: skip
        forced = self.ctx.forced_scenario(self.name, "status")
        return await self.respond("status", forced, lambda: json_response({"result": [payload(tx) for tx in found]}))

    async def expire(self, request: Request) -> Response:
        found = self._find_session(request)
        if isinstance(found, Response):
            return found
        if found.state != PENDING:
            return error(409, "checkout-session-not-open").response()
        self.ctx.decide(found, EXPIRED, "expired")
        return Response(status_code=200)

    async def refund(self, request: Request) -> Response:
        """Refunds the whole session at once. It may be repeated: only the first one moves money."""
        found = self._find_session(request)
        if isinstance(found, Response):
            return found
        if found.state != SUCCEEDED:
            return error(409, "checkout-refund-failed").response()
        if self.ctx.store.refunded_amount(found):
            return Response(status_code=200)
        scenario = self.ctx.choose_scenario(self.name, "credit", found.phone or found.detail["digits"])

        def create() -> Response:
            credit = self.ctx.create_transaction(
                self.name,
                "credit",
                scenario,
                operator="wave",
                ref="rf-" + new_uuid(),
                client_ref=found.client_ref,
                phone=found.phone,
                parent=found.ref,
                amount=found.amount,
                currency=found.currency,
                lifetime=self.lifetime,
            )
            refused = scenario.final_state in (FAILED, EXPIRED)
            self.ctx.decide(credit, FAILED if refused else SUCCEEDED, scenario.reason)
            return self.error(ResponseKind.REFUSED, "credit") if refused else Response(status_code=200)

        return await self.respond("credit", scenario, create)

    async def balance(self, request: Request) -> Response:
        if refusal := self.check_access(request):
            return refusal
        moved = self.ctx.store.select("provider = 'wave' AND state = 'succeeded'")
        return json_response({"amount": money.plain(sum(map(balance_change, moved))), "currency": "XOF"})

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


def _invalid_fields(body: Mapping[str, Any]) -> list[str]:
    mobile = body.get("restrict_payer_mobile")
    valid = {
        "amount": isinstance(body.get("amount"), str) and hundredths(body["amount"], "XOF") is not None,
        "currency": body.get("currency") == "XOF",
        "success_url": str(body.get("success_url", "")).startswith("http"),
        "error_url": str(body.get("error_url", "")).startswith("http"),
        "client_reference": len(str(body.get("client_reference") or "")) <= _MAX_REFERENCE,
        "restrict_payer_mobile": not mobile or (str(mobile)[0] == "+" and str(mobile)[1:].isdigit()),
    }
    return [name for name, is_valid in valid.items() if not is_valid]
