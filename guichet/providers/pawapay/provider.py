"""pawaPay Merchant API v2: eleven operators with one account (docs/providers/pawapay.md).

Our references are pawaPay's ids and idempotency keys. A deposit that pawaPay does not know fifteen minutes after it was
sent was never received; a refund that it does not know is sent again.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal

from guichet.clock import Clock, Instant
from guichet.domain.availability import OperatorState
from guichet.domain.money import Currency
from guichet.domain.reconciliation import Line
from guichet.providers.base import (
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
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.capabilities import FloatBalance
from guichet.providers.pawapay import checks as pawapay_checks
from guichet.providers.pawapay.history import PawaPayStatements
from guichet.providers.pawapay.responses import (
    is_not_found,
    read_availability,
    read_deposit,
    read_initiation,
    read_refund_initiation,
    read_refund_status,
    read_status,
)
from guichet.providers.shared.account_checks import AccountSetup, Finding, balances_read
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.choices import choice
from guichet.providers.shared.client import ProviderResponse, Sign
from guichet.providers.shared.fields import (
    decode_json_object,
    hundredths,
    plain_text,
    return_url,
    text_or_none,
    units,
)
from guichet.providers.shared.listings import Body, StatesBalances, balance_of, rows_of
from guichet.providers.shared.results import as_repeated_refund

#: For each of our operators pawaPay's word for it, and its currency.
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
OPERATORS: Final = frozenset(_PROVIDERS)
#: The end of pawaPay's word for an operator is its country.
_COUNTRIES: Final = frozenset(provider.rpartition("_")[2] for provider, _ in _PROVIDERS.values())
#: Operators whose customers confirm on a page.
_WITH_PAGE: Final = frozenset({"wave_ci", "wave_sn"})
#: Operators whose customers give a code.
_WITH_CODE: Final = frozenset({"orange_bf"})
#: The address of the page comes shortly after the deposit. It is asked for this many times, with this pause in seconds,
#: while the merchant waits for our response.
_PAGE_ATTEMPTS: Final = 6
_PAGE_PAUSE: Final = 0.5
#: Seconds and bytes for the file of a statement: a hundred thousand lines and more.
_DOWNLOAD_TIMEOUT: Final = 120.0
_MAX_STATEMENT: Final = 32 * 1024 * 1024
_ENCODINGS: Final[Mapping[str, Literal["der", "raw"]]] = {"der": "der", "raw": "raw"}
_MIN_MESSAGE: Final = 4
_MAX_MESSAGE: Final = 22


class PawaPay(StatesBalances):
    balance_path = "/v2/wallet-balances"
    key_setting = "token"

    def configure(self, settings: Mapping[str, str]) -> None:
        """Raises ValueError for a key that cannot be used."""
        self._http.headers = {"Authorization": f"Bearer {settings['token']}"}
        self._http.sign = _signer(settings, self._clock)
        self._verify = _verifier(settings)
        self._statements = PawaPayStatements(self._http.get, self._post, self._download, _COUNTRIES, self._clock)

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return operator in _PROVIDERS

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        return not collected_here

    def takes(self, operator: str, currency: Currency) -> bool:
        return operator in _PROVIDERS and currency == _PROVIDERS[operator][1]

    async def initiate(self, charge: Charge) -> InitiationResult:
        if unserved := self.refuse_unserved(charge, "pawaPay"):
            return unserved
        provider, currency = _PROVIDERS[charge.payment.operator]
        body: dict[str, object] = {
            "depositId": charge.payment.reference,
            "amount": str(units(charge.amount)),
            "currency": currency,
            "payer": _party(charge.payment.phone_number, provider),
            "customerMessage": _message(charge.payment.description),
            "clientReferenceId": charge.payment.reference,
        }
        if charge.payment.operator in _WITH_CODE:
            body["preAuthorisationCode"] = charge.otp
        if charge.payment.operator in _WITH_PAGE:
            page = return_url(charge, self._return_url)
            body |= {"successfulUrl": page, "failedUrl": page}
        initiated = read_initiation(
            await self._post("deposits", body), id_field="depositId", reference=charge.payment.reference
        )
        if charge.payment.operator in _WITH_PAGE and isinstance(initiated, Accepted):
            return await self._wait_for_page(charge)
        return initiated

    async def _wait_for_page(self, charge: Charge) -> Accepted:
        """The deposit with the address of its page. When that is late, polling finds it."""
        reference = charge.payment.reference
        for _ in range(_PAGE_ATTEMPTS):
            await self._clock.sleep(_PAGE_PAUSE)
            status = read_status(await self._http.get(f"/v2/deposits/{reference}"), reference)
            if isinstance(status, Accepted) and status.redirect_url:
                return status
            if isinstance(status, Succeeded | Refused):
                return Accepted(reference, next_poll_at=self._clock.now())
        return Accepted(reference)

    async def status(self, charge: Charge) -> StatusResult:
        result = await self._http.get(f"/v2/deposits/{charge.payment.reference}")
        if not is_not_found(result):
            return read_deposit(result, charge)
        return NotFound(result.raw)

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        """A refund of the deposit; a payout when another account collected the payment."""
        charge, reference = request.charge, request.reference
        provider, currency = _PROVIDERS.get(charge.payment.operator, ("", ""))
        if request.currency != currency:
            facts = {"operator": charge.payment.operator, "currency": request.currency}
            return NotProcessed("configuration", ProviderAnswer.NOT_PAID_BY_PAWAPAY(**facts))
        body: dict[str, object] = {
            "amount": str(units(request.amount)),
            "currency": currency,
            "clientReferenceId": reference,
        }
        if request.collected_here:
            body |= {"refundId": reference, "depositId": charge.payment.reference}
            return read_refund_initiation(await self._post("refunds", body), id_field="refundId", reference=reference)
        body |= {"payoutId": reference, "recipient": _party(request.payee_number, provider)}
        body |= {"customerMessage": "Remboursement"}
        return read_refund_initiation(await self._post("payouts", body), id_field="payoutId", reference=reference)

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        resource = "refunds" if request.collected_here else "payouts"
        result = await self._http.get(f"/v2/{resource}/{request.reference}")
        if not is_not_found(result) or request.provider_reference is not None or request.ask_only:
            return read_refund_status(result, request.reference)
        # A first request that is still on its way may be the reason why the second is refused.
        return as_repeated_refund(await self.refund(request), request)

    def balances_in(self, body: Body) -> list[FloatBalance | None]:
        """One for each country; a wallet that serves one provider only names it."""
        return [
            balance_of(
                " ".join(filter(None, (text_or_none(row.get("country")), text_or_none(row.get("provider"))))),
                hundredths(row.get("balance")),
                row.get("currency"),
            )
            for row in rows_of(body.get("balances"))
        ]

    def collection_wallet(self, operator: str) -> str:
        """The country, for payments and payouts alike."""
        return _PROVIDERS[operator][0].rpartition("_")[2] if operator in _PROVIDERS else ""

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        codes = {operator: code for operator, (code, _) in _PROVIDERS.items()}
        findings = await pawapay_checks.check(setup, self._http, codes)
        return [balances_read(await self.balances()), *findings]

    async def account_identity(self) -> str | Unknown | None:
        """The name of the company, which is the same under each of its tokens."""
        result = await self._http.get("/v2/active-conf")
        if not result.ok_object():
            return Unknown(result.raw)
        return text_or_none(result.ok_object().get("companyName"))

    async def availability(self) -> Mapping[str, OperatorState] | Unknown:
        states = read_availability(await self._http.get("/v2/availability"))
        if isinstance(states, Unknown):
            return states
        return {operator: states[word] for operator, (word, _) in _PROVIDERS.items() if word in states}

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        return await self._statements.lines(since, until, notify_url)

    async def _download(self, url: str) -> ProviderResponse:
        return await self._http.download(url, timeout=_DOWNLOAD_TIMEOUT, max_bytes=_MAX_STATEMENT)

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Signatures are checked when `callback_public_key` is configured."""
        body = decode_json_object(callback.body)
        if body is None:
            return None
        if self._verify and not self._verify(callback, self._clock.now()):
            return None
        for id_field in ("refundId", "payoutId", "depositId"):
            if reference := text_or_none(body.get(id_field)):
                return CallbackReference(reference, reference)
        return CallbackReference(about_statement=True) if text_or_none(body.get("statementId")) else None

    async def _post(self, resource: str, body: dict[str, object]) -> ProviderResponse:
        return await self._http.post(f"/v2/{resource}", body)


