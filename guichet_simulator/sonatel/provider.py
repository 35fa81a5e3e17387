"""Orange Money by Sonatel: payment with a code in one step, cash-in as refund, signed callbacks.

Source: docs/providers/sonatel.md. Payments by QR code or deep link are not simulated: our customers always give a code.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import to_datetime
from guichet.domain.money import Hundredths
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import (
    Refused,
    acceptable,
    hundredths,
    json_bytes,
    json_object,
    json_response,
    new_uuid,
)
from guichet_simulator.models import CallbackRequest, Kind, QueuedCallback, Transaction
from guichet_simulator.otp_messages import consume_code
from guichet_simulator.scenarios import ResponseKind, Scenario
from guichet_simulator.sonatel.payloads import DIAL, STATES, list_shape, problem, transaction_payload
from guichet_simulator.store import undocumented_order
from guichet_simulator.transactions import NewTransaction

if TYPE_CHECKING:
    from guichet_simulator.sonatel.pin_decryptor import PinDecryptor

#: Seconds.
_TOKEN_LIFETIME: Final = 299
#: Calls are synchronous: a scenario that ends within this many seconds is final in the response.
_FINAL_WITHIN: Final = 5.0


class Sonatel(SimulatedProvider):
    name = "sonatel"
    signing_key = "sonatel-simulator"
    not_shown: ClassVar[Mapping[str, str]] = {
        "hidden_amount": "the status has no amount anyway; the list has",
    }
    title = "Orange Money Sénégal"
    lifetime = 300
    retries = (5, 30, 120, 600)
    errors = {
        ResponseKind.UNAUTHORIZED: problem(401, "4001", "Invalid access token"),
        ResponseKind.RATE_LIMITED: problem(429, "4290", "Too many requests", {"Retry-After": "2"}),
        ResponseKind.UNAVAILABLE: problem(503, "5", "Service unavailable"),
        ResponseKind.NOT_CONFIGURED: problem(403, "2041", "Operation not authorised"),
        ResponseKind.REFUSED: problem(400, "2000", "Customer account does not exist"),
        ("credit", ResponseKind.FLOAT_EMPTY): problem(400, "2020", "Insufficient balance"),
        ResponseKind.DUPLICATE: problem(400, "24", "Reference already used"),
        ResponseKind.SERVER_ERROR: problem(500, "1", "Internal error"),
    }

    @cached_property
    def _pin_decryptor(self) -> "PinDecryptor":
        """Made when it is first needed: making or reading an RSA key takes longer than the rest of the start."""
        from guichet_simulator.sonatel.pin_decryptor import PinDecryptor  # noqa: PLC0415

        return PinDecryptor(self.ctx.store)

    def routes(self) -> list[BaseRoute]:
        wallet = "/api/eWallet/v1"
        return [
            Route("/oauth/v1/token", self.token, methods=["POST"]),
            self.route(f"{wallet}/payments/onestep", self.pay, "POST"),
            self.route(f"{wallet}/cashins", self.cash_in, "POST"),
            self.route(f"{wallet}/transactions", self.search),
            self.route(f"{wallet}/transactions/{{id}}/status", self.status),
            self.route("/api/account/v1/publicKeys", self.public_key),
            self.route("/api/notification/v1/merchantcallback", self.register, "POST"),
            self.route("/api/notification/v1/merchantcallback", self.registered),
        ]

    # Access

    async def token(self, request: Request) -> Response:
        form = await request.form()
        known = acceptable(str(form.get("client_id") or "")) and acceptable(str(form.get("client_secret") or ""))
        if not known or form.get("grant_type") != "client_credentials":
            return json_response({"error": "invalid_client"}, 401)
        return await self.respond_with_token(_TOKEN_LIFETIME, token_type="bearer")  # noqa: S106

    async def check_access(self, request: Request) -> None:
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise Refused(problem(415, "415", "Unsupported media type"))
        if not self.token_is_valid(request):
            raise Refused(self.error(ResponseKind.UNAUTHORIZED))

    # Calls that move money

    async def pay(self, request: Request) -> Response:
        body = await json_object(request)
        customer, amount = body.get("customer"), _amount(body)
        if not isinstance(customer, dict) or amount is None or not isinstance(body.get("partner"), dict):
            raise Refused(problem(400, "24", "Invalid body"))
        number = str(customer.get("id", ""))
        if customer.get("idType") != "MSISDN" or not (number.isdigit() and len(number) == 9):
            raise Refused(problem(400, "2001", "Invalid MSISDN"))
        phone = DIAL + number
        if not consume_code(self.ctx, self.name, phone, str(customer.get("otp", ""))):
            raise Refused(problem(400, "2011", "Invalid PIN or OTP"))
        scenario = self.choose_scenario("debit", phone, preauthorised=True)
        return await self._move_money("debit", scenario, body, amount=amount, phone=phone)

    async def cash_in(self, request: Request) -> Response:
        body = await json_object(request)
        customer, partner, amount = body.get("customer"), body.get("partner"), _amount(body)
        if not isinstance(customer, dict) or not isinstance(partner, dict) or amount is None:
            raise Refused(problem(400, "24", "Invalid body"))
        if not self._pin_decryptor.decrypt(str(partner.get("encryptedPinCode", ""))).isdigit():
            raise Refused(problem(400, "2011", "Invalid PIN or OTP"))
        phone = DIAL + str(customer.get("id", ""))
        scenario = self.choose_scenario("credit", phone)
        return await self._move_money("credit", scenario, body, amount=amount, phone=phone)

    async def _move_money(
        self, kind: Kind, scenario: Scenario, body: Mapping[str, Any], *, amount: Hundredths, phone: str
    ) -> Response:
        prefix = "MP" if kind == "debit" else "CI"
        new = NewTransaction(
            kind,
            scenario,
            operator="orange_sn",
            ref=f"{prefix}{to_datetime(self.ctx.clock.now()):%y%m%d.%H%M}.A{new_uuid()[:6].upper()}",
            client_ref=str(body["reference"]) if body.get("reference") else None,
            phone=phone,
            amount=amount,
            detail={"metadata": body.get("metadata") or {}, "merchant": body["partner"].get("id")},
        )

        def decided(tx: Transaction) -> Response:
            if scenario.final_state is not None and scenario.after <= _FINAL_WITHIN:
                self.ctx.decide(tx, scenario.final_state, scenario.reason)
            tx = self.ctx.store.get(tx.id)
            status = STATES[tx.state]
            payload = {"reference": tx.client_ref, "transactionId": tx.ref, "status": status}
            request_id = {"requestId": new_uuid()} if kind == "credit" else {}
            return json_response({**payload, "description": status.capitalize(), **request_id})

        return await self.take(new, decided)

    # Status calls

    async def status(self, request: Request) -> Response:
        ref = request.path_params["id"]
        tx = self.find("credit" if ref.startswith("CI") else "debit", ref)
        if tx is None:
            raise Refused(problem(404, "60", "Transaction not found"))
        return await self.respond_to_status(tx, {"status": STATES[tx.state]})

    async def search(self, request: Request) -> Response:
        reference = request.query_params.get("reference")
        rows = [transaction_payload(tx) for tx in undocumented_order(self.select("client_ref = ?", reference))]
        shape = list_shape(str(reference))
        return await self.respond_to_status(None, {shape: rows} if shape else rows)

    # Keys and callbacks

    async def public_key(self, request: Request) -> Response:
        key = self._pin_decryptor.public_key()
        return json_response({"keyId": "1", "keySize": 2048, "keyType": "RSA", "key": key})

    async def register(self, request: Request) -> Response:
        """Set the callback URL of the dashboard."""
        body = await json_object(request)
        url, key = body.get("callbackUrl"), body.get("apiKey")
        if not (isinstance(url, str) and url.startswith("http") and key and body.get("code")):
            raise Refused(problem(400, "24", "Invalid body"))
        changed = replace(self.dashboard, callback_url=url)
        self.ctx.store.set_setting(f"dashboard:{self.name}", asdict(changed))
        self.ctx.store.set_setting("sonatel:api_key", key)
        return json_response(body, 201)

    async def registered(self, request: Request) -> Response:
        url = self.dashboard.callback_url
        if url is None:
            raise Refused(problem(404, "60", "Entity not found"))
        return json_response([{"code": request.query_params.get("code"), "name": "callback", "callbackUrl": url}])

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        if queued.claim not in STATES:
            return None
        body = json_bytes(transaction_payload(tx, STATES[queued.claim]))
        signature = self.sign(body, queued, b",")
        headers = {"X-Sonatel-Signature": signature, "X-Sonatel-Idempotency-Key": queued.event_id}
        if key := self.ctx.store.setting("sonatel:api_key"):
            headers["Authorization"] = f"Basic {key}"
        return CallbackRequest(url, body, headers)


def _amount(body: Mapping[str, Any]) -> Hundredths | None:
    amount = body.get("amount")
    if not isinstance(amount, dict) or amount.get("unit") != "XOF":
        return None
    return hundredths(amount.get("value"), "XOF")
