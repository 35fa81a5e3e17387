"""Orange Money Web Payment: the customer pays on Orange's page; one account per country (docs/providers/orange.md).

The status is asked by order, amount and `pay_token` together. When the response with the token is lost, the status
cannot be asked and the customer has no page: the payment stays pending until staff decide. There are no refunds.
"""

import base64
from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from guichet.clock import MINUTE
from guichet.domain.messages import Answer
from guichet.domain.money import Currency
from guichet.providers.base import (
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.shared.account_checks import AccountSetup, Finding, no_call, ok, probed, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import AccessTokens, HttpProvider, ProviderResponse
from guichet.providers.shared.fields import (
    ProviderStatus,
    decode_json_object,
    parse_status_word,
    return_url,
    status_words,
    text_or_none,
    units,
)
from guichet.providers.shared.results import classify_http_error

_MAX_URL: Final = 120
_OAUTH_PATH: Final = "/oauth/v3/token"
#: The country of Orange's sandbox, which serves any operator.
_SANDBOX_COUNTRY: Final = "dev"
#: Codes of a 400 or 403 that concern our account.
_ACCOUNT_ERRORS: Final = frozenset({50, 53, 1202, 1203})
_FORBIDDEN: Final = 1201
#: Orange already has an order with this id.
_DUPLICATE_ORDER: Final = 1204
_STATUSES: Final = status_words(pending="INITIATED PENDING", succeeded="SUCCESS", failed="FAILED EXPIRED")


def is_sandbox(settings: Mapping[str, str]) -> bool:
    return settings.get("country", "").lower() == _SANDBOX_COUNTRY


def operators(settings: Mapping[str, str]) -> Collection[str] | None:
    return None if is_sandbox(settings) else (f"orange_{settings['country'].lower()}",)


class Orange(HttpProvider):
    page_lasts = 10 * MINUTE
    account_settings = ("country", "client_id")

    def configure(self, settings: Mapping[str, str]) -> None:
        self._country = settings["country"].lower()
        self._merchant_key = settings["merchant_key"]
        self._currency = settings.get("currency") or "XOF"
        self._merchant_name = settings.get("merchant_name")
        oauth_path = settings.get("oauth_path") or _OAUTH_PATH
        user, form = (settings["client_id"], settings["client_secret"]), {"grant_type": "client_credentials"}
        self._tokens = AccessTokens(self._http, self._clock, oauth_path, basic_auth=user, form=form)

    def takes(self, operator: str, currency: Currency) -> bool:
        return currency == "XOF" and (self._country == _SANDBOX_COUNTRY or operator == f"orange_{self._country}")

    async def initiate(self, charge: Charge) -> InitiationResult:
        page, notify_url = return_url(charge, self._return_url, _MAX_URL), charge.notify_url
        if unserved := self.refuse_unserved(charge, f"Orange {self._country}"):
            return unserved
        if page is None or notify_url is None or len(notify_url) > _MAX_URL:
            return NotProcessed("configuration", ProviderAnswer.NO_ADDRESSES())
        body: dict[str, object] = {
            "merchant_key": self._merchant_key,
            "currency": self._currency,
            "order_id": order_id(charge.payment.reference),
            "amount": units(charge.amount),
            "return_url": page,
            "cancel_url": page,
            "notif_url": notify_url,
            "lang": "fr",
        }
        if self._merchant_name:
            body["reference"] = self._merchant_name
        return _read_initiation(await self._post("webpayment", body), order_id(charge.payment.reference))

    async def status(self, charge: Charge) -> StatusResult:
        token = charge.provider_data.get("pay_token")
        if not token:
            return Unknown(ProviderAnswer.PAY_PAGE_LOST())
        body: dict[str, object] = {
            "order_id": order_id(charge.payment.reference),
            "amount": units(charge.amount),
            "pay_token": token,
        }
        return _read_status(await self._post("transactionstatus", body), charge)

    async def probe(self) -> Answer:
        """Asks about an order that does not exist: the account is right when Orange looks for it."""
        nothing: dict[str, object] = {"order_id": "probe", "amount": 1, "pay_token": "probe"}
        result = await self._post("transactionstatus", nothing)
        accepted = 0 < result.status < 500 and result.status not in (401, 403, 429)
        return "ok" if accepted else result.raw

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        address = f"{setup.callback_addresses[1]}/{UUID(int=0)}"
        fits = AccountFinding.CHARACTERS(length=len(address), most=_MAX_URL)
        return [
            probed(await self.probe(), AccountFinding.CLIENT_ACCEPTED()),
            (ok if len(address) <= _MAX_URL else wrong)(AccountSubject.CALLBACK_LENGTH(), fits),
            no_call(AccountSubject.MERCHANT_KEY(), AccountFinding.ONLY_BY_PAYMENT()),
            no_call(AccountSubject.LIMITS_AND_BALANCE(), AccountFinding.ORANGE_TELLS_NONE()),
        ]

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Callbacks are not signed and do not name our reference, which is the last part of the path."""
        body = decode_json_object(callback.body)
        if body is None or not body.get("notif_token"):
            return None
        return CallbackReference(provider_reference=text_or_none(body.get("order_id")))

    async def _post(self, call: str, body: dict[str, object]) -> ProviderResponse:
        return await self._tokens.send("POST", f"/orange-money-webpay/{self._country}/v1/{call}", json=body)


def order_id(reference: str) -> str:
    """Our reference in 26 characters: Orange takes 30 at most and a UUID has 36."""
    return base64.b32encode(UUID(reference).bytes).decode().rstrip("=")


def _read_initiation(result: ProviderResponse, order: str) -> InitiationResult:
    """Source: docs/providers/orange.md, "Errors"."""
    body = result.object() or {}
    if result.ok:
        token, page = text_or_none(body.get("pay_token")), text_or_none(body.get("payment_url"))
        provider_data = {"pay_token": token or "", "notif_token": text_or_none(body.get("notif_token")) or ""}
        return Accepted(order, page, provider_data) if token and page else Unknown(result.raw)
    code = body.get("code")
    if result.status in (400, 403) and code == _FORBIDDEN:
        return Refused("refused", result.raw)
    if result.status in (400, 403) and isinstance(code, int) and code in _ACCOUNT_ERRORS:
        return NotProcessed("configuration", result.raw)
    if common := classify_http_error(result):
        return common
    refused = result.status == 400 and isinstance(code, int) and code != _DUPLICATE_ORDER
    return Refused("refused", result.raw) if refused else Unknown(result.raw)


def _read_status(result: ProviderResponse, charge: Charge) -> StatusResult:
    body, order = result.ok_object(), order_id(charge.payment.reference)
    if body.get("order_id", order) != order:
        return Unknown(ProviderAnswer.OTHER_ORDER(answer=result.raw))
    match parse_status_word(_STATUSES, body.get("status")):
        case ProviderStatus.SUCCEEDED:
            # Orange looks for a transaction by its amount, so a success confirms the amount that was asked about.
            return Succeeded(charge.amount, charge.payment.currency, text_or_none(body.get("txnid")) or order)
        case ProviderStatus.FAILED:
            expired = str(body.get("status")).upper() == "EXPIRED"
            return Refused("expired" if expired else "rejected_by_payer", result.raw)
        case ProviderStatus.PENDING:
            return Accepted(order)
    return Unknown(result.raw)
