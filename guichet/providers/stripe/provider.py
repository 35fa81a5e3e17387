"""Stripe Checkout for VISA and MASTERCARD: the customer pays on Stripe's page (docs/providers/stripe.md).

Our reference is the Idempotency-Key: a POST whose response was lost is repeated and gets the same response again, for
at least a day. A declined card leaves the session open, because the customer may try another card until it expires.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from guichet.clock import DAY, HOUR, Instant
from guichet.domain.money import DECIMALS, Currency
from guichet.domain.reconciliation import Line
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
from guichet.providers.shared.account_checks import AccountSetup, Finding, balances_read
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import callback_reference, decode_json_object, return_url, text_or_none, value_at
from guichet.providers.shared.listings import Body, StatesBalances
from guichet.providers.shared.results import as_refund_status, as_status
from guichet.providers.stripe import checks as stripe_checks
from guichet.providers.stripe.history import list_disputes, read_history
from guichet.providers.stripe.responses import (
    balances_in,
    read_refund,
    read_refund_refusal,
    read_refusal,
    read_session,
    reference_in,
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


class Stripe(StatesBalances):
    balance_path = "/v1/balance"
    page_lasts = DAY
    key_setting = "secret_key"

    def configure(self, settings: Mapping[str, str]) -> None:
        self._http.headers = {
            "Authorization": f"Bearer {settings['secret_key']}",
            "Stripe-Version": settings.get("api_version") or _API_VERSION,
        }
        self._is_live = not is_test_key(settings["secret_key"])

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
            return self._read_session(await self._http.get(f"{_SESSIONS}/{charge.payment.provider_reference}"))
        if charge.ask_only or self._key_expired(charge.payment.created_at):
            return Unknown(ProviderAnswer.RESPONSE_LOST())
        repeated = await self.initiate(charge)
        if isinstance(repeated, Accepted):
            return self._read_session(await self._http.get(f"{_SESSIONS}/{repeated.provider_reference}"))
        return as_status(repeated)

    def _read_session(self, result: ProviderResponse) -> StatusResult:
        """An object of Stripe's test mode proves nothing to a live account: no money moved."""
        session = result.ok_object()
        if self._is_live and session.get("livemode") is False:
            return Unknown(ProviderAnswer.TEST_MODE())
        return read_session(result)

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        """Reads the session first, because a refund names the payment intent inside it."""
        session = await self._http.get(f"{_SESSIONS}/{request.charge.payment.provider_reference}")
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
            return read_refund(await self._http.get(f"/v1/refunds/{request.provider_reference}"))
        if request.ask_only or self._key_expired(request.sent_at or Instant(0)):
            return await self._search_refund(request)
        # Under the same key Stripe gives the answer to the first request again, or has it made now.
        return as_refund_status(await self.refund(request), is_first=True)

    async def _search_refund(self, request: RefundRequest) -> RefundStatusResult:
        """Looks for the refund among those of the payment, when the response with its id was lost."""
        session = await self._http.get(f"{_SESSIONS}/{request.charge.payment.provider_reference}")
        intent = _intent(session)
        if intent is None:
            return Unknown(ProviderAnswer.PAYMENT_NOT_FOUND(answer=session.raw))
        listed = await self._http.get("/v1/refunds", {"payment_intent": intent, "limit": "100"})
        rows = listed.ok_object().get("data")
        if not isinstance(rows, list):
            return Unknown(listed.raw)
        ours = next((row for row in rows if reference_in(row) == request.reference), None)
        refund_id = text_or_none(value_at(ours, "id"))
        if refund_id is None:
            return NotFound(listed.raw)
        return read_refund(await self._http.get(f"/v1/refunds/{refund_id}"))

    async def account_identity(self) -> str | Unknown | None:
        """`acct_…`. A restricted key may not be allowed to read it, and 403 says so."""
        result = await self._http.get("/v1/account")
        if result.status == _FORBIDDEN:
            return None
        return text_or_none(result.ok_object().get("id")) or Unknown(result.raw)

    async def disputes(self, since: Instant) -> list[DisputeFacts] | Unknown:
        """Only those of the mode that the key belongs to: another one's money does not exist here."""
        listed = await list_disputes(self._http.get, since)
        return listed if isinstance(listed, Unknown) else [facts for facts in listed if facts.is_live == self._is_live]

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        return await read_history(partial(self._http.get, max_bytes=_MAX_HISTORY), since, until)

    def balances_in(self, body: Body) -> list[FloatBalance | None]:
        return balances_in(body)

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        findings = await stripe_checks.check(setup, self._http)
        return [balances_read(await self.balances()), *findings]

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Signatures are checked when `webhook_secret` is configured."""
        subject = value_at(decode_json_object(callback.body), "data", "object")
        if not isinstance(subject, dict) or not self.is_signed(callback, "stripe-signature", b"."):
            return None
        if subject.get("object") == "dispute":
            return CallbackReference(about_dispute=True)
        reference = text_or_none(subject.get("client_reference_id")) or reference_in(subject)
        return callback_reference(reference, subject.get("id"))

    def _key_expired(self, sent_at: Instant) -> bool:
        return self._clock.now() - sent_at >= _KEY_LIFETIME

    async def _post(self, path: str, form: Mapping[str, str], *, idempotency_key: str) -> ProviderResponse:
        return await self._http.send("POST", path, form=form, headers={"Idempotency-Key": idempotency_key})


def _intent(session: ProviderResponse) -> str | None:
    """The payment intent inside a session, which a refund names."""
    return text_or_none((session.object() or {}).get("payment_intent"))
