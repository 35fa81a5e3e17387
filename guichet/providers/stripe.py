"""Stripe Checkout for VISA and MASTERCARD: Stripe's own page, no card number touches us (docs/providers/stripe.md).

Our reference is the Idempotency-Key: repeating a POST whose answer was lost gives that answer again, for a day at
least. A declined card leaves the session open: the customer may try another until it expires.
"""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import HOUR, Clock, Instant
from guichet.domain.money import DECIMALS
from guichet.http_client import HttpClient
from guichet.providers import signatures
from guichet.providers.base import (
    CARDS,
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
    parse_callback_json,
    return_page,
    text,
    unclear,
    units,
)

REQUIRED: Final = ("secret_key",)
OPTIONAL: Final = ("webhook_secret", "api_version", "return_url")

_SESSIONS: Final = "/v1/checkout/sessions"
#: A key is kept for a day at least; it is not relied upon to the last hour.
_KEY_LIFE: Final = 20 * HOUR
_LONGEST_NAME: Final = 250
_MOST: Final = 99_999_999
_REASONS: Final = {
    "card_declined": "declined",
    "expired_card": "declined",
    "insufficient_funds": "insufficient_funds",
    "charge_already_refunded": "refused",
    "amount_too_small": "limit_reached",
    "amount_too_large": "limit_reached",
}


