"""Stripe Checkout for VISA and MASTERCARD: the customer pays on Stripe's page (docs/providers/stripe.md).

Our reference is the Idempotency-Key: a POST whose response was lost is repeated and gets the same response again, for
at least a day. A declined card leaves the session open, because the customer may try another card until it expires.
"""

from collections.abc import Mapping
from typing import Final

from guichet.clock import DAY, HOUR, Clock, Instant
from guichet.domain.messages import Answer
from guichet.domain.money import DECIMALS, Currency
from guichet.domain.reconciliation import Line
from guichet.http_client import HttpClient
from guichet.providers.base import (
    CARDS,
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotFound,
    NotProcessed,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    StatusResult,
    Unknown,
)
from guichet.providers.capabilities import DisputeFacts, FloatBalance
from guichet.providers.shared import signatures
from guichet.providers.shared.account_checks import AccountSetup, Finding, balances_read
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import HttpProvider, ProviderAccount, ProviderResponse
from guichet.providers.shared.fields import callback_reference, parse_callback_json, return_url, text_or_none
from guichet.providers.shared.listings import read_balances
from guichet.providers.shared.results import as_refund_status, as_status, probe_result
from guichet.providers.stripe import checks as stripe_checks
from guichet.providers.stripe.disputes import list_disputes
from guichet.providers.stripe.history import read_history
from guichet.providers.stripe.responses import (
    balances_in,
    read_refund,
    read_refund_refusal,
    read_refusal,
    read_session,
    smallest_unit,
)

_SESSIONS: Final = "/v1/checkout/sessions"
#: The version whose answers are read here: without one, an account gets that of the day on which it was opened.
_API_VERSION: Final = "2026-10-28.endive"
#: Stripe keeps an Idempotency-Key for a day at least; we stop relying on it before that.
_KEY_LIFETIME: Final = 20 * HOUR
_MAX_PRODUCT_NAME: Final = 250
#: Bytes. A page of movements, each with its charge, is longer than other responses.
_MAX_HISTORY: Final = 2 * 1024 * 1024
_FORBIDDEN: Final = 403
#: In the smallest unit of the currency.
_MAX_AMOUNT: Final = 99_999_999


def is_test_key(secret_key: str) -> bool:
    return secret_key.startswith(("sk_test_", "rk_test_"))


