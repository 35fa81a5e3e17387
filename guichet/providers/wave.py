"""Wave Business: checkout sessions on Wave's own page, their refund, payouts (docs/providers/wave.md).

Creation has no idempotency key: a lost answer is searched by `client_reference`, never sent again. A refund may be
repeated: only the first moves money. A refused attempt leaves the session open: the customer may try again.
"""

from typing import Any, Final

import msgspec

from guichet.clock import HOUR, SECOND, Clock, Instant
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
    return_page,
    text,
    unclear,
    units,
)

REQUIRED: Final = ("api_key",)
OPTIONAL: Final = ("webhook_secret", "webhook_mode", "signing_secret", "aggregated_merchant_id", "return_url")
_OPERATORS: Final = frozenset({"wave_ci", "wave_sn", "wave_bf"})
_SESSIONS: Final = "/v1/checkout/sessions"
#: A session lives half an hour. One that no search finds after an hour was never made, and nobody has its page.
_NEVER_TAKEN_AFTER: Final = HOUR
_REASONS: Final = {
    "insufficient-funds": "insufficient_funds",
    "blocked-account": "payer_not_found",
    "recipient-account-blocked": "payer_not_found",
    "payer-mobile-mismatch": "payer_not_found",
    "kyb-limits-exceeded": "limit_reached",
    "recipient-limit-exceeded": "limit_reached",
    "customer-age-restricted": "refused",
}
_OURS: Final = frozenset({"currency-mismatch", "country-mismatch"})


