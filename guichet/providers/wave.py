"""Wave Business: checkout sessions on Wave's page, their refund, and payouts (docs/providers/wave.md).

Creating a session has no idempotency key: when the response is lost, the session is searched by `client_reference` and
never created again. A refund may be repeated: only the first one moves money.
"""

from typing import Any, Final

import msgspec

from guichet.clock import HOUR, SECOND, Clock, Instant
from guichet.domain.reconciliation import Line
from guichet.http_client import MAX_BODY, HttpClient
from guichet.providers import signatures
from guichet.providers.base import (
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    RefundInitiationResult,
    RefundStatusResult,
    Refused,
    Reversal,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.client import CallResult, HttpProvider, ProviderAccount, ProviderResponse
from guichet.providers.fields import header, parse_callback_json, return_url, text_or_none, units
from guichet.providers.results import as_refund_status, as_unknown, most_conclusive, probe_result
from guichet.providers.wave_history import wave_history
from guichet.providers.wave_responses import (
    read_new_session,
    read_payout,
    read_payout_refusal,
    read_refusal,
    read_session,
)

REQUIRED: Final = ("api_key",)
OPTIONAL: Final = ("webhook_secret", "webhook_mode", "signing_secret", "aggregated_merchant_id", "return_url")
_OPERATORS: Final = frozenset({"wave_ci", "wave_sn", "wave_bf"})
_SESSIONS: Final = "/v1/checkout/sessions"
#: A session lives half an hour. One that is not found after an hour was never created.
_NEVER_RECEIVED_AFTER: Final = HOUR
#: Bytes. A page of transactions is longer than other responses.
_MAX_HISTORY: Final = 512 * 1024


class Wave(HttpProvider):
    def __init__(self, account: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        """Raises ValueError for a `webhook_mode` that does not exist."""
        super().__init__(account, http_client, clock)
        settings = account.settings
        self._headers = {"Authorization": f"Bearer {settings['api_key']}"}
        self._signing_secret = settings.get("signing_secret")
        self._webhook_secret = settings.get("webhook_secret")
        self._webhook_mode = settings.get("webhook_mode") or "signing"
        if self._webhook_mode not in ("signing", "shared"):
            raise ValueError("webhook_mode must be signing or shared")
        merchant_id = settings.get("aggregated_merchant_id")
        self._merchant_field = {"aggregated_merchant_id": merchant_id} if merchant_id else {}
        self._return_url = settings.get("return_url")

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return operator in _OPERATORS

    async def initiate(self, charge: Charge) -> InitiationResult:
        page = return_url(charge, self._return_url)
        if charge.operator not in _OPERATORS or charge.currency != "XOF" or page is None:
            return NotProcessed("configuration", f"Wave: {charge.operator} in {charge.currency}, back to {page}")
        body = {
            "amount": str(units(charge.amount)),
            "currency": charge.currency,
            "success_url": page,
            "error_url": page,
            "client_reference": charge.reference,
            **self._merchant_field,
        }
        if charge.phone_number:
            body["restrict_payer_mobile"] = f"+{charge.phone_number}"
        result = await self._post(_SESSIONS, body)
        if isinstance(result, ProviderResponse) and result.ok:
            return read_new_session(result)
        return read_refusal(result)

    async def status(self, charge: Charge) -> StatusResult:
        if charge.provider_reference is None:
            return await self._search(charge)
        result = await self._get(f"{_SESSIONS}/{charge.provider_reference}")
        session = result.ok_object() if isinstance(result, ProviderResponse) else None
        return read_session(session) if session else as_unknown(result)

    async def _search(self, charge: Charge) -> StatusResult:
        """The session that was created under our reference, when the response with its id was lost."""
        sessions = await self._sessions_by_reference(charge.reference)
        if isinstance(sessions, Unknown):
            return sessions
        if found := most_conclusive(read_session(session) for session in sessions):
            return found
        if self._clock.now() - charge.created_at >= _NEVER_RECEIVED_AFTER:
            return Refused("operator_unavailable", "Wave never created the session")
        return Unknown("no session found")

    async def refund(self, reversal: Reversal) -> RefundInitiationResult:
        """A refund of the session; a payout when another account collected the payment."""
        if not reversal.collected_here:
            return await self._pay_out(reversal)
        session_id = reversal.charge.provider_reference
        if session_id is None:
            return NotProcessed("operator_unavailable", "the session is not known")
        result = await self._post(f"{_SESSIONS}/{session_id}/refund", None)
        if isinstance(result, ProviderResponse) and result.ok:
            # The response is empty: Wave refunds a session as a whole.
            return Succeeded(reversal.amount, reversal.currency)
        return read_refusal(result)

    async def refund_status(self, reversal: Reversal) -> RefundStatusResult:
        """A refund has no status to ask: repeating it, or a payout under its key, tells what became of it."""
        if not reversal.collected_here and reversal.provider_reference is not None:
            return read_payout(await self._get(f"/v1/payout/{reversal.provider_reference}"))
        return as_refund_status(await self.refund(reversal))

    async def _pay_out(self, reversal: Reversal) -> RefundInitiationResult:
        if reversal.currency != "XOF":
            return NotProcessed("configuration", f"Wave does not pay out in {reversal.currency}")
        body = {
            "currency": reversal.currency,
            "receive_amount": str(units(reversal.amount)),
            "mobile": f"+{reversal.charge.phone_number}",
            "client_reference": reversal.reference,
            "payment_reason": "Remboursement",
            **self._merchant_field,
        }
        result = await self._post("/v1/payout", body, {"Idempotency-Key": reversal.reference})
        if isinstance(result, ProviderResponse) and result.ok:
            return read_payout(result)
        return read_payout_refusal(result)

    async def probe(self) -> str:
        return probe_result(await self._get("/v1/balance"))

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        return await wave_history(self._ask_transactions, since, until)

    async def _ask_transactions(self, query: dict[str, str]) -> CallResult:
        return await self._get("/v1/transactions", query, max_bytes=_MAX_HISTORY)

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        body = parse_callback_json(callback)
        session = body.get("data") if body else None
        if not isinstance(session, dict) or not self._signature_is_valid(callback):
            return None
        reference, session_id = text_or_none(session.get("client_reference")), text_or_none(session.get("id"))
        return CallbackReference(reference, session_id) if reference or session_id else None

    def _signature_is_valid(self, callback: Callback) -> bool:
        """True without a configured secret: the provider is asked before anything is booked in any case."""
        if not self._webhook_secret:
            return True
        if self._webhook_mode == "shared":
            return signatures.constant_time_equal(f"Bearer {self._webhook_secret}", header(callback, "authorization"))
        return signatures.verify_signature(
            header(callback, "wave-signature"),
            callback.body,
            secret=self._webhook_secret,
            separator=b"",
            now=self._clock.now(),
        )

    async def _sessions_by_reference(self, reference: str) -> list[dict[str, Any]] | Unknown:
        result = await self._get(f"{_SESSIONS}/search", {"client_reference": reference})
        if not isinstance(result, ProviderResponse):
            return as_unknown(result)
        rows = result.ok_object().get("result")
        if not isinstance(rows, list):
            return Unknown(result.raw)
        return [row for row in rows if isinstance(row, dict) and row.get("client_reference") == reference]

    async def _get(self, path: str, query: dict[str, str] | None = None, max_bytes: int = MAX_BODY) -> CallResult:
        headers = {**self._headers, **self._signature(b"")}
        return await self._http.send("GET", path, query=query, headers=headers, max_bytes=max_bytes)

    async def _post(
        self, path: str, body: dict[str, str] | None, more_headers: dict[str, str] | None = None
    ) -> CallResult:
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = {**self._headers, "Content-Type": "application/json", **(more_headers or {}), **self._signature(raw)}
        return await self._http.send("POST", path, body=raw, headers=headers)

    def _signature(self, body: bytes) -> dict[str, str]:
        """A key with a `signing_secret` must sign every request, GETs too; otherwise Wave answers 401
        (docs/providers/wave.md, "Addresses and credentials")."""
        if not self._signing_secret:
            return {}
        timestamp = str(self._clock.now() // SECOND)
        digest = signatures.hmac_sha256_hex(self._signing_secret, timestamp.encode() + body)
        return {"Wave-Signature": f"t={timestamp},v1={digest}"}
