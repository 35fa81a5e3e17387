"""Wave Business: checkout sessions, their refund, payouts, signed events (docs/providers/wave.md)."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.domain import money
from guichet_simulator import replays
from guichet_simulator.base import Family, Fault, credential, hundredths, json_answer, json_bytes, json_object, new_uuid
from guichet_simulator.context import Notification
from guichet_simulator.scenarios import Answer
from guichet_simulator.signatures import timestamped
from guichet_simulator.store import EXPIRED, FAILED, PENDING, SUCCEEDED, QueuedCallback, Transaction
from guichet_simulator.wave_payloads import EVENTS, LIFE_MINUTES, payout_object, session_object

_LONGEST_REFERENCE: Final = 255


def _fault(status: int, code: str, headers: Mapping[str, str] | None = None) -> Fault:
    return Fault(status, {"code": code, "message": code.replace("-", " ").capitalize()}, headers or {})


class Wave(Family):
    name = "wave"
    title = "Wave"
    lifetime = LIFE_MINUTES * 60
    #: The customer may try again before the payment counts as cancelled.
    second_chance = 2.0
    faults = {
        Answer.UNAUTHORIZED: _fault(401, "no-matching-api-key"),
        Answer.RATE_LIMITED: _fault(429, "rate-limit-exceeded", {"Retry-After": "2"}),
        Answer.UNAVAILABLE: _fault(503, "service-unavailable"),
        Answer.NOT_CONFIGURED: _fault(403, "invalid-wallet"),
        Answer.REFUSED: _fault(400, "request-validation-error"),
        ("credit", Answer.REFUSED): _fault(400, "checkout-refund-failed"),
        ("payout", Answer.REFUSED): _fault(400, "insufficient-funds"),
        Answer.BROKEN: _fault(500, "internal-server-error"),
    }

    def routes(self) -> list[BaseRoute]:
        sessions = "/v1/checkout/sessions"
        return [
            Route(sessions, self.create, methods=["POST"]),
            Route(sessions, self.by_transaction),
            Route(f"{sessions}/search", self.search),
            Route(f"{sessions}/{{id}}", self.read),
            Route(f"{sessions}/{{id}}/expire", self.expire, methods=["POST"]),
            Route(f"{sessions}/{{id}}/refund", self.refund, methods=["POST"]),
            Route("/v1/payout", self.pay_out, methods=["POST"]),
            Route("/v1/payout/{id}", self.payout),
            Route("/v1/payout/{id}/reverse", self.reverse, methods=["POST"]),
            Route("/v1/payouts/search", self.search_payouts),
            Route("/v1/balance", self.balance),
            Route("/c/{id}", self.hosted_page),
        ]

    def _refused_access(self, request: Request) -> Response | None:
        if "authorization" not in request.headers:
            return _fault(401, "missing-auth-header").answer()
        return self.fault(Answer.UNAUTHORIZED) if credential(request) is None else None

    # Checkout

    async def create(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        body = await json_object(request)
        if body is None:
            return _fault(400, "request-not-json").answer()
        if faults := _session_faults(body):
            details = [{"loc": [name], "msg": "invalid value"} for name in faults]
            return self.faults[Answer.REFUSED].answer({"details": details})
        mobile = str(body.get("restrict_payer_mobile") or "").removeprefix("+") or None
        scenario = self.desk.choose(self.name, "debit", mobile or body["amount"])
        amount = hundredths(body["amount"], "XOF")
        assert amount is not None

        def take() -> Response:
            ref = "cos-" + new_uuid().replace("-", "")[:16]
            tx = self.desk.take(
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
            return json_answer(session_object(tx))

        return await self.respond("debit", scenario, take)

    async def read(self, request: Request) -> Response:
        found = self._session(request)
        if isinstance(found, Response):
            return found
        return await self.question(found, lambda: json_answer(session_object(found)))

    def _session(self, request: Request) -> Transaction | Response:
        if refusal := self._refused_access(request):
            return refusal
        tx = self.desk.find(self.name, "debit", request.path_params["id"])
        return tx or _fault(404, "checkout-session-not-found").answer()

    async def by_transaction(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        self.desk.let_time_pass()
        found = self.desk.store.select(
            "family = 'wave' AND kind = 'debit' AND json_extract(detail, '$.transaction_id') = ?",
            request.query_params.get("transaction_id"),
        )
        if not found or found[0].state != SUCCEEDED:
            return _fault(404, "checkout-session-not-found").answer()
        return json_answer(session_object(found[0]))

    async def search(self, request: Request) -> Response:
        return await self._search(request, "debit", session_object)

    async def search_payouts(self, request: Request) -> Response:
        return await self._search(request, "credit", payout_object)

    async def _search(self, request: Request, kind: str, show: Any) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        self.desk.let_time_pass()
        found = self.desk.store.select(
            "family = 'wave' AND kind = ? AND client_ref = ? AND (kind = 'debit' OR parent IS NULL)",
            kind, request.query_params.get("client_reference"),
        )  # fmt: skip
        forced = self.desk.forced_for(self.name, "status")
        return await self.respond("status", forced, lambda: json_answer({"result": [show(tx) for tx in found]}))

    async def expire(self, request: Request) -> Response:
        found = self._session(request)
        if isinstance(found, Response):
            return found
        if found.state != PENDING:
            return _fault(409, "checkout-session-not-open").answer()
        self.desk.decide(found, EXPIRED, "expired")
        return Response(status_code=200)

    async def refund(self, request: Request) -> Response:
        """At once, in full, and as often as one likes: only the first moves money."""
        found = self._session(request)
        if isinstance(found, Response):
            return found
        if found.state != SUCCEEDED:
            return _fault(409, "checkout-refund-failed").answer()
        if self.desk.store.returned(found):
            return Response(status_code=200)
        scenario = self.desk.choose(self.name, "credit", found.phone or found.detail["digits"])

        def take() -> Response:
            credit = self.desk.take(
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
            refused = scenario.plan in (FAILED, EXPIRED)
            self.desk.decide(credit, FAILED if refused else SUCCEEDED, scenario.reason)
            return self.fault(Answer.REFUSED, "credit") if refused else Response(status_code=200)

        return await self.respond("credit", scenario, take)

    # Payouts

    async def pay_out(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        key, body = request.headers.get("idempotency-key"), await json_object(request) or {}
        amount = hundredths(body.get("receive_amount"), str(body.get("currency")))
        mobile = str(body.get("mobile", "")).removeprefix("+")
        if not key or amount is None or not mobile.isdigit() or len(str(body.get("payment_reason", ""))) > 40:
            return self.fault(Answer.REFUSED)
        mark = replays.fingerprint("payout", body)
        try:
            if again := replays.replayed(self.desk.store, self.name, key, mark):
                return again
        except replays.KeyReused:
            return _fault(409, "idempotency-mismatch").answer()
        scenario = self.desk.choose(self.name, "credit", mobile)
        if scenario.answer is Answer.REFUSED:
            return self.fault(Answer.REFUSED, "payout")

        def take() -> Response:
            tx = self.desk.take(
                self.name,
                "credit",
                scenario,
                operator="wave",
                ref="pt-" + new_uuid().replace("-", "")[:16],
                client_ref=body.get("client_reference"),
                phone=mobile,
                amount=amount,
                currency=str(body["currency"]),
                lifetime=self.lifetime,
            )
            return replays.remember(self.desk.store, self.name, key, mark, json_answer(payout_object(tx)))

        return await self.respond("credit", scenario, take)

    async def payout(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        tx = self.desk.find(self.name, "credit", request.path_params["id"])
        if tx is None:
            return _fault(404, "payout-not-found").answer()
        return await self.question(tx, lambda: json_answer(payout_object(tx)))

    async def reverse(self, request: Request) -> Response:
        """The simulator lets nobody take a payout back: its recipients have always spent the money."""
        if refusal := self._refused_access(request):
            return refusal
        if self.desk.find(self.name, "credit", request.path_params["id"]) is None:
            return _fault(404, "payout-not-found").answer()
        return _fault(409, "payout-reversal-recipient-insufficient-funds").answer()

    async def balance(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        moved = self.desk.store.select("family = 'wave' AND state = 'succeeded'")
        total = sum(tx.amount * (1 if tx.kind == "debit" else -1) for tx in moved)
        return json_answer({"amount": money.plain(total), "currency": "XOF"})

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        """Signed where the secret is a signing secret (`wave_…_WHS_…`), else the secret itself is the bearer."""
        dashboard = self.desk.dashboard(self.name)
        event = EVENTS.get("attempt_failed" if queued.claim == FAILED else queued.claim)
        ended_quietly = queued.claim == FAILED and tx.state == FAILED
        if dashboard.callback_url is None or event is None or tx.kind == "credit" or ended_quietly:
            return None
        session = session_object(tx, queued.claim)
        body = json_bytes({"id": f"EV_{queued.event_id[:16]}", "type": event, "data": session})
        secret = dashboard.secret or ""
        if "_WHS_" in secret:
            signature = timestamped(secret, b"", body, self.desk.clock.now(), queued)
            return Notification(dashboard.callback_url, body, {"Wave-Signature": signature})
        bearer = f"not-{secret}" if queued.forged else secret
        return Notification(dashboard.callback_url, body, {"Authorization": f"Bearer {bearer}"})


def _session_faults(body: Mapping[str, Any]) -> list[str]:
    """The names of the fields that are wrong."""
    mobile = body.get("restrict_payer_mobile")
    checks = {
        "amount": isinstance(body.get("amount"), str) and hundredths(body["amount"], "XOF") is not None,
        "currency": body.get("currency") == "XOF",
        "success_url": str(body.get("success_url", "")).startswith("http"),
        "error_url": str(body.get("error_url", "")).startswith("http"),
        "client_reference": len(str(body.get("client_reference") or "")) <= _LONGEST_REFERENCE,
        "restrict_payer_mobile": not mobile or (str(mobile)[0] == "+" and str(mobile)[1:].isdigit()),
    }
    return [name for name, right in checks.items() if not right]
