"""Wave Business: checkout sessions on Wave's page, their refund, and payouts (docs/providers/wave.md).

Creating a session has no idempotency key: when the response is lost, the session is searched by `client_reference` and
never created again. A refund may be repeated: only the first one moves money.
"""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from guichet.clock import HOUR, MINUTE, SECOND, Instant
from guichet.domain.money import Currency
from guichet.domain.payments import UNSEEN_END
from guichet.domain.reconciliation import Line
from guichet.providers.base import (
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
    Succeeded,
    Unknown,
)
from guichet.providers.capabilities import FloatBalance, MerchantNames
from guichet.providers.shared import signatures
from guichet.providers.shared.account_checks import AccountSetup, Finding, balances_read
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.choices import choice, switch
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import (
    callback_reference,
    decode_json_object,
    header,
    hundredths,
    return_url,
    units,
)
from guichet.providers.shared.listings import Body, StatesBalances, balance_of
from guichet.providers.shared.results import as_refund_status, most_conclusive
from guichet.providers.wave import checks as wave_checks
from guichet.providers.wave.history import find_session_refund, read_history
from guichet.providers.wave.merchants import WaveMerchants
from guichet.providers.wave.responses import (
    read_new_session,
    read_payout,
    read_payout_object,
    read_payout_refusal,
    read_refusal,
    read_session,
    read_session_refund_refusal,
)

#: A key belongs to one wallet in one country, here with its dialling code.
_COUNTRIES: Final = {"ci": "225", "sn": "221", "bf": "226"}
_CURRENCY: Final = "XOF"
_SESSIONS: Final = "/v1/checkout/sessions"
#: After this long a payout is searched before it is made again under its Idempotency-Key.
_KEY_LIFETIME: Final = 20 * HOUR
#: Bytes. A page of transactions is longer than other responses.
_MAX_HISTORY: Final = 512 * 1024


def operators(settings: Mapping[str, str]) -> Collection[str]:
    return (f"wave_{settings['country'].lower()}",)


