"""Orange Money Sénégal by Sonatel: payment with a code in one step, cash-in as refund (docs/providers/sonatel.md).

The answer is final at once but states no amount, so a success is confirmed by the list of transactions under our
reference, which does; the same list finds what a lost answer did.
"""

import base64
import binascii
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from guichet.clock import Clock, Instant
from guichet.http_client import HttpClient
from guichet.providers import signatures
from guichet.providers.base import (
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    Refused,
    Reversal,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.client import (
    ProviderAccount,
    ProviderClient,
    ProviderResponse,
    classify_http_error,
    header,
    hundredths,
    parse_callback_json,
    text,
    unclear,
    units,
)
from guichet.providers.oauth import AccessTokens, Outcome

REQUIRED: Final = ("client_id", "client_secret", "merchant_code")
OPTIONAL: Final = ("retailer_msisdn", "retailer_pin", "webhook_secret")
OPERATOR: Final = "orange_sn"
_DIAL: Final = "221"
_CURRENCY: Final = "XOF"
_TOKEN_TIMEOUT: Final = 8.0
_FAILED: Final = frozenset({"FAILED", "REJECTED", "CANCELLED"})
_PENDING: Final = frozenset({"ACCEPTED", "INITIATED", "PENDING", "PRE_INITIATED"})
_REASONS: Final = {
    "2000": "payer_not_found",
    "2001": "payer_not_found",
    "2011": "bad_otp",
    "2013": "payer_not_found",
    "2020": "insufficient_funds",
}
#: Also how a reference used before is told: it concludes nothing.
_BAD_BODY: Final = "24"
_ACCOUNT: Final = frozenset({"2041", "4003"})


class Sonatel:
    remote = True

    def __init__(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        settings = connection.settings
        self._form = {
            "client_id": settings["client_id"],
            "client_secret": settings["client_secret"],
            "grant_type": "client_credentials",
        }
        self._merchant = settings["merchant_code"]
        self._retailer = settings.get("retailer_msisdn")
        self._pin = settings.get("retailer_pin")
        self._webhook_secret = settings.get("webhook_secret")
        self._http = ProviderClient(http_client, connection.base_url)
        self._clock = clock
        self._tokens = AccessTokens(clock, self._fetch_token)

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        """A cash-in, whoever collected; it needs a retailer's account."""
        return operator == OPERATOR and bool(self._retailer and self._pin)

    async def initiate(self, charge: Charge) -> InitiationResult:
        if charge.operator != OPERATOR or charge.currency != _CURRENCY:
            return NotProcessed("configuration", f"Sonatel does not take {charge.operator} in {charge.currency}")
        body = {
            "customer": {**_msisdn(charge.phone_number), "otp": charge.otp, "walletType": "PRINCIPAL"},
            "partner": {"idType": "CODE", "id": self._merchant},
            "amount": {"value": units(charge.amount), "unit": charge.currency},
            "reference": charge.reference,
        }
        return self._taken(await self._post("payments/onestep", body), charge.reference)

    async def status(self, charge: Charge) -> StatusResult:
        return await self._listed(charge.reference, "MERCHANT_PAYMENT")

    async def refund(self, reversal: Reversal) -> InitiationResult:
        if reversal.currency != _CURRENCY:
            return NotProcessed("configuration", f"Sonatel does not pay in {reversal.currency}")
        pin = await self._encrypted_pin()
        if isinstance(pin, NotProcessed):
            return pin
        body = {
            "partner": {"idType": "MSISDN", "id": self._retailer, "encryptedPinCode": pin},
            "customer": _msisdn(reversal.charge.phone_number),
            "amount": {"value": units(reversal.amount), "unit": reversal.currency},
            "reference": reversal.reference,
            "receiveNotification": False,
        }
        return self._taken(await self._post("cashins", body), reversal.reference)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return await self._listed(reversal.reference, "CASHIN")

    async def probe(self) -> str:
        reply = await self._get("/api/account/v1/publicKeys")
        return "ok" if isinstance(reply, ProviderResponse) and reply.ok else reply.raw

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        body = parse_callback_json(callback)
        if body is None or not self._authentic(callback):
            return None
        nested = body.get("transaction")
        told = nested if isinstance(nested, dict) else body
        ours, theirs = text(told.get("reference")), text(told.get("transactionId"))
        kind = "refund" if told.get("type") == "CASHIN" else "payment"
        return CallbackReference(kind, ours, theirs, verified=bool(self._webhook_secret)) if ours or theirs else None

    def _authentic(self, callback: Callback) -> bool:
        if not self._webhook_secret:
            return True
        given = header(callback, "x-sonatel-signature")
        return signatures.verify_signature(self._webhook_secret, b",", given, callback.body, self._clock.now())

    def _taken(self, reply: Outcome, reference: str) -> InitiationResult:
        if not isinstance(reply, ProviderResponse):
            return reply
        body = reply.object() or {}
        if reply.ok:
            status, theirs = str(body.get("status", "")).upper(), text(body.get("transactionId"))
            if body.get("reference", reference) != reference:
                return Unknown(f"about another reference: {reply.raw}")
            if status in _FAILED:
                return Refused(_reason(body), reply.raw)
            final = status == "SUCCESS"
            known = theirs and (final or status in _PENDING)
            return Accepted(theirs, next_poll_at=self._clock.now() if final else None) if known else Unknown(reply.raw)
        return _refusal(reply, str(body.get("code", "")), body)

    async def _listed(self, reference: str, kind: str) -> StatusResult:
        """What the list of transactions says of our reference. Nothing listed concludes nothing: it may lag."""
        reply = await self._get("/api/eWallet/v1/transactions", {"reference": reference})
        if not isinstance(reply, ProviderResponse):
            return unclear(reply)
        rows = reply.value() if reply.ok else None
        if not isinstance(rows, list):
            return Unknown(reply.raw)
        named = [row for row in rows if isinstance(row, dict) and row.get("reference") == reference]
        ours = [_row_outcome(row) for row in named if row.get("type", kind) == kind]
        kinds = (Succeeded, Accepted, Unknown, Refused)
        return min(ours, key=lambda answer: kinds.index(type(answer)), default=Unknown("not listed"))

    async def _encrypted_pin(self) -> str | NotProcessed:
        """The retailer's PIN under the operator's RSA key of the day."""
        reply = await self._get("/api/account/v1/publicKeys")
        if not isinstance(reply, ProviderResponse):
            return NotProcessed(raw=f"no public key: {reply.raw}")
        try:
            key = serialization.load_der_public_key(base64.b64decode(str((reply.object() or {}).get("key", ""))))
        except (ValueError, binascii.Error):
            return NotProcessed(raw=f"no public key: {reply.status}")
        if not isinstance(key, rsa.RSAPublicKey):
            return NotProcessed("configuration", "the public key is not an RSA key")
        return base64.b64encode(key.encrypt((self._pin or "").encode(), padding.PKCS1v15())).decode()

    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> Outcome:
        return await self._tokens.call(partial(self._send, "GET", path, None, query))

    async def _post(self, what: str, body: Mapping[str, object]) -> Outcome:
        return await self._tokens.call(
            partial(self._send, "POST", f"/api/eWallet/v1/{what}", msgspec.json.encode(body), None)
        )

    async def _send(
        self, method: str, path: str, body: bytes | None, query: Mapping[str, str] | None, token: str
    ) -> Outcome:
        """The content type is wanted on a GET as well."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return await self._http.send(method, path, body=body, query=query, headers=headers)

    async def _fetch_token(self) -> Outcome:
        return await self._http.send("POST", "/oauth/v1/token", form=self._form, timeout=_TOKEN_TIMEOUT)


def _msisdn(phone: str | None) -> dict[str, object]:
    """National numbers of nine digits."""
    return {"idType": "MSISDN", "id": (phone or "").removeprefix(_DIAL)}


def _reason(body: Mapping[str, Any]) -> str:
    return _REASONS.get(str(body.get("code", "")), "refused")


def _refusal(reply: ProviderResponse, code: str, body: Mapping[str, Any]) -> NotProcessed | Refused | Unknown:
    if common := classify_http_error(reply):
        return common
    if code in _ACCOUNT or reply.status == 415:
        return NotProcessed("configuration", reply.raw)
    if reply.status not in (400, 404, 422) or code in ("", _BAD_BODY):
        return Unknown(reply.raw)
    return Refused(_reason(body), reply.raw)


def _row_outcome(row: Mapping[str, Any]) -> StatusResult:
    status, theirs = str(row.get("status", "")).upper(), text(row.get("transactionId"))
    if status == "SUCCESS":
        amount = row.get("amount")
        stated = amount if isinstance(amount, dict) else {}
        return Succeeded(hundredths(stated.get("value")), text(stated.get("unit")), theirs)
    if status in _FAILED:
        return Refused(_reason(row), status)
    return Accepted(theirs) if status in _PENDING else Unknown(f"status {status}")