class Stripe(HttpProvider):
    page_lasts = DAY
    key_setting = "secret_key"

    def __init__(self, account: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        super().__init__(account, http_client, clock)
        settings = account.settings
        self._headers = {"Authorization": f"Bearer {settings['secret_key']}"}
        self._headers["Stripe-Version"] = settings.get("api_version") or _API_VERSION
        self._is_live = not is_test_key(settings["secret_key"])
        self._webhook_secret = settings.get("webhook_secret")
        self._return_url = settings.get("return_url")

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        """Only the account that charged a card can refund it."""
        return operator in CARDS and collected_here

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        return False

    def takes(self, operator: str, currency: Currency) -> bool:
        return operator in CARDS and currency in DECIMALS

    async def initiate(self, charge: Charge) -> InitiationResult:
        page, amount = return_url(charge, self._return_url), smallest_unit(charge.amount, charge.payment.currency)
        if not self.takes(charge.payment.operator, charge.payment.currency) or page is None:
            facts = {"operator": charge.payment.operator, "currency": charge.payment.currency, "page": page or "None"}
            return NotProcessed("configuration", ProviderAnswer.NOT_TAKEN_BY_STRIPE(**facts))
        if amount > _MAX_AMOUNT:
            return NotProcessed("limit_reached", ProviderAnswer.TOO_LARGE_FOR_STRIPE())
        price = "line_items[0][price_data]"
        form = {
            "mode": "payment",
            "line_items[0][quantity]": "1",
            f"{price}[currency]": charge.payment.currency.lower(),
            f"{price}[unit_amount]": str(amount),
            f"{price}[product_data][name]": charge.payment.description.strip()[:_MAX_PRODUCT_NAME] or "Paiement",
            "payment_method_types[0]": "card",
            # Else Stripe may show, and charge, the price in the currency of the customer's country.
            "adaptive_pricing[enabled]": "false",
            "success_url": page,
            "cancel_url": page,
            "client_reference_id": charge.payment.reference,
            "metadata[reference]": charge.payment.reference,
            "payment_intent_data[metadata][reference]": charge.payment.reference,
        } | ({"customer_email": charge.payment.email} if charge.payment.email else {})
        result = await self._post(_SESSIONS, form, idempotency_key=charge.payment.reference)
        if not result.ok:
            return read_refusal(result)
        session = result.ok_object()
        session_id = text_or_none(session.get("id"))
        return Accepted(session_id, text_or_none(session.get("url"))) if session_id else Unknown(result.raw)

    async def status(self, charge: Charge) -> StatusResult:
        if charge.payment.provider_reference is not None:
            return self._read_session(await self._get(f"{_SESSIONS}/{charge.payment.provider_reference}"))
        if charge.ask_only or self._key_expired(charge.payment.created_at):
            return Unknown(ProviderAnswer.RESPONSE_LOST())
        repeated = await self.initiate(charge)
        if isinstance(repeated, Accepted):
            return self._read_session(await self._get(f"{_SESSIONS}/{repeated.provider_reference}"))
        return as_status(repeated)

    def _read_session(self, result: ProviderResponse) -> StatusResult:
        """An object of Stripe's test mode proves nothing to a live account: no money moved."""
        session = result.ok_object()
        if self._is_live and session.get("livemode") is False:
            return Unknown(ProviderAnswer.TEST_MODE())
        return read_session(result)

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        """Reads the session first, because a refund names the payment intent inside it."""
        session = await self._get(f"{_SESSIONS}/{request.charge.payment.provider_reference}")
        intent = _intent(session)
        if intent is None:
            return NotProcessed("operator_unavailable", ProviderAnswer.PAYMENT_NOT_FOUND(answer=session.raw))
        form = {
            "payment_intent": intent,
            "amount": str(smallest_unit(request.amount, request.currency)),
            "reason": "requested_by_customer",
            "metadata[reference]": request.reference,
        }
        result = await self._post("/v1/refunds", form, idempotency_key=request.reference)
        return read_refund(result) if result.ok else read_refund_refusal(result)

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        if request.provider_reference is not None:
            return read_refund(await self._get(f"/v1/refunds/{request.provider_reference}"))
        if request.ask_only or self._key_expired(request.sent_at or Instant(0)):
            return await self._search_refund(request)
        # Under the same key Stripe gives the answer to the first request again, or has it made now.
        return as_refund_status(await self.refund(request), is_first=True)

    async def _search_refund(self, request: RefundRequest) -> RefundStatusResult:
        """Looks for the refund among those of the payment, when the response with its id was lost."""
        session = await self._get(f"{_SESSIONS}/{request.charge.payment.provider_reference}")
        intent = _intent(session)
        if intent is None:
            return Unknown(ProviderAnswer.PAYMENT_NOT_FOUND(answer=session.raw))
        listed = await self._list("/v1/refunds", {"payment_intent": intent, "limit": "100"})
        rows = listed.ok_object().get("data")
        if not isinstance(rows, list):
            return Unknown(listed.raw)
        refund_id = next((text_or_none(row.get("id")) for row in rows if _is_about(row, request.reference)), None)
        if refund_id is None:
            return NotFound(listed.raw)
        return read_refund(await self._get(f"/v1/refunds/{refund_id}"))

    async def probe(self) -> Answer:
        return probe_result(await self._get("/v1/balance"))

    async def account_identity(self) -> str | Unknown | None:
        """`acct_…`. A restricted key may not be allowed to read it, and 403 says so."""
        result = await self._get("/v1/account")
        if result.status == _FORBIDDEN:
            return None
        return text_or_none(result.ok_object().get("id")) or Unknown(result.raw)

    async def disputes(self, since: Instant) -> list[DisputeFacts] | Unknown:
        """Only those of the mode that the key belongs to: another one's money does not exist here."""
        listed = await list_disputes(self._list, since)
        return listed if isinstance(listed, Unknown) else [facts for facts in listed if facts.is_live == self._is_live]

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        return await read_history(self._list_history, since, until)

    async def _list_history(self, path: str, query: Mapping[str, str]) -> ProviderResponse:
        return await self._http.send("GET", path, query=dict(query), headers=self._headers, max_bytes=_MAX_HISTORY)

    async def balances(self) -> list[FloatBalance] | Unknown:
        return read_balances(await self._get("/v1/balance"), balances_in)

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        findings = await stripe_checks.check(setup, self._get)
        return [balances_read(await self.balances()), *findings]

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Signatures are checked when `webhook_secret` is configured."""
        event = parse_callback_json(callback)
        data = event.get("data") if event else None
        subject = data.get("object") if isinstance(data, dict) else None
        signed = signatures.is_signed(
            callback, "stripe-signature", secret=self._webhook_secret, separator=b".", now=self._clock.now()
        )
        if not isinstance(subject, dict) or not signed:
            return None
        if subject.get("object") == "dispute":
            return CallbackReference(about_dispute=True)
        metadata = subject.get("metadata")
        reference = text_or_none(subject.get("client_reference_id"))
        if reference is None and isinstance(metadata, dict):
            reference = metadata.get("reference")
        return callback_reference(reference, subject.get("id"))

    def _key_expired(self, sent_at: Instant) -> bool:
        return self._clock.now() - sent_at >= _KEY_LIFETIME

    async def _get(self, path: str) -> ProviderResponse:
        return await self._http.send("GET", path, headers=self._headers)

    async def _list(self, path: str, query: Mapping[str, str]) -> ProviderResponse:
        return await self._http.send("GET", path, query=dict(query), headers=self._headers)

    async def _post(self, path: str, form: Mapping[str, str], *, idempotency_key: str) -> ProviderResponse:
        headers = {**self._headers, "Idempotency-Key": idempotency_key}
        return await self._http.send("POST", path, form=form, headers=headers)


def _intent(session: ProviderResponse) -> str | None:
    """The payment intent inside a session, which a refund names."""
    return text_or_none((session.object() or {}).get("payment_intent"))


def _is_about(row: object, reference: str) -> bool:
    metadata = row.get("metadata") if isinstance(row, dict) else None
    return isinstance(metadata, dict) and metadata.get("reference") == reference
