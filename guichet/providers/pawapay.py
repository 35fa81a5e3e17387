"""pawaPay Merchant API v2: eleven codes over one account (docs/providers/pawapay.md).

Our references are its identifiers and its idempotency keys. The business answer is in the body of a 200. A deposit it
does not know a quarter of an hour after it was sent was never taken; a refund it does not know is sent again.
"""

from typing import Any, Final

import msgspec

from guichet.clock import MINUTE, Clock, Instant
from guichet.http_client import HttpClient
from guichet.providers import http_message_signatures as http_signatures
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
    hundredths,
    parse_callback_json,
    plain_text,
    return_page,
    text,
    unclear,
    units,
)

REQUIRED: Final = ("token",)
OPTIONAL: Final = ("signing_key", "signing_key_id", "callback_public_key", "return_url")

#: Our code → provider, currency.
_PROVIDERS: Final[dict[str, tuple[str, str]]] = {
    "mtn": ("MTN_MOMO_BEN", "XOF"),
    "moov": ("MOOV_BEN", "XOF"),
    "moov_bf": ("MOOV_BFA", "XOF"),
    "orange_bf": ("ORANGE_BFA", "XOF"),
    "mtn_ci": ("MTN_MOMO_CIV", "XOF"),
    "orange_ci": ("ORANGE_CIV", "XOF"),
    "wave_ci": ("WAVE_CIV", "XOF"),
    "orange_sn": ("ORANGE_SEN", "XOF"),
    "free_sn": ("FREE_SEN", "XOF"),
    "wave_sn": ("WAVE_SEN", "XOF"),
    "mtn_cg": ("MTN_MOMO_COG", "XAF"),
}
_REDIRECTING: Final = frozenset({"wave_ci", "wave_sn"})
_WITH_CODE: Final = frozenset({"orange_bf"})
#: A redirecting provider gives its page shortly after: asked about this often, this many seconds apart, while the
#: merchant waits for the answer that carries it.
_PAGE_QUESTIONS: Final = 6
_PAGE_PAUSE: Final = 0.5
_NEVER_TAKEN_AFTER: Final = 15 * MINUTE
_LONGEST_MESSAGE: Final = 22
_SHORTEST_MESSAGE: Final = 4
_REASONS: Final = {
    "INSUFFICIENT_BALANCE": "insufficient_funds",
    "PAWAPAY_WALLET_OUT_OF_FUNDS": "insufficient_funds",
    "PAYER_NOT_FOUND": "payer_not_found",
    "RECIPIENT_NOT_FOUND": "payer_not_found",
    "INVALID_PHONE_NUMBER": "payer_not_found",
    "PAYMENT_NOT_APPROVED": "rejected_by_payer",
    "PAYER_LIMIT_REACHED": "limit_reached",
    "WALLET_LIMIT_REACHED": "limit_reached",
    "AMOUNT_OUT_OF_BOUNDS": "limit_reached",
}
#: Rejections by which pawaPay says that it took nothing and another route may: its provider is closed, or our account.
_NOT_TAKEN: Final = {
    "PROVIDER_TEMPORARILY_UNAVAILABLE": "operator_unavailable",
    "INVALID_PROVIDER": "configuration",
    "INVALID_CURRENCY": "configuration",
    "AMOUNT_OUT_OF_BOUNDS": "limit_reached",
    "DEPOSITS_NOT_ALLOWED": "configuration",
    "PAYOUTS_NOT_ALLOWED": "configuration",
}
_PENDING: Final = frozenset({"ACCEPTED", "ENQUEUED", "PROCESSING", "IN_RECONCILIATION"})


