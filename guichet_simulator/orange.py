"""Orange Money Web Payment: a page of Orange's own, a status asked by order, no refund (docs/providers/orange.md).

Unlike the real one, return and notification addresses may be on this machine.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import SECOND
from guichet_simulator.base import Family, Fault, acceptable, credential, json_answer, json_bytes, json_object, new_uuid
from guichet_simulator.context import Notification
from guichet_simulator.scenarios import Answer
from guichet_simulator.store import PENDING, DuplicateRef, QueuedCallback, Transaction

#: Country → its currency; `dev` is Orange's own sandbox.
COUNTRIES: Final = {"ml": "XOF", "ci": "XOF", "sn": "XOF", "bf": "XOF", "dev": "OUV"}
_TOKEN_LIFE: Final = 3600
_LONGEST_URL: Final = 120
_LONGEST_ORDER: Final = 30
_URLS: Final = ("return_url", "cancel_url", "notif_url")


def _fault(status: int, code: int, message: str, headers: Mapping[str, str] | None = None) -> Fault:
    return Fault(status, {"code": code, "message": message, "description": message}, headers or {})


class Orange(Family):
    name = "orange"
    title = "Orange Money"
    lifetime = 600
    retries = (5, 30)
    faults = {
        Answer.UNAUTHORIZED: _fault(401, 41, "Invalid credentials"),
        Answer.RATE_LIMITED: _fault(429, 53, "Too many requests", {"Retry-After": "2"}),
        Answer.UNAVAILABLE: _fault(503, 5, "The service is temporarily unavailable"),
        Answer.NOT_CONFIGURED: _fault(403, 50, "Access denied"),
        Answer.DUPLICATE: _fault(400, 1204, "Duplicate order id"),
        Answer.REFUSED: _fault(403, 1201, "Transaction forbidden"),
        Answer.BROKEN: _fault(500, 1, "Internal error"),
    }

    def routes(self) -> list[BaseRoute]:
        base = "/orange-money-webpay/{cc}/v1"
        return [
            Route("/oauth/v2/token", self.token, methods=["POST"]),
            Route("/oauth/v3/token", self.token, methods=["POST"]),
            Route(f"{base}/webpayment", self.pay, methods=["POST"]),
            Route(f"{base}/transactionstatus", self.status, methods=["POST"]),
            Route("/payment/pay_token/{token}", self.opened),
        ]

    async def token(self, request: Request) -> Response:
        form = await request.form()
        if credential(request, "Basic") is None or form.get("grant_type") != "client_credentials":
            return json_answer({"error": "invalid_client", "error_description": "Invalid client"}, 401)

        def usual() -> Response:
            token = new_uuid()
            expires = self.desk.clock.now() + _TOKEN_LIFE * SECOND
            values = {"token": token, "family": self.name, "scope": "", "expires_at": expires}
            self.desk.store.insert("tokens", values)
            return json_answer({"token_type": "Bearer", "access_token": token, "expires_in": _TOKEN_LIFE})

        return await self.respond("token", self.desk.forced_for(self.name, "token"), usual)

    def _refused_access(self, request: Request) -> Response | None:
        token = credential(request)
        if token is None:
            return _fault(401, 40, "Missing credentials").answer()
        found = self.desk.store.rows("SELECT * FROM tokens WHERE token = ? AND family = 'orange'", token)
        if not found:
            return self.fault(Answer.UNAUTHORIZED)
        if found[0]["expires_at"] <= self.desk.clock.now():
            return _fault(401, 42, "Expired credentials").answer()
        return None if request.path_params["cc"] in COUNTRIES else self.fault(Answer.NOT_CONFIGURED)

    async def pay(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        country, body = request.path_params["cc"], await json_object(request) or {}
        if wrong := _faults(body, country):
            return wrong.answer()
        scenario = self.desk.choose(self.name, "debit", str(body["amount"]))
        detail = {
            "digits": str(body["amount"]),
            "pay_token": new_uuid().replace("-", ""),
            "notif_token": new_uuid().replace("-", ""),
            "success_url": body["return_url"],
            "cancel_url": body["cancel_url"],
        }
        detail["page_url"] = f"{self.address}/payment/pay_token/{detail['pay_token']}"

        def take() -> Response:
            try:
                self.desk.take(
                    self.name,
                    "debit",
                    scenario,
                    operator=f"orange_{country}",
                    ref=body["order_id"],
                    client_ref=body["order_id"],
                    amount=body["amount"] * 100,
                    currency="XOF",
                    lifetime=self.lifetime,
                    callback_url=body["notif_url"],
                    detail=detail,
                )
            except DuplicateRef:
                return self.fault(Answer.DUPLICATE)
            answer = {name: detail[name] for name in ("pay_token", "notif_token")}
            return json_answer({"status": 201, "message": "OK", "payment_url": detail["page_url"], **answer}, 201)

        return await self.respond("debit", scenario, take)

    async def status(self, request: Request) -> Response:
        """Found only by the right order, amount and token together."""
        if refusal := self._refused_access(request):
            return refusal
        body = await json_object(request) or {}
        tx = self.desk.find(self.name, "debit", str(body.get("order_id")))
        if tx is None or body.get("pay_token") != tx.detail["pay_token"] or body.get("amount") != tx.amount // 100:
            return _fault(400, 24, "Invalid body field").answer()
        return await self.question(tx, lambda: json_answer(_shown(tx), 201))

    async def opened(self, request: Request) -> Response:
        """The customer's page; from then on the payment is PENDING and no more only INITIATED."""
        url = f"{self.address}/payment/pay_token/{request.path_params['token']}"
        for tx in self.desk.store.select("family = 'orange' AND json_extract(detail, '$.page_url') = ?", url):
            self.desk.store.patch_detail(tx, opened=True)
        return await self.hosted_page(request)

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        """Proved by `notif_token` alone; an expiry is not notified."""
        status = {"succeeded": "SUCCESS", "failed": "FAILED"}.get(queued.claim)
        if status is None or not tx.callback_url:
            return None
        token = new_uuid().replace("-", "") if queued.forged else tx.detail["notif_token"]
        return Notification(
            tx.callback_url, json_bytes({"status": status, "notif_token": token, "txnid": _transaction_id(tx)})
        )