def _party(phone_number: str | None, provider: str) -> dict[str, object]:
    return {"type": "MMO", "accountDetails": {"phoneNumber": phone_number, "provider": provider}}


def _message(description: str) -> str:
    message = plain_text(description, _MAX_MESSAGE)
    return message if len(message) >= _MIN_MESSAGE else "Paiement"


def _signer(settings: Mapping[str, str], clock: Clock) -> Sign | None:
    """Signs what is posted with the account's key; None where our requests are not signed. Raises ValueError for
    settings that cannot be used."""
    encoding = _ENCODINGS[choice(settings, "signature_encoding", _ENCODINGS)]
    if not (signing_key := settings.get("signing_key")):
        return None
    from guichet.providers.pawapay import http_message_signatures as signatures  # noqa: PLC0415 - `cryptography` is large

    key = signatures.private_key(signing_key)
    if not (key_id := settings.get("signing_key_id")):
        raise ValueError("signing_key needs signing_key_id")

    def sign(method: str, url: str, body: bytes) -> dict[str, str]:
        if method != "POST":
            return {}
        return signatures.sign(key, key_id=key_id, url=url, body=body, now=clock.now(), encoding=encoding)

    return sign


def _verifier(settings: Mapping[str, str]) -> Callable[[Callback, Instant], bool] | None:
    """`http_message_signatures.verify` with pawaPay's key; None where its callbacks are not checked. Raises
    ValueError for a key that cannot be used."""
    if not (callback_key := settings.get("callback_public_key")):
        return None
    from guichet.providers.pawapay import http_message_signatures as signatures  # noqa: PLC0415 - `cryptography` is large

    return partial(signatures.verify, signatures.public_key(callback_key))
