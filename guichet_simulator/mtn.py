"""MTN MoMo Open API: collection and disbursement, one client identifier per call (docs/providers/mtn.md)."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import SECOND
from guichet.domain import money
from guichet_simulator.base import (
    Family,
    Fault,
    acceptable,
    credential,
    hundredths,
    is_uuid,
    json_answer,
    json_bytes,
    json_object,
    new_uuid,
)
from guichet_simulator.context import Notification
from guichet_simulator.scenarios import BY_NAME, Answer, Scenario
from guichet_simulator.store import SUCCEEDED, DuplicateRef, Kind, QueuedCallback, Transaction

#: Target environment → the one currency it speaks.
ENVIRONMENTS: Final = {"mtnbenin": "XOF", "mtnivorycoast": "XOF", "mtncongo": "XAF", "sandbox": "EUR"}
_OPERATORS: Final = {"mtnbenin": "mtn", "mtnivorycoast": "mtn_ci", "mtncongo": "mtn_cg", "sandbox": "sandbox"}
_TOKEN_LIFE: Final = 3600
_LONGEST_TEXT: Final = 160
_STATES: Final = {"pending": "PENDING", "succeeded": "SUCCESSFUL", "failed": "FAILED", "expired": "FAILED"}

REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "NOT_ENOUGH_FUNDS",
    "payer_not_found": "PAYER_NOT_FOUND",
    "rejected_by_payer": "APPROVAL_REJECTED",
    "expired": "EXPIRED",
}
_CREDIT_REASONS: Final[Mapping[str | None, str]] = {
    **REASONS,
    "insufficient_funds": "PAYEE_LIMIT_REACHED",
    "payer_not_found": "PAYEE_NOT_FOUND",
}

#: The sandbox's own numbers (docs/providers/mtn.md, "Sandbox") and the scenario each one means here.
SANDBOX_NUMBERS: Final = {
    "46733123450": "declined",
    "46733123451": "rejected",
    "46733123452": "expires",
    "46733123453": "succeeds_late",
    "46733123454": "never_final",
    "46733123455": "refused",
    "46733123458": "not_configured",
    "46733123461": "error_500_not_stored",
    "46733123462": "unavailable",
    "46733123463": "expires",
}


def _fault(status: int, code: str) -> Fault:
    return Fault(status, {"code": code, "message": code.replace("_", " ").capitalize()})


def _error(status: int, code: str) -> Response:
    return _fault(status, code).answer()


class Mtn(Family):
    name = "mtn"
    title = "MTN MoMo"
    lifetime = 300
    #: One shot, never repeated.
    retries = ()
    faults = {
        ("token", Answer.UNAUTHORIZED): Fault(401, {"error": "invalid_client"}),
        Answer.UNAUTHORIZED: Fault(401, {"statusCode": 401, "message": "Access denied due to invalid credentials."}),
        Answer.RATE_LIMITED: Fault(
            429, {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 2 seconds."}, {"Retry-After": "2"}
        ),
        Answer.UNAVAILABLE: _fault(503, "SERVICE_UNAVAILABLE"),
        Answer.NOT_CONFIGURED: _fault(500, "NOT_ALLOWED_TARGET_ENVIRONMENT"),
        Answer.DUPLICATE: _fault(409, "RESOURCE_ALREADY_EXIST"),
        Answer.REFUSED: _fault(500, "PAYER_NOT_FOUND"),
        ("credit", Answer.REFUSED): _fault(500, "PAYEE_NOT_FOUND"),
        Answer.BROKEN: Fault(500),
    }

    def routes(self) -> list[BaseRoute]:
        collection, disbursement = "/collection", "/disbursement"
        return [
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
            return json_answer({"statusCode": 404, "message": "Resource not found"}, 404)
        if credential(request, "Basic") is None or not acceptable(request.headers.get("ocp-apim-subscription-key")):
            return self.fault(Answer.UNAUTHORIZED, "token")

        def usual() -> Response:
            token = new_uuid()
            expires = self.desk.clock.now() + _TOKEN_LIFE * SECOND
            values = {"token": token, "family": self.name, "scope": product, "expires_at": expires}
            self.desk.store.insert("tokens", values)
            return json_answer({"access_token": token, "token_type": "access_token", "expires_in": _TOKEN_LIFE})

        return await self.respond("token", self.desk.forced_for(self.name, "token"), usual)

    def _refused_access(self, request: Request, product: str) -> Response | None:
        if not acceptable(request.headers.get("ocp-apim-subscription-key")):
            return self.fault(Answer.UNAUTHORIZED)
        token = credential(request)
        found = self.desk.store.rows(
            "SELECT * FROM tokens WHERE token = ? AND family = ? AND scope = ? AND expires_at > ?",
            token, self.name, product, self.desk.clock.now(),
        )  # fmt: skip
        if not found:
            return self.fault(Answer.UNAUTHORIZED)
        if request.headers.get("x-target-environment") not in ENVIRONMENTS:
            return _error(500, "NOT_ALLOWED_TARGET_ENVIRONMENT")
        return None

    # Calls that move money

    async def request_to_pay(self, request: Request) -> Response:
        return await self._move(request, "debit", "payer")

    async def transfer(self, request: Request) -> Response:
        return await self._move(request, "credit", "payee")

    async def refund(self, request: Request) -> Response:
        return await self._move(request, "credit", None)

    async def _move(self, request: Request, kind: Kind, party: str | None) -> Response:
        if refusal := self._refused_access(request, "collection" if kind == "debit" else "disbursement"):
            return refusal
        body = await json_object(request) or {}
        environment = request.headers["x-target-environment"]
        if refusal := _faults(request, body, environment):
            return refusal
        ref, amount = request.headers["x-reference-id"], hundredths(body["amount"], body["currency"])
        assert amount is not None
        if self.desk.find(self.name, kind, ref):
            return _error(409, "RESOURCE_ALREADY_EXIST")
        parent = None
        if party is None:
            found = self._refundable(body, amount)
            if isinstance(found, Response):
                return found
            parent, phone = found.ref, found.phone or ""
        else:
            holder = body.get(party)
            phone = str(holder.get("partyId", "")) if isinstance(holder, dict) else ""
            if not phone.isdigit():
                return json_answer({"code": "VALIDATION_ERROR", "message": "partyId is not an MSISDN"}, 400)
        scenario = self._scenario(kind, phone)

        def take() -> Response:
            kept = {name: str(body.get(name, "")) for name in ("externalId", "payerMessage", "payeeNote")}
            try:
                self.desk.take(
                    self.name,
                    kind,
                    scenario,
                    operator=_OPERATORS[environment],
                    ref=ref,
                    client_ref=kept["externalId"] or ref,
                    phone=phone,
                    amount=amount,
                    currency=body["currency"],
                    lifetime=self.lifetime,
                    parent=parent,
                    callback_url=request.headers.get("x-callback-url"),
                    detail=kept,
                )
            except DuplicateRef:
                return _error(409, "RESOURCE_ALREADY_EXIST")
            return Response(status_code=202)

        return await self.respond(kind, scenario, take)

    def _scenario(self, kind: Kind, phone: str) -> Scenario:
        chosen = self.desk.choose(self.name, kind, phone)
        if kind == "debit" and chosen.by_hand and phone in SANDBOX_NUMBERS:
            return BY_NAME[SANDBOX_NUMBERS[phone]]
        return chosen

    def _refundable(self, body: Mapping[str, Any], amount: int) -> Transaction | Response:
        debit = self.desk.find(self.name, "debit", str(body.get("referenceIdToRefund", "")))
        if debit is None:
            return _error(404, "RESOURCE_NOT_FOUND")
        if debit.state != SUCCEEDED or self.desk.store.returned(debit) + amount > debit.amount:
            return _error(500, "NOT_ALLOWED")
        return debit

    # Questions

    async def debit_status(self, request: Request) -> Response:
        return await self._status(request, "debit", "collection")

    async def credit_status(self, request: Request) -> Response:
        return await self._status(request, "credit", "disbursement")

    async def _status(self, request: Request, kind: Kind, product: str) -> Response:
        if refusal := self._refused_access(request, product):
            return refusal
        tx = self.desk.find(self.name, kind, request.path_params["ref"])
        if tx is None:
            return await self.respond(
                "status",
                self.desk.forced_for(self.name, "status"),
                lambda: _error(404, "RESOURCE_NOT_FOUND"),
            )
        return await self.question(tx, lambda: json_answer(_shown(tx)))

    async def active(self, request: Request) -> Response:
        if refusal := self._refused_access(request, "collection"):
            return refusal
        return json_answer({"result": not request.path_params["phone"].endswith("9006")})

    async def balance(self, request: Request) -> Response:
        product = request.path_params["product"]
        if refusal := self._refused_access(request, product):
            return refusal
        environment = request.headers["x-target-environment"]
        kind = "debit" if product == "collection" else "credit"
        moved = self.desk.store.select(
            "family = 'mtn' AND kind = ? AND operator = ? AND state = 'succeeded'", kind, _OPERATORS[environment]
        )
        total = money.plain(sum(tx.amount for tx in moved))
        return json_answer({"availableBalance": total, "currency": ENVIRONMENTS[environment]})

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        """PUT for a debit, POST for a credit: the documentation shows both, so a client must take both."""
        if not tx.callback_url or queued.claim not in _STATES:
            return None
        body = json_bytes(_shown(tx, _STATES[queued.claim]))
        return Notification(tx.callback_url, body, method="PUT" if tx.kind == "debit" else "POST")


def _faults(request: Request, body: Mapping[str, Any], environment: str) -> Response | None:
    if not is_uuid(request.headers.get("x-reference-id", "")):
        return json_answer({"code": "VALIDATION_ERROR", "message": "X-Reference-Id must be a UUID"}, 400)
    if request.headers.get("x-callback-url") == "":
        return _error(500, "INVALID_CALLBACK_URL_HOST")
    if body.get("currency") != ENVIRONMENTS[environment]:
        return _error(500, "INVALID_CURRENCY")
    texts = [body.get(name, "") for name in ("payerMessage", "payeeNote")]
    well_formed = all(isinstance(text, str) and len(text) <= _LONGEST_TEXT and text.isascii() for text in texts)
    if (
        not isinstance(body.get("amount"), str)
        or hundredths(body["amount"], body["currency"]) is None
        or not well_formed
    ):
        return Response(status_code=400)
    return None


def _shown(tx: Transaction, status: str | None = None) -> dict[str, Any]:
    stated = status or _STATES[tx.state]
    party = "payer" if tx.kind == "debit" else "payee"
    answer: dict[str, Any] = {
        "externalId": tx.detail["externalId"],
        "currency": tx.shown_currency,
        party: {"partyIdType": "MSISDN", "partyId": tx.phone},
        "payerMessage": tx.detail["payerMessage"],
        "payeeNote": tx.detail["payeeNote"],
        "status": stated,
    }
    if tx.shown_amount is not None:
        answer["amount"] = money.plain(tx.shown_amount)
    if stated == "SUCCESSFUL":
        answer["financialTransactionId"] = str(7_000_000_000 + tx.id)
    if stated == "FAILED":
        names = REASONS if tx.kind == "debit" else _CREDIT_REASONS
        answer["reason"] = names.get(tx.reason, "INTERNAL_PROCESSING_ERROR")
    return answer