class Wave:
    remote = True

    def __init__(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        """Raises ValueError for a webhook mode that does not exist."""
        settings = connection.settings
        self._http = ProviderClient(http_client, connection.base_url)
        self._headers = {"Authorization": f"Bearer {settings['api_key']}"}
        self._signing_secret = settings.get("signing_secret")
        self._webhook_secret = settings.get("webhook_secret")
        self._webhook_mode = settings.get("webhook_mode") or "signing"
        if self._webhook_mode not in ("signing", "shared"):
            raise ValueError("webhook_mode must be signing or shared")
        self._aggregated = settings.get("aggregated_merchant_id")
        self._return_url = settings.get("return_url")
        self._clock = clock

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return operator in _OPERATORS

    async def initiate(self, charge: Charge) -> InitiationResult:
        page = return_page(charge, self._return_url)
        if charge.operator not in _OPERATORS or charge.currency != "XOF" or page is None:
            return NotProcessed("configuration", f"Wave: {charge.operator} in {charge.currency}, back to {page}")
        body = {
            "amount": str(units(charge.amount)),
            "currency": charge.currency,
            "success_url": page,
            "error_url": page,
            "client_reference": charge.reference,
        }
        if charge.phone_number:
            body["restrict_payer_mobile"] = f"+{charge.phone_number}"
        if self._aggregated:
            body["aggregated_merchant_id"] = self._aggregated
        reply = await self._post(_SESSIONS, body)
        session = reply.object() if isinstance(reply, ProviderResponse) and reply.ok else None
        if isinstance(reply, ProviderResponse) and reply.ok:
            return _waiting(session) if session else Unknown(reply.raw)
        return _refusal(reply)

    async def status(self, charge: Charge) -> StatusResult:
        if charge.provider_reference is None:
            return await self._search(charge)
        reply = await self._get(f"{_SESSIONS}/{charge.provider_reference}")
        session = reply.object() if isinstance(reply, ProviderResponse) and reply.ok else None
        return (
            _outcome(session)
            if session
            else unclear(reply)
            if not isinstance(reply, ProviderResponse)
            else Unknown(reply.raw)
        )

    async def _search(self, charge: Charge) -> StatusResult:
        sessions = await self._found(f"{_SESSIONS}/search", charge.reference)
        if isinstance(sessions, Unknown):
            return sessions
        if not sessions:
            if self._clock.now() - charge.created_at >= _NEVER_TAKEN_AFTER:
                return Refused("operator_unavailable", "Wave never made the session")
            return Unknown("no session found")
        answers = [_outcome(session) for session in sessions]
        kinds = (Succeeded, Accepted, Unknown, Refused)
        return min(answers, key=lambda answer: kinds.index(type(answer)))

    async def refund(self, reversal: Reversal) -> InitiationResult:
        if not reversal.collected_here:
            return await self._pay_out(reversal)
        session = reversal.charge.provider_reference
        if session is None:
            return NotProcessed("operator_unavailable", "the session is not known")
        reply = await self._post(f"{_SESSIONS}/{session}/refund", None)
        if isinstance(reply, ProviderResponse) and reply.ok:
            return Succeeded(reversal.amount, reversal.currency)
        return _refusal(reply)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        """There is nothing to poll: the repeat of a refund, or of a payout under its key, tells how it went."""
        if not reversal.collected_here and reversal.provider_reference is not None:
            return _paid_out(await self._get(f"/v1/payout/{reversal.provider_reference}"))
        answer = await self.refund(reversal)
        return Unknown(answer.raw) if isinstance(answer, NotProcessed) else answer

    async def _pay_out(self, reversal: Reversal) -> InitiationResult:
        if reversal.currency != "XOF":
            return NotProcessed("configuration", f"Wave does not pay out in {reversal.currency}")
        body = {
            "currency": reversal.currency,
            "receive_amount": str(units(reversal.amount)),
            "mobile": f"+{reversal.charge.phone_number}",
            "client_reference": reversal.reference,
            "payment_reason": "Remboursement",
        }
        if self._aggregated:
            body["aggregated_merchant_id"] = self._aggregated
        reply = await self._post("/v1/payout", body, {"Idempotency-Key": reversal.reference})
        if isinstance(reply, ProviderResponse) and reply.ok:
            return _paid_out(reply)
        return _refusal(reply)

    async def probe(self) -> str:
        reply = await self._get("/v1/balance")
        return "ok" if isinstance(reply, ProviderResponse) and reply.ok else reply.raw

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        body = parse_callback_json(callback)
        session = body.get("data") if body else None
        if not isinstance(session, dict) or not self._authentic(callback):
            return None
        ours, theirs = text(session.get("client_reference")), text(session.get("id"))
        return (
            CallbackReference("payment", ours, theirs, verified=bool(self._webhook_secret)) if ours or theirs else None
        )

    def _authentic(self, callback: Callback) -> bool:
        """Without a configured secret a notification stays an unverified hint."""
        if not self._webhook_secret:
            return True
        if self._webhook_mode == "shared":
            return signatures.constant_time_equal(f"Bearer {self._webhook_secret}", header(callback, "authorization"))
        given = header(callback, "wave-signature")
        return signatures.verify_signature(self._webhook_secret, b"", given, callback.body, self._clock.now())

    async def _found(self, path: str, reference: str) -> list[dict[str, Any]] | Unknown:
        reply = await self._http.send("GET", path, query={"client_reference": reference}, headers=self._headers)
        if not isinstance(reply, ProviderResponse):
            return unclear(reply)
        rows = (reply.object() or {}).get("result") if reply.ok else None
        if not isinstance(rows, list):
            return Unknown(reply.raw)
        return [row for row in rows if isinstance(row, dict) and row.get("client_reference") == reference]

    async def _get(self, path: str) -> ProviderResponse | NotProcessed | Unknown:
        return await self._http.send("GET", path, headers=self._headers)

    async def _post(
        self, path: str, body: dict[str, str] | None, extra: dict[str, str] | None = None
    ) -> ProviderResponse | NotProcessed | Unknown:
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = {**self._headers, "Content-Type": "application/json", **(extra or {})}
        if self._signing_secret:
            moment = str(self._clock.now() // SECOND)
            proof = signatures.hmac_sha256_hex(self._signing_secret, moment.encode() + raw)
            headers["Wave-Signature"] = f"t={moment},v1={proof}"
        return await self._http.send("POST", path, body=raw, headers=headers)


def _waiting(session: dict[str, Any]) -> Accepted | Unknown:
    theirs = text(session.get("id"))
    return Accepted(theirs, text(session.get("wave_launch_url"))) if theirs else Unknown("a session without an id")


def _outcome(session: dict[str, Any]) -> StatusResult:
    checkout, payment = session.get("checkout_status"), session.get("payment_status")
    if checkout == "complete" and payment == "succeeded":
        return Succeeded(hundredths(session.get("amount")), text(session.get("currency")), text(session.get("id")))
    if payment == "cancelled" or (checkout == "expired" and payment != "succeeded"):
        error = session.get("last_payment_error")
        code = str(error.get("code")) if isinstance(error, dict) else ""
        return Refused(_REASONS.get(code, "expired" if checkout == "expired" else "rejected_by_payer"), code)
    if checkout == "open" and payment == "processing":
        return _waiting(session)
    return Unknown(f"{checkout} and {payment}")


def _paid_out(reply: ProviderResponse | NotProcessed | Unknown) -> Accepted | Succeeded | Refused | Unknown:
    if not isinstance(reply, ProviderResponse):
        return unclear(reply)
    payout = (reply.object() or {}) if reply.ok else {}
    theirs = text(payout.get("id"))
    match payout.get("status"):
        case "succeeded":
            return Succeeded(hundredths(payout.get("receive_amount")), text(payout.get("currency")), theirs)
        case "failed" | "reversed":
            error = payout.get("payout_error")
            code = str(error.get("error_code")) if isinstance(error, dict) else ""
            return Refused(_REASONS.get(code, "refused"), reply.raw)
        case "processing" if theirs:
            return Accepted(theirs)
    return Unknown(reply.raw)


def _refusal(reply: ProviderResponse | NotProcessed | Unknown) -> NotProcessed | Refused | Unknown:
    """An answer that is not 2xx (docs/providers/wave.md, "Errors").

    A reused key means that something was taken under it.
    """
    if not isinstance(reply, ProviderResponse):
        return reply
    if common := classify_http_error(reply):
        return common
    code = str((reply.object() or {}).get("code", ""))
    if code in _OURS:
        return NotProcessed("configuration", reply.raw)
    if reply.status not in (400, 404, 409, 422) or not code or code == "idempotency-mismatch":
        return Unknown(reply.raw)
    return Refused(_REASONS.get(code, "refused"), reply.raw)
