"""Orange Money by Sonatel: payment with a code in one step, cash-in as refund, signed callbacks.

Source: docs/providers/sonatel.md. The QR and deep link variant is not simulated: a customer of ours always brings a
code.
"""

import base64
import binascii
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import SECOND, to_datetime
from guichet_simulator.base import (
    Family,
    acceptable,
    credential,
    hundredths,
    json_answer,
    json_bytes,
    json_object,
    new_uuid,
    units,
)
from guichet_simulator.context import Desk, Notification
from guichet_simulator.messages import code_is_good, send_code
from guichet_simulator.scenarios import Answer, Scenario
from guichet_simulator.signatures import timestamped
from guichet_simulator.sonatel_payloads import DIAL, STATES, problem
from guichet_simulator.store import Kind, QueuedCallback, Transaction

_TOKEN_LIFE: Final = 299
#: Scenarios that are final in the answer here, though elsewhere they take a moment: the call is synchronous.
_AT_ONCE: Final = 5.0


class Sonatel(Family):
    name = "sonatel"
    title = "Orange Money Sénégal"
    lifetime = 300
    retries = (5, 30, 120, 600)
    faults = {
        Answer.UNAUTHORIZED: problem(401, "4001", "Invalid access token"),
        Answer.RATE_LIMITED: problem(429, "4290", "Too many requests", {"Retry-After": "2"}),
        Answer.UNAVAILABLE: problem(503, "5", "Service unavailable"),
        Answer.NOT_CONFIGURED: problem(403, "2041", "Operation not authorised"),
        Answer.REFUSED: problem(400, "2000", "Customer account does not exist"),
        ("credit", Answer.REFUSED): problem(400, "2020", "Insufficient balance"),
        Answer.DUPLICATE: problem(400, "24", "Reference already used"),
        Answer.BROKEN: problem(500, "1", "Internal error"),
    }

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        """Made, or read and checked, for the first who needs it: either takes longer than the rest of the start."""
        return _remembered_key(self.desk)

    def routes(self) -> list[BaseRoute]:
        wallet = "/api/eWallet/v1"
        return [
            Route("/oauth/v1/token", self.token, methods=["POST"]),
            Route(f"{wallet}/payments/onestep", self.pay, methods=["POST"]),
            Route(f"{wallet}/payments/otp", self.send_code, methods=["POST"]),
            Route(f"{wallet}/cashins", self.cash_in, methods=["POST"]),
            Route(f"{wallet}/transactions", self.search),
            Route(f"{wallet}/transactions/{{id}}/status", self.status),
            Route("/api/account/v1/publicKeys", self.public_key),
            Route("/api/notification/v1/merchantcallback", self.register, methods=["POST"]),
        ]

    # Access

    async def token(self, request: Request) -> Response:
        form = await request.form()
        known = acceptable(str(form.get("client_id") or "")) and acceptable(str(form.get("client_secret") or ""))
        if not known or form.get("grant_type") != "client_credentials":
            return json_answer({"error": "invalid_client"}, 401)

        def usual() -> Response:
            token = new_uuid()
            expires = self.desk.clock.now() + _TOKEN_LIFE * SECOND
            values = {"token": token, "family": self.name, "scope": "", "expires_at": expires}
            self.desk.store.insert("tokens", values)
            return json_answer({"access_token": token, "token_type": "bearer", "expires_in": _TOKEN_LIFE})

        return await self.respond("token", self.desk.forced_for(self.name, "token"), usual)

    def _refused_access(self, request: Request) -> Response | None:
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return problem(415, "415", "Unsupported media type").answer()
        found = self.desk.store.rows(
            "SELECT 1 FROM tokens WHERE token = ? AND family = 'sonatel' AND expires_at > ?",
            credential(request), self.desk.clock.now(),
        )  # fmt: skip
        return None if found else self.fault(Answer.UNAUTHORIZED)

    # Calls that move money

    async def pay(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        body = await json_object(request) or {}
        customer, amount = body.get("customer"), _amount(body)
        if not isinstance(customer, dict) or amount is None or not isinstance(body.get("partner"), dict):
            return problem(400, "24", "Invalid body").answer()
        number = str(customer.get("id", ""))
        if customer.get("idType") != "MSISDN" or not (number.isdigit() and len(number) == 9):
            return problem(400, "2001", "Invalid MSISDN").answer()
        phone = DIAL + number
        if not code_is_good(self.desk, self.name, phone, str(customer.get("otp", ""))):
            return problem(400, "2011", "Invalid PIN or OTP").answer()
        scenario = self.desk.choose(self.name, "debit", phone, agreed=True)
        return await self._move("debit", "MP", scenario, body, amount, phone)

    async def cash_in(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        body = await json_object(request) or {}
        customer, partner, amount = body.get("customer"), body.get("partner"), _amount(body)
        if not isinstance(customer, dict) or not isinstance(partner, dict) or amount is None:
            return problem(400, "24", "Invalid body").answer()
        if not self._pin(str(partner.get("encryptedPinCode", ""))).isdigit():
            return problem(400, "2011", "Invalid PIN or OTP").answer()
        phone = DIAL + str(customer.get("id", ""))
        scenario = self.desk.choose(self.name, "credit", phone)
        return await self._move("credit", "CI", scenario, body, amount, phone)

    async def _move(
        self, kind: Kind, prefix: str, scenario: Scenario, body: Mapping[str, Any], amount: int, phone: str
    ) -> Response:
        """Final in the answer, unless the scenario is a long one."""

        def take() -> Response:
            now = self.desk.clock.now()
            tx = self.desk.take(
                self.name,
                kind,
                scenario,
                operator="orange_sn",
                ref=f"{prefix}{to_datetime(now):%y%m%d.%H%M}.A{new_uuid()[:6].upper()}",
                client_ref=str(body["reference"]) if body.get("reference") else None,
                phone=phone,
                amount=amount,
                currency="XOF",
                lifetime=self.lifetime,
                detail={"metadata": body.get("metadata") or {}, "merchant": body["partner"].get("id")},
            )
            if scenario.plan is not None and scenario.after <= _AT_ONCE:
                self.desk.decide(tx, scenario.plan, scenario.reason)
            tx = self.desk.store.get(tx.id)
            answer = {"reference": tx.client_ref, "transactionId": tx.ref, "status": STATES[tx.state]}
            more = {"requestId": new_uuid()} if kind == "credit" else {}
            return json_answer({**answer, "description": STATES[tx.state].capitalize(), **more})

        return await self.respond(kind, scenario, take)

    async def send_code(self, request: Request) -> Response:
        """The sandbox's way to a code; a customer dials #144#391#."""
        if refusal := self._refused_access(request):
            return refusal
        body = await json_object(request) or {}
        code = send_code(self.desk, self.name, DIAL + str(body.get("id", "")))
        return json_answer({"otp": code})

    # Questions

    async def status(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        tx = self._find(request.path_params["id"])
        if tx is None:
            return problem(404, "60", "Transaction not found").answer()
        return await self.question(tx, lambda: json_answer({"status": STATES[tx.state]}))

    def _find(self, ref: str) -> Transaction | None:
        kind: Kind = "credit" if ref.startswith("CI") else "debit"
        return self.desk.find(self.name, kind, ref)

    async def search(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        self.desk.let_time_pass()
        reference = request.query_params.get("reference")
        found = self.desk.store.select("family = 'sonatel' AND client_ref = ?", reference)
        forced = self.desk.forced_for(self.name, "status")
        return await self.respond("status", forced, lambda: json_answer([_shown(tx) for tx in found]))

    # Keys and notifications

    async def public_key(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        spki = serialization.PublicFormat.SubjectPublicKeyInfo
        der = self._key.public_key().public_bytes(serialization.Encoding.DER, spki)
        key = {"keyId": "1", "keySize": 2048, "keyType": "RSA", "key": base64.b64encode(der).decode()}
        return json_answer(key)

    def _pin(self, encrypted: str) -> str:
        """The PIN, "" when it cannot be read."""
        try:
            return self._key.decrypt(base64.b64decode(encrypted, validate=True), padding.PKCS1v15()).decode()
        except (ValueError, binascii.Error):
            return ""

    async def register(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        body = await json_object(request) or {}
        url, key = body.get("callbackUrl"), body.get("apiKey")
        if not (isinstance(url, str) and url.startswith("http") and key and body.get("code")):
            return problem(400, "24", "Invalid body").answer()
        secret = self.desk.dashboard(self.name).secret
        self.desk.store.set_setting(f"dashboard:{self.name}", {"callback_url": url, "secret": secret})
        self.desk.store.set_setting("sonatel:api_key", key)
        return json_answer(body, 201)

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        dashboard = self.desk.dashboard(self.name)
        if dashboard.callback_url is None or queued.claim not in STATES:
            return None
        body = json_bytes(_shown(tx, STATES[queued.claim]))
        signature = timestamped(dashboard.secret or "", b",", body, self.desk.clock.now(), queued)
        key = self.desk.store.setting("sonatel:api_key")
        headers = {"X-Sonatel-Signature": signature, "X-Sonatel-Idempotency-Key": queued.event_id}
        return Notification(dashboard.callback_url, body, headers | ({"Authorization": f"Basic {key}"} if key else {}))


def _amount(body: Mapping[str, Any]) -> int | None:
    amount = body.get("amount")
    if not isinstance(amount, dict) or amount.get("unit") != "XOF":
        return None
    return hundredths(amount.get("value"), "XOF")


def _shown(tx: Transaction, status: str | None = None) -> dict[str, Any]:
    payment = tx.kind == "debit"
    return {
        "transactionId": tx.ref,
        "reference": tx.client_ref,
        "status": status or STATES[tx.state],
        "type": "MERCHANT_PAYMENT" if payment else "CASHIN",
        "channel": "API",
        "paymentMethod": "ONE_STEP",
        "amount": {"value": units(tx.shown_amount), "unit": tx.shown_currency},
        "customer": {"idType": "MSISDN", "id": (tx.phone or "").removeprefix(DIAL)},
        "partner": {"idType": "CODE" if payment else "MSISDN", "id": tx.detail["merchant"]},
        "metadata": tx.detail["metadata"],
    }


def _remembered_key(desk: Desk) -> rsa.RSAPrivateKey:
    saved: str | None = desk.store.setting("sonatel:key")
    if saved is None:
        made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        saved = made.private_bytes(serialization.Encoding.PEM, pkcs8, plain).decode()
        desk.store.set_setting("sonatel:key", saved)
    key = serialization.load_pem_private_key(saved.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key