class Stripe:
    remote = True

    def __init__(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        settings = connection.settings
        self._http = ProviderClient(http_client, connection.base_url)
        self._headers = {"Authorization": f"Bearer {settings['secret_key']}"}
        if version := settings.get("api_version"):
            self._headers["Stripe-Version"] = version
        self._webhook_secret = settings.get("webhook_secret")
        self._return_url = settings.get("return_url")
        self._clock = clock

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        """A card is refunded where it was charged, nowhere else."""
        return operator in CARDS and collected_here

    async def initiate(self, charge: Charge) -> InitiationResult:
        page, amount = return_page(charge, self._return_url), _smallest(charge.amount, charge.currency)
        if charge.operator not in CARDS or charge.currency not in DECIMALS or page is None:
            return NotProcessed("configuration", f"Stripe: {charge.operator} in {charge.currency}, back to {page}")
        if amount > _MOST:
            return NotProcessed("limit_reached", "Stripe takes eight digits at most")
        price = "line_items[0][price_data]"
        form = {
            "mode": "payment",
            "line_items[0][quantity]": "1",
            f"{price}[currency]": charge.currency.lower(),
            f"{price}[unit_amount]": str(amount),
            f"{price}[product_data][name]": charge.description.strip()[:_LONGEST_NAME] or "Paiement",
            "payment_method_types[0]": "card",
            "success_url": page,
            "cancel_url": page,
            "client_reference_id": charge.reference,
            "metadata[reference]": charge.reference,
            "payment_intent_data[metadata][reference]": charge.reference,
        } | ({"customer_email": charge.email} if charge.email else {})
        reply = await self._post(_SESSIONS, form, charge.reference)
        if isinstance(reply, ProviderResponse) and reply.ok:
            session = reply.object() or {}
            theirs, url = text(session.get("id")), text(session.get("url"))
            return Accepted(theirs, url) if theirs else Unknown(reply.raw)
        return _refusal(reply)

    async def status(self, charge: Charge) -> StatusResult:
        if charge.provider_reference is not None:
            return _outcome(await self._get(f"{_SESSIONS}/{charge.provider_reference}"))
        if self._clock.now() - charge.created_at >= _KEY_LIFE:
            return Unknown("the answer was lost, and the key under which it could be asked for has expired")
        again = await self.initiate(charge)
        if isinstance(again, Accepted):
            return _outcome(await self._get(f"{_SESSIONS}/{again.provider_reference}"))
        return Unknown(again.raw) if isinstance(again, NotProcessed) else again

    async def refund(self, reversal: Reversal) -> InitiationResult:
        """The session is read first: a refund names the payment inside it."""
        session = await self._get(f"{_SESSIONS}/{reversal.charge.provider_reference}")
        intent = text((session.object() or {}).get("payment_intent")) if isinstance(session, ProviderResponse) else None
        if intent is None:
            return NotProcessed("operator_unavailable", f"no payment found to refund: {session.raw}")
        form = {
            "payment_intent": intent,
            "amount": str(_smallest(reversal.amount, reversal.currency)),
            "reason": "requested_by_customer",
            "metadata[reference]": reversal.reference,
        }
        reply = await self._post("/v1/refunds", form, reversal.reference)
        return _refunded(reply) if isinstance(reply, ProviderResponse) and reply.ok else _refusal(reply)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        if reversal.provider_reference is not None:
            return _refunded(await self._get(f"/v1/refunds/{reversal.provider_reference}"))
        if self._clock.now() - (reversal.sent_at or 0) >= _KEY_LIFE:
            return Unknown("the answer was lost, and the key under which it could be asked for has expired")
        again = await self.refund(reversal)
        return Unknown(again.raw) if isinstance(again, NotProcessed) else again

    async def probe(self) -> str:
        reply = await self._get("/v1/balance")
        return "ok" if isinstance(reply, ProviderResponse) and reply.ok else reply.raw

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        event = parse_callback_json(callback)
        data = event.get("data") if event else None
        subject = data.get("object") if isinstance(data, dict) else None
        if not isinstance(subject, dict) or not self._authentic(callback):
            return None
        metadata = subject.get("metadata")
        ours = text(subject.get("client_reference_id")) or (
            text(metadata.get("reference")) if isinstance(metadata, dict) else None
        )
        kind = "refund" if subject.get("object") == "refund" else "payment"
        theirs = text(subject.get("id"))
        return CallbackReference(kind, ours, theirs, verified=bool(self._webhook_secret)) if ours or theirs else None

    def _authentic(self, callback: Callback) -> bool:
        if not self._webhook_secret:
            return True
        given = header(callback, "stripe-signature")
        return signatures.verify_signature(self._webhook_secret, b".", given, callback.body, self._clock.now())

    async def _get(self, path: str) -> ProviderResponse | NotProcessed | Unknown:
        return await self._http.send("GET", path, headers=self._headers)

    async def _post(self, path: str, form: Mapping[str, str], key: str) -> ProviderResponse | NotProcessed | Unknown:
        return await self._http.send("POST", path, form=form, headers={**self._headers, "Idempotency-Key": key})


def _smallest(amount: int, currency: str) -> int:
    """Stripe counts in the smallest unit; XOF and XAF have no decimals."""
    return amount if DECIMALS.get(currency) else units(amount)


def _hundredths(stated: object, currency: str | None) -> int | None:
    if isinstance(stated, bool) or not isinstance(stated, int):
        return None
    return stated if DECIMALS.get(currency or "") else stated * 100


def _outcome(reply: ProviderResponse | NotProcessed | Unknown) -> StatusResult:
    if not isinstance(reply, ProviderResponse):
        return unclear(reply)
    session: dict[str, Any] = (reply.object() or {}) if reply.ok else {}
    theirs, currency = text(session.get("id")), (text(session.get("currency")) or "").upper() or None
    if session.get("payment_status") == "paid":
        return Succeeded(_hundredths(session.get("amount_total"), currency), currency, theirs)
    match session.get("status"):
        case "expired":
            return Refused("expired", reply.raw)
        case "open" | "complete" if theirs:
            return Accepted(theirs, text(session.get("url")))
    return Unknown(reply.raw)


def _refunded(reply: ProviderResponse | NotProcessed | Unknown) -> Accepted | Succeeded | Refused | Unknown:
    if not isinstance(reply, ProviderResponse):
        return unclear(reply)
    refund: dict[str, Any] = (reply.object() or {}) if reply.ok else {}
    theirs, currency = text(refund.get("id")), (text(refund.get("currency")) or "").upper() or None
    match refund.get("status"):
        case "succeeded":
            return Succeeded(_hundredths(refund.get("amount"), currency), currency, theirs)
        case "failed" | "canceled":
            return Refused(_REASONS.get(str(refund.get("failure_reason")), "refused"), reply.raw)
        case "pending" | "requires_action" if theirs:
            return Accepted(theirs)
    return Unknown(reply.raw)


def _refusal(reply: ProviderResponse | NotProcessed | Unknown) -> NotProcessed | Refused | Unknown:
    """An answer that is not 2xx. A key used before, or in use, means that something was taken under it."""
    if not isinstance(reply, ProviderResponse):
        return reply
    if common := classify_http_error(reply):
        return common
    error = (reply.object() or {}).get("error")
    if not isinstance(error, dict) or error.get("type") == "idempotency_error":
        return Unknown(reply.raw)
    if reply.status not in (400, 402, 404):
        return Unknown(reply.raw)
    code = str(error.get("decline_code") or error.get("code") or "")
    return Refused(_REASONS.get(code, "declined" if reply.status == 402 else "refused"), reply.raw)
