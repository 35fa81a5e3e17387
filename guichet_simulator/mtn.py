"""MTN MoMo Open API: collection and disbursement, one identifier of the client per call (docs/providers/mtn.md)."""

import base64
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.domain import money
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import (
    ErrorResponse,
    acceptable,
    credential,
    hundredths,
    is_uuid,
    json_bytes,
    json_object,
    json_response,
)
from guichet_simulator.models import SUCCEEDED, CallbackRequest, Kind, QueuedCallback, Transaction
from guichet_simulator.mtn_api_users import ApiUsers
from guichet_simulator.mtn_payloads import ENVIRONMENTS, SANDBOX_NUMBERS, STATES, error, transaction_payload
from guichet_simulator.scenarios import BY_NAME, ResponseKind, Scenario
from guichet_simulator.store import DuplicateRef

#: Seconds.
_TOKEN_LIFETIME: Final = 3600
_MAX_TEXT: Final = 160
#: Hundredths.
_FLOAT: Final = 10_000_000_00


class Mtn(SimulatedProvider):
    """The old platform. What it took can be read here only, and not on the new one."""

    name = "mtn"
    title = "MTN MoMo"
    new_platform = False
    lifetime = 300
    #: MTN sends a callback once.
    retries = ()
    errors = {
        ("token", ResponseKind.UNAUTHORIZED): ErrorResponse(401, {"error": "invalid_client"}),
        ResponseKind.UNAUTHORIZED: ErrorResponse(
            401, {"statusCode": 401, "message": "Access denied due to invalid credentials."}
        ),
        ResponseKind.RATE_LIMITED: ErrorResponse(
            429, {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 2 seconds."}, {"Retry-After": "2"}
        ),
        ResponseKind.UNAVAILABLE: error(503, "SERVICE_UNAVAILABLE"),
        ResponseKind.NOT_CONFIGURED: error(500, "NOT_ALLOWED_TARGET_ENVIRONMENT"),
        ResponseKind.DUPLICATE: error(409, "RESOURCE_ALREADY_EXIST"),
        ResponseKind.REFUSED: error(500, "PAYER_NOT_FOUND"),
        ("credit", ResponseKind.REFUSED): error(500, "PAYEE_NOT_FOUND"),
        ("credit", ResponseKind.FLOAT_EMPTY): error(500, "NOT_ENOUGH_FUNDS"),
        ResponseKind.SERVER_ERROR: ErrorResponse(500),
    }

    def routes(self) -> list[BaseRoute]:
        collection, disbursement = "/collection", "/disbursement"
        return [
            *ApiUsers(self).routes(),
            Route("/{product}/token/", self.token, methods=["POST"]),
            Route(f"{collection}/v1_0/requesttopay", self.request_to_pay, methods=["POST"]),
            Route(f"{collection}/v1_0/requesttopay/{{ref}}", self.debit_status),
            Route(f"{collection}/v1_0/accountholder/msisdn/{{phone}}/active", self.active),
            Route("/{product}/v1_0/account/balance", self.balance),
            Route(f"{disbursement}/v1_0/refund", self.refund, methods=["POST"]),
            Route(f"{disbursement}/v2_0/refund", self.refund, methods=["POST"]),
            Route(f"{disbursement}/v1_0/transfer", self.transfer, methods=["POST"]),
            Route(f"{disbursement}/v1_0/refund/{{ref}}", self.credit_status),
            Route(f"{disbursement}/v1_0/transfer/{{ref}}", self.credit_status),
        ]

    # Access

    async def token(self, request: Request) -> Response:
        product = request.path_params["product"]
        if product not in ("collection", "disbursement"):
            return json_response({"statusCode": 404, "message": "Resource not found"}, 404)
        if self.new_platform and (refusal := _refused_by_new_gateway(request)):
            return refusal
        if credential(request, "Basic") is None or not acceptable(request.headers.get("ocp-apim-subscription-key")):
            return self.error(ResponseKind.UNAUTHORIZED, "token")
        return await self.respond_with_token(_TOKEN_LIFETIME, token_type="access_token", scope=product)  # noqa: S106

    def _check_access(self, request: Request, product: str) -> Response | None:
        if not acceptable(request.headers.get("ocp-apim-subscription-key")):
            return self.error(ResponseKind.UNAUTHORIZED)
        if not self.token_is_valid(request, product):
            return self.error(ResponseKind.UNAUTHORIZED)
        if request.headers.get("x-target-environment") not in ENVIRONMENTS:
            return error(500, "NOT_ALLOWED_TARGET_ENVIRONMENT").response()
        return None

    # Calls that move money

    async def request_to_pay(self, request: Request) -> Response:
        return await self._move_money(request, "debit", "payer")

    async def transfer(self, request: Request) -> Response:
        return await self._move_money(request, "credit", "payee")

    async def refund(self, request: Request) -> Response:
        return await self._move_money(request, "credit", None)

    async def _move_money(self, request: Request, kind: Kind, party: str | None) -> Response:
        """`party` is the field with the customer's number; None for a refund, which names a debit instead."""
        if refusal := self._check_access(request, "collection" if kind == "debit" else "disbursement"):
            return refusal
        body = await json_object(request) or {}
        environment = request.headers["x-target-environment"]
        if invalid := _validate(request, body, environment):
            return invalid.response()
        ref, amount = request.headers["x-reference-id"], hundredths(body["amount"], body["currency"])
        assert amount is not None
        if self.ctx.find(self.name, kind, ref):
            return error(409, "RESOURCE_ALREADY_EXIST").response()
        parent = None
        if party is None:
            debit = self._refundable_debit(body, amount)
            if isinstance(debit, ErrorResponse):
                return debit.response()
            parent, phone = debit.ref, debit.phone or ""
        else:
            holder = body.get(party)
            phone = str(holder.get("partyId", "")) if isinstance(holder, dict) else ""
            if not phone.isdigit():
                return json_response({"code": "VALIDATION_ERROR", "message": "partyId is not an MSISDN"}, 400)
        scenario = self._choose_scenario(kind, phone)

        def create() -> Response:
            echoed = {name: str(body.get(name, "")) for name in ("externalId", "payerMessage", "payeeNote")}
            try:
                self.ctx.create_transaction(
                    self.name,
                    kind,
                    scenario,
                    operator=ENVIRONMENTS[environment].operator,
                    ref=ref,
                    client_ref=echoed["externalId"] or ref,
                    phone=phone,
                    amount=amount,
                    currency=body["currency"],
                    lifetime=self.lifetime,
                    parent=parent,
                    callback_url=request.headers.get("x-callback-url"),
                    detail=echoed,
                )
            except DuplicateRef:
                return error(409, "RESOURCE_ALREADY_EXIST").response()
            return Response(status_code=202)

        return await self.respond(kind, scenario, create)

    def _choose_scenario(self, kind: Kind, phone: str) -> Scenario:
        chosen = self.ctx.choose_scenario(self.name, kind, phone)
        if kind == "debit" and chosen.waits_for_customer and phone in SANDBOX_NUMBERS:
            return BY_NAME[SANDBOX_NUMBERS[phone]]
        return chosen

    def _refundable_debit(self, body: Mapping[str, Any], amount: int) -> Transaction | ErrorResponse:
        debit = self.ctx.find(self.name, "debit", str(body.get("referenceIdToRefund", "")))
        if debit is None:
            return error(404, "RESOURCE_NOT_FOUND")
        if debit.state != SUCCEEDED or self.ctx.store.refunded_amount(debit) + amount > debit.amount:
            return error(500, "NOT_ALLOWED")
        return debit

    # Status calls

    async def debit_status(self, request: Request) -> Response:
        return await self._status(request, "debit", "collection")

    async def credit_status(self, request: Request) -> Response:
        return await self._status(request, "credit", "disbursement")

    async def _status(self, request: Request, kind: Kind, product: str) -> Response:
        if refusal := self._check_access(request, product):
            return refusal
        tx = self.ctx.find(self.name, kind, request.path_params["ref"])
        if tx is None:
            forced = self.ctx.forced_scenario(self.name, "status")
            return await self.respond("status", forced, error(404, "RESOURCE_NOT_FOUND").response)
        return await self.respond_to_status(tx, lambda: json_response(transaction_payload(tx)))

    async def active(self, request: Request) -> Response:
        if refusal := self._check_access(request, "collection"):
            return refusal
        return json_response({"result": not request.path_params["phone"].endswith("9006")})

    async def balance(self, request: Request) -> Response:
        product = request.path_params["product"]
        if refusal := self._check_access(request, product):
            return refusal
        environment = ENVIRONMENTS[request.headers["x-target-environment"]]
        kind = "debit" if product == "collection" else "credit"
        where = "provider = ? AND kind = ? AND operator = ? AND state = 'succeeded'"
        moved = sum(tx.amount for tx in self.ctx.store.select(where, self.name, kind, environment.operator))
        total = moved if product == "collection" else self._left_to_pay_out(moved)
        return json_response({"availableBalance": money.plain(total), "currency": environment.currency})

    def _left_to_pay_out(self, paid_out: int) -> int:
        """Disbursement is a wallet of its own, filled once."""
        return 0 if self.ctx.dashboard(self.name).float_empty else max(0, _FLOAT - paid_out)

    def callback_request(self, tx: Transaction, queued: QueuedCallback) -> CallbackRequest | None:
        """PUT for a debit and POST for a credit: the documentation shows both, so a client must accept both."""
        if not tx.callback_url or queued.claim not in STATES:
            return None
        body = json_bytes(transaction_payload(tx, STATES[queued.claim]))
        return CallbackRequest(tx.callback_url, body, method="PUT" if tx.kind == "debit" else "POST")


class MtnNewPlatform(Mtn):
    """The platform that replaces it (docs/providers/mtn.md, "Addresses and credentials")."""

    name = "mtn_new_platform"
    new_platform = True


def _refused_by_new_gateway(request: Request) -> Response | None:
    """What only the new platform checks before it gives a token."""
    if "python-requests" in request.headers.get("user-agent", ""):
        return Response("<html><body>403 Forbidden</body></html>", 403, media_type="text/html")
    if request.headers.get("x-target-environment") not in ENVIRONMENTS:
        return json_response({"error": "Invalid or missing X-Target-Environment header"}, 400)
    if "%" in base64.b64decode(credential(request, "Basic") or "").decode("utf-8", "replace"):
        return Response(status_code=500)  # Credentials that were URL-encoded before they were put together.
    return None


def _validate(request: Request, body: Mapping[str, Any], environment: str) -> ErrorResponse | None:
    if not is_uuid(request.headers.get("x-reference-id", "")):
        return ErrorResponse(400, {"code": "VALIDATION_ERROR", "message": "X-Reference-Id must be a UUID"})
    if request.headers.get("x-callback-url") == "":
        return error(500, "INVALID_CALLBACK_URL_HOST")
    if body.get("currency") != ENVIRONMENTS[environment].currency:
        return error(500, "INVALID_CURRENCY")
    texts = [body.get(name, "") for name in ("payerMessage", "payeeNote")]
    texts_valid = all(isinstance(text, str) and len(text) <= _MAX_TEXT and text.isascii() for text in texts)
    amount_valid = isinstance(body.get("amount"), str) and hundredths(body["amount"], body["currency"]) is not None
    return None if amount_valid and texts_valid else ErrorResponse(400)