class PawaPay:
    remote = True

    def __init__(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        """Raises ValueError for a key that cannot be used."""
        settings = connection.settings
        self._http = ProviderClient(http_client, connection.base_url)
        self._base_url = connection.base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {settings['token']}"}
        signing, callbacks = settings.get("signing_key"), settings.get("callback_public_key")
        self._signing_key = http_signatures.private_key(signing) if signing else None
        self._signing_key_id = settings.get("signing_key_id") or ""
        if self._signing_key is not None and not self._signing_key_id:
            raise ValueError("signing_key needs signing_key_id")
        self._callback_key = http_signatures.public_key(callbacks) if callbacks else None
        self._return_url = settings.get("return_url")
        self._clock = clock

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return operator in _PROVIDERS

    async def initiate(self, charge: Charge) -> InitiationResult:
        provider, currency = _PROVIDERS.get(charge.operator, ("", ""))
        if charge.currency != currency:
            return NotProcessed("configuration", f"pawaPay does not take {charge.operator} in {charge.currency}")
        body: dict[str, object] = {
            "depositId": charge.reference,
            "amount": str(units(charge.amount)),
            "currency": currency,
            "payer": _party(charge, provider),
            "customerMessage": _message(charge.description),
            "clientReferenceId": charge.reference,
        }
        if charge.operator in _WITH_CODE:
            body["preAuthorisationCode"] = charge.otp
        if charge.operator in _REDIRECTING:
            page = return_page(charge, self._return_url)
            body |= {"successfulUrl": page, "failedUrl": page}
        answer = _taken(await self._post("deposits", body), "depositId", charge.reference)
        redirects = charge.operator in _REDIRECTING and isinstance(answer, Accepted)
        return await self._with_page(charge) if redirects else answer

    async def _with_page(self, charge: Charge) -> Accepted:
        """Without its page a deposit stays accepted: later questions find it."""
        for _ in range(_PAGE_QUESTIONS):
            await self._clock.sleep(_PAGE_PAUSE)
            answer = _outcome(await self._get(f"/v2/deposits/{charge.reference}"), charge.reference)
            if isinstance(answer, Accepted) and answer.redirect_url:
                return answer
            if isinstance(answer, Succeeded | Refused):
                return Accepted(charge.reference, next_poll_at=self._clock.now())
        return Accepted(charge.reference)

    async def status(self, charge: Charge) -> StatusResult:
        reply = await self._get(f"/v2/deposits/{charge.reference}")
        if not _is_not_found(reply):
            return _outcome(reply, charge.reference)
        age = self._clock.now() - charge.created_at
        if charge.provider_reference is None and age >= _NEVER_TAKEN_AFTER:
            return Refused("operator_unavailable", "pawaPay never received the deposit")
        return Unknown("pawaPay does not know the deposit")

    async def refund(self, reversal: Reversal) -> InitiationResult:
        charge = reversal.charge
        provider, currency = _PROVIDERS.get(charge.operator, ("", ""))
        if reversal.currency != currency:
            return NotProcessed("configuration", f"pawaPay does not pay {charge.operator} in {reversal.currency}")
        body: dict[str, object] = {
            "amount": str(units(reversal.amount)),
            "currency": currency,
            "clientReferenceId": reversal.reference,
        }
        if reversal.collected_here:
            body |= {"refundId": reversal.reference, "depositId": charge.reference}
            return _taken(await self._post("refunds", body), "refundId", reversal.reference)
        body |= {"payoutId": reversal.reference, "recipient": _party(charge, provider)}
        body["customerMessage"] = "Remboursement"
        return _taken(await self._post("payouts", body), "payoutId", reversal.reference)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        what = "refunds" if reversal.collected_here else "payouts"
        reply = await self._get(f"/v2/{what}/{reversal.reference}")
        if not _is_not_found(reply) or reversal.provider_reference is not None:
            return _outcome(reply, reversal.reference)
        again = await self.refund(reversal)
        if isinstance(again, Refused) and self._clock.now() - (reversal.sent_at or 0) < _NEVER_TAKEN_AFTER:
            # The first sending may still be under way, and be what this one was refused for.
            return Unknown(again.raw)
        return Unknown(again.raw) if isinstance(again, NotProcessed) else again

    async def probe(self) -> str:
        reply = await self._get("/v2/wallet-balances")
        return "ok" if isinstance(reply, ProviderResponse) and reply.ok else reply.raw

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        body = parse_callback_json(callback)
        if body is None:
            return None
        if self._callback_key and not http_signatures.verified(self._callback_key, callback, self._clock.now()):
            return None
        for name, kind in (("refundId", "refund"), ("payoutId", "refund"), ("depositId", "payment")):
            if ours := text(body.get(name)):
                return CallbackReference(kind, ours, ours, verified=self._callback_key is not None)
        return None

    async def _get(self, path: str) -> ProviderResponse | NotProcessed | Unknown:
        return await self._http.send("GET", path, headers=self._headers)

    async def _post(self, what: str, body: dict[str, object]) -> ProviderResponse | NotProcessed | Unknown:
        path, raw = f"/v2/{what}", msgspec.json.encode(body)
        headers = {**self._headers, "Content-Type": "application/json"}
        if self._signing_key is not None:
            url, now = self._base_url + path, self._clock.now()
            headers |= http_signatures.sign(self._signing_key, self._signing_key_id, url, raw, now)
        return await self._http.send("POST", path, body=raw, headers=headers)


def _party(charge: Charge, provider: str) -> dict[str, object]:
    return {"type": "MMO", "accountDetails": {"phoneNumber": charge.phone_number, "provider": provider}}


def _message(description: str) -> str:
    message = plain_text(description, _LONGEST_MESSAGE)
    return message if len(message) >= _SHORTEST_MESSAGE else "Paiement"


def _failure(body: dict[str, Any]) -> str:
    reason = body.get("failureReason")
    return str(reason.get("failureCode", "")) if isinstance(reason, dict) else ""


def _taken(reply: ProviderResponse | NotProcessed | Unknown, id_name: str, reference: str) -> InitiationResult:
    """The answer to a POST (docs/providers/pawapay.md, "Initiating a payment", "Errors").

    A 500 has no status: nothing can be concluded from it.
    """
    if not isinstance(reply, ProviderResponse):
        return reply
    body = reply.object() or {}
    if reply.ok and body.get("status") in ("ACCEPTED", "DUPLICATE_IGNORED", "ENQUEUED"):
        echoed = body.get(id_name, reference)
        return Accepted(reference) if echoed == reference else Unknown(reply.raw)
    if common := classify_http_error(reply):
        return common
    if body.get("status") == "REJECTED" and (reply.ok or reply.status == 400):
        return _rejection(_failure(body), reply.raw)
    return Unknown(reply.raw)


def _rejection(code: str, raw: str) -> NotProcessed | Refused | Unknown:
    if code in _NOT_TAKEN:
        return NotProcessed(_NOT_TAKEN[code], raw)
    if code in ("", "UNKNOWN_ERROR", "REFUND_IN_PROGRESS"):
        return Unknown(raw)
    return Refused(_REASONS.get(code, "refused"), raw)


def _is_not_found(reply: ProviderResponse | NotProcessed | Unknown) -> bool:
    return isinstance(reply, ProviderResponse) and reply.ok and (reply.object() or {}).get("status") == "NOT_FOUND"


def _outcome(reply: ProviderResponse | NotProcessed | Unknown, reference: str) -> StatusResult:
    if not isinstance(reply, ProviderResponse):
        return unclear(reply)
    body = (reply.object() or {}) if reply.ok else {}
    data = body.get("data") if body.get("status") == "FOUND" else None
    if not isinstance(data, dict):
        return Unknown(reply.raw)
    status = data.get("status")
    if status == "COMPLETED":
        return Succeeded(hundredths(data.get("amount")), text(data.get("currency")), reference)
    if status == "FAILED":
        return Refused(_REASONS.get(_failure(data), "refused"), reply.raw)
    return Accepted(reference, text(data.get("authorizationUrl"))) if status in _PENDING else Unknown(reply.raw)