def _faults(body: Mapping[str, Any], country: str) -> Fault | None:
    urls = [body.get(name) for name in _URLS]
    amount, order = body.get("amount"), body.get("order_id")
    right = (
        all(isinstance(url, str) and url.startswith("http") and len(url) <= _LONGEST_URL for url in urls)
        and isinstance(order, str)
        and 0 < len(order) <= _LONGEST_ORDER
        and isinstance(amount, int)
        and not isinstance(amount, bool)
        and amount > 0
        and len(str(body.get("reference") or "")) <= _LONGEST_ORDER
    )
    if not right:
        return _fault(400, 24, "Invalid body field")
    if not acceptable(str(body.get("merchant_key") or "")):
        return _fault(400, 1202, "Invalid merchant key")
    return None if body.get("currency") == COUNTRIES[country] else _fault(400, 1203, "Invalid currency")


def _transaction_id(tx: Transaction) -> str:
    return f"MP{tx.id:06d}.0001.A{tx.id:05d}"


def _shown(tx: Transaction) -> dict[str, str]:
    waiting = "PENDING" if tx.detail.get("opened") or tx.scenario != "waits" else "INITIATED"
    words = {PENDING: waiting, "succeeded": "SUCCESS", "failed": "FAILED", "expired": "EXPIRED"}
    answer = {"status": words[tx.state], "order_id": tx.ref}
    return answer | ({"txnid": _transaction_id(tx)} if tx.state == "succeeded" else {})
