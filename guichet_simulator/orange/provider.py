"""Orange Money Web Payment: Orange's own page, a status query by order, no refunds (docs/providers/orange.md).

Unlike the real API it accepts return and notification addresses on this machine.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import (
    ErrorResponse,
    Refused,
    acceptable,
    credential,
    json_bytes,
    json_object,
    json_response,
    new_uuid,
)
from guichet_simulator.models import PENDING, CallbackRequest, QueuedCallback, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.transactions import NewTransaction

#: Country → its currency; `dev` is Orange's own sandbox.
COUNTRIES: Final = {"ml": "XOF", "ci": "XOF", "sn": "XOF", "bf": "XOF", "dev": "OUV"}
#: Seconds.
_TOKEN_LIFETIME: Final = 3600
_MAX_URL: Final = 120
_MAX_ORDER_ID: Final = 30
_URLS: Final = ("return_url", "cancel_url", "notif_url")


def _error(status: int, code: int, message: str, headers: Mapping[str, str] | None = None) -> ErrorResponse:
    return ErrorResponse(status, {"code": code, "message": message, "description": message}, headers or {})


class Orange(SimulatedProvider):
    name = "orange"
    not_shown: ClassVar[Mapping[str, str]] = {
        "wrong_amount": "the status is asked by amount: another amount finds nothing",
        "wrong_currency": "responses have no currency",
        "hidden_amount": "responses have no amount anyway",
    }
    title = "Orange Money"
    lifetime = 600
    callback_in_request = True
    retries = (5, 30)
    errors = {
        ResponseKind.UNAUTHORIZED: _error(401, 41, "Invalid credentials"),
        ResponseKind.RATE_LIMITED: _error(429, 53, "Too many requests", {"Retry-After": "2"}),
        ResponseKind.UNAVAILABLE: _error(503, 5, "The service is temporarily unavailable"),
        ResponseKind.NOT_CONFIGURED: _error(403, 50, "Access denied"),
        ResponseKind.DUPLICATE: _error(400, 1204, "Duplicate order id"),
        ResponseKind.REFUSED: _error(403, 1201, "Transaction forbidden"),
        ResponseKind.SERVER_ERROR: _error(500, 1, "Internal error"),
    }

    def routes(self) -> list[BaseRoute]:
        base = "/orange-money-webpay/{country}/v1"
        return [
            Route("/oauth/v2/token", self.token, methods=["POST"]),
            Route("/oauth/v3/token", self.token, methods=["POST"]),
            self.route(f"{base}/webpayment", self.pay, "POST"),
            self.route(f"{base}/transactionstatus", self.status, "POST"),
            Route("/payment/pay_token/{token}", self.payment_page),
        ]

    async def token(self, request: Request) -> Response:
        form = await request.form()
        if credential(request, "Basic") is None or form.get("grant_type") != "client_credentials":
            return json_response({"error": "invalid_client", "error_description": "Invalid client"}, 401)
        return await self.respond_with_token(_TOKEN_LIFETIME, token_type="Bearer")  # noqa: S106

    async def check_access(self, request: Request) -> None:
        if credential(request) is None:
            raise Refused(_error(401, 40, "Missing credentials"))
        if self.token_expires_at(request) is None:
            raise Refused(self.error(ResponseKind.UNAUTHORIZED))
        if not self.token_is_valid(request):
            raise Refused(_error(401, 42, "Expired credentials"))
        if request.path_params["country"] not in COUNTRIES:
            raise Refused(self.error(ResponseKind.NOT_CONFIGURED))

    async def pay(self, request: Request) -> Response:
        country, body = request.path_params["country"], await json_object(request)
        _check(body, country)
        tokens = {name: new_uuid().replace("-", "") for name in ("pay_token", "notif_token")}
        page = f"{self.address}/payment/pay_token/{tokens['pay_token']}"
        new = NewTransaction(
            "debit",
            self.choose_scenario("debit", str(body["amount"])),
            operator=f"orange_{country}",
            ref=body["order_id"],
            client_ref=body["order_id"],
            amount=body["amount"] * 100,
            callback_url=body["notif_url"],
            detail={
                **tokens,
                "digits": str(body["amount"]),
                "page_url": page,
                "success_url": body["return_url"],
                "cancel_url": body["cancel_url"],
            },
        )
        payload = {"status": 201, "message": "OK", "payment_url": page, **tokens}
        return await self.take(new, lambda _: json_response(payload, 201))

    async def status(self, request: Request) -> Response:
        """Finds a transaction only by its order, amount and token together."""
        body = await json_object(request)
        tx = self.find("debit", str(body.get("order_id")))
        if tx is None or body.get("pay_token") != tx.detail["pay_token"] or body.get("amount") != tx.amount // 100:
            raise Refused(_error(400, 24, "Invalid body field"))
        return await self.respond_to_status(tx, _status_payload(tx), 201)

    async def payment_page(self, request: Request) -> Response:
        """The customer's page. Once it was opened the status is PENDING instead of INITIATED."""
        url = f"{self.address}/payment/pay_token/{request.path_params['token']}"
        for tx in self.ctx.store.select("provider = 'orange' AND json_extract(detail, '$.page_url') = ?", url):
            self.ctx.store.patch_detail(tx, opened=True)
        return await self.hosted_page(request)

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        """Only `notif_token` shows that it comes from Orange. There is no callback when a payment expires."""
        status = {"succeeded": "SUCCESS", "failed": "FAILED"}.get(queued.claim)
        if status is None:
            return None
        token = new_uuid().replace("-", "") if queued.forged else tx.detail["notif_token"]
        payload = {"status": status, "notif_token": token, "txnid": _transaction_id(tx)}
        return CallbackRequest(url, json_bytes(payload))


def _check(body: Mapping[str, Any], country: str) -> None:
    urls = [body.get(name) for name in _URLS]
    amount, order = body.get("amount"), body.get("order_id")
    valid = (
        all(isinstance(url, str) and url.startswith("http") and len(url) <= _MAX_URL for url in urls)
        and isinstance(order, str)
        and 0 < len(order) <= _MAX_ORDER_ID
        and isinstance(amount, int)
        and not isinstance(amount, bool)
        and amount > 0
        and len(str(body.get("reference") or "")) <= _MAX_ORDER_ID
    )
    if not valid:
        raise Refused(_error(400, 24, "Invalid body field"))
    if not acceptable(str(body.get("merchant_key") or "")):
        raise Refused(_error(400, 1202, "Invalid merchant key"))
    if body.get("currency") != COUNTRIES[country]:
        raise Refused(_error(400, 1203, "Invalid currency"))


def _transaction_id(tx: Transaction) -> str:
    return f"MP{tx.id:06d}.0001.A{tx.id:05d}"


def _status_payload(tx: Transaction) -> dict[str, str]:
    pending = "PENDING" if tx.detail.get("opened") or tx.scenario != "waits" else "INITIATED"
    statuses = {PENDING: pending, "succeeded": "SUCCESS", "failed": "FAILED", "expired": "EXPIRED"}
    payload = {"status": statuses[tx.state], "order_id": tx.ref}
    return payload | ({"txnid": _transaction_id(tx)} if tx.state == "succeeded" else {})