class Wave(StatesBalances):
    balance_path = "/v1/balance"
    page_lasts = 30 * MINUTE
    account_settings = ("country",)
    key_setting = "api_key"

    def configure(self, settings: Mapping[str, str]) -> None:
        """Raises ValueError for a `country` or a `webhook_mode` that does not exist, or contradicting settings."""
        country = settings["country"].lower()
        if country not in _COUNTRIES:
            raise ValueError(f"country must be one of {', '.join(_COUNTRIES)}")
        self._operator, self._dialling_code = f"wave_{country}", _COUNTRIES[country]
        self._http.headers = {"Authorization": f"Bearer {settings['api_key']}"}
        if secret := settings.get("signing_secret"):
            self._http.sign = partial(self._signature, secret)
        self._webhook_mode = choice(settings, "webhook_mode", ("signing", "shared"))
        self._merchant_id = settings.get("aggregated_merchant_id")
        self.needs_merchant_id = switch(settings, "aggregated_merchants", default=False)
        if self.needs_merchant_id and self._merchant_id:
            raise ValueError("aggregated_merchants and aggregated_merchant_id exclude each other")
        #: For an aggregator: the names under which it collects.
        self.merchants: MerchantNames = WaveMerchants(self._http)

    def _signature(self, secret: str, method: str, url: str, body: bytes) -> dict[str, str]:
        """A key that was made with signing must sign every request, GETs too; otherwise Wave answers 401."""
        timestamp = str(self._clock.now() // SECOND)
        digest = signatures.hmac_sha256_hex(secret, timestamp.encode() + body)
        return {"Wave-Signature": f"t={timestamp},v1={digest}"}

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return operator == self._operator

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        return not collected_here

    def takes(self, operator: str, currency: Currency) -> bool:
        return operator == self._operator and currency == _CURRENCY

    async def initiate(self, charge: Charge) -> InitiationResult:
        page = return_url(charge, self._return_url)
        if unserved := self._unserved(charge):
            return unserved
        if page is None:
            return NotProcessed("configuration", ProviderAnswer.NO_RETURN_PAGE())
        body = {
            "amount": str(units(charge.amount)),
            "currency": charge.payment.currency,
            "success_url": page,
            "error_url": page,
            "client_reference": charge.payment.reference,
            **self._merchant_field(charge),
        }
        if charge.payment.phone_number:
            body["restrict_payer_mobile"] = f"+{charge.payment.phone_number}"
        result = await self._http.post(_SESSIONS, body)
        return read_new_session(result) if result.ok else read_refusal(result)

    def _unserved(self, charge: Charge) -> NotProcessed | None:
        """Why Wave is not asked to move money for this customer; None when it is."""
        if unserved := self.refuse_unserved(charge, self._operator):
            return unserved
        if charge.payment.phone_number and not charge.payment.phone_number.startswith(self._dialling_code):
            allowed = {"operator": self._operator, "prefix": self._dialling_code}
            return NotProcessed("payer_not_found", ProviderAnswer.ONLY_NUMBERS_WITH(**allowed))
        if self.needs_merchant_id and charge.provider_merchant_id is None:
            return NotProcessed("configuration", ProviderAnswer.NOT_AGGREGATED())
        return None

    def _merchant_field(self, charge: Charge) -> dict[str, str]:
        merchant_id = charge.provider_merchant_id or self._merchant_id
        return {"aggregated_merchant_id": merchant_id} if merchant_id else {}

    async def status(self, charge: Charge) -> StatusResult:
        if charge.payment.provider_reference is None:
            return await self._search(charge)
        result = await self._http.get(f"{_SESSIONS}/{charge.payment.provider_reference}")
        session = result.ok_object()
        return read_session(session) if session else Unknown(result.raw)

    async def _search(self, charge: Charge) -> StatusResult:
        """The session that was created under our reference, when the response with its id was lost."""
        sessions = await self._found_by_reference(f"{_SESSIONS}/search", charge.payment.reference)
        if isinstance(sessions, Unknown):
            return sessions
        if result := most_conclusive(read_session(session) for session in sessions):
            return result
        return NotFound(ProviderAnswer.NO_SESSION())

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        """A refund of the session; a payout when another account collected the payment."""
        if not request.collected_here:
            return await self._pay_out(request)
        session_id = request.charge.payment.provider_reference
        if session_id is None:
            return NotProcessed("operator_unavailable", ProviderAnswer.SESSION_UNKNOWN())
        headers = {"Content-Type": "application/json"}  # Of an empty body.
        result = await self._http.send("POST", f"{_SESSIONS}/{session_id}/refund", body=b"", headers=headers)
        if result.ok:
            # The response is empty: Wave refunds a session as a whole, once, whatever our reference is.
            return Succeeded(request.amount, request.currency, session_id)
        return read_session_refund_refusal(result)

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        """A refund has no status to ask: repeating it, or a payout under its key, tells what became of it. What must
        not be repeated is looked for in the list of transactions."""
        if not request.collected_here and request.provider_reference is not None:
            return read_payout(await self._http.get(f"/v1/payout/{request.provider_reference}"))
        if request.ask_only and request.collected_here:
            return await self._search_refund(request)
        if not request.collected_here and (request.ask_only or self._key_expired(request)):
            return await self._search_payout(request)
        return as_refund_status(await self.refund(request), is_first=self._first_has_ended(request))

    def _first_has_ended(self, request: RefundRequest) -> bool:
        """Whether the first request cannot be on its way any more. A session that it refunded is not refused then: Wave
        answers every repeat as the first request."""
        sent_at = request.sent_at or self._clock.now()
        return request.collected_here and self._clock.now() - sent_at > UNSEEN_END

    async def _search_refund(self, request: RefundRequest) -> RefundStatusResult:
        session_id, now = request.charge.payment.provider_reference, self._clock.now()
        if session_id is None:
            return Unknown(ProviderAnswer.SESSION_UNKNOWN())
        refund = await find_session_refund(self._ask_transactions, session_id, request.sent_at or now, now)
        if isinstance(refund, Unknown):
            return refund
        if refund is None:
            return NotFound(ProviderAnswer.NO_SESSION_REFUND())
        return Succeeded(refund.amount, refund.currency, session_id)

    def _key_expired(self, request: RefundRequest) -> bool:
        """How long Wave knows an Idempotency-Key is not published."""
        return self._clock.now() - (request.sent_at or Instant(0)) >= _KEY_LIFETIME

    async def _search_payout(self, request: RefundRequest) -> RefundStatusResult:
        """The payout that was made under our reference. It is made again only once several searches proved that there
        is none, and never without an answer."""
        payouts = await self._found_by_reference("/v1/payouts/search", request.reference)
        if isinstance(payouts, Unknown):
            return payouts
        if payouts:
            return most_conclusive(map(read_payout_object, payouts)) or Unknown()
        if request.never_arrived and not request.ask_only:
            return as_refund_status(await self.refund(request))
        return NotFound(ProviderAnswer.NO_PAYOUT())

    async def _pay_out(self, request: RefundRequest) -> RefundInitiationResult:
        payment = msgspec.structs.replace(request.charge.payment, phone_number=request.payee_number)
        if unserved := self._unserved(msgspec.structs.replace(request.charge, payment=payment)):
            return unserved
        body = {
            "currency": request.currency,
            "receive_amount": str(units(request.amount)),
            "mobile": f"+{request.payee_number}",
            "client_reference": request.reference,
            "payment_reason": "Remboursement",
            **self._merchant_field(request.charge),
        }
        result = await self._http.post("/v1/payout", body, {"Idempotency-Key": request.reference})
        return read_payout(result) if result.ok else read_payout_refusal(result)

    def balances_in(self, body: Body) -> list[FloatBalance | None]:
        return [balance_of("", hundredths(body.get("amount")), body.get("currency"))]

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        findings = await wave_checks.check(setup, self._http, self.merchants if self.needs_merchant_id else None)
        return [*findings, balances_read(await self.balances())]

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        return await read_history(self._ask_transactions, since, until)

    async def _ask_transactions(self, query: dict[str, str]) -> ProviderResponse:
        return await self._http.get("/v1/transactions", query, max_bytes=_MAX_HISTORY)

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        body = decode_json_object(callback.body)
        session = body.get("data") if body else None
        if not isinstance(session, dict) or not self._signature_is_valid(callback):
            return None
        return callback_reference(session.get("client_reference"), session.get("id"))

    def _signature_is_valid(self, callback: Callback) -> bool:
        secret = self._webhook_secret
        if secret and self._webhook_mode == "shared":
            return signatures.constant_time_equal(f"Bearer {secret}", header(callback, "authorization"))
        return self.is_signed(callback, "wave-signature", b"")

    async def _found_by_reference(self, path: str, reference: str) -> list[dict[str, Any]] | Unknown:
        result = await self._http.get(path, {"client_reference": reference})
        rows = result.ok_object().get("result")
        if not isinstance(rows, list):
            return Unknown(result.raw)
        sessions = [row for row in rows if isinstance(row, dict) and row.get("client_reference") == reference]
        return Unknown(ProviderAnswer.OTHER_SESSIONS()) if rows and not sessions else sessions
