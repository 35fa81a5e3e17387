"""Orange Money Sénégal by Sonatel: payment with a code in one step, cash-in as refund (docs/providers/sonatel.md).

The response to a payment is final but states no amount. A success is therefore confirmed by the list of transactions
under our reference, which states it; the same list finds a payment whose response was lost.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, Literal
from uuid import uuid4

from guichet.domain.messages import Answer, verbatim
from guichet.domain.money import Currency
from guichet.providers.base import (
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    StatusResult,
    Unknown,
)
from guichet.providers.shared.account_checks import (
    AccountSetup,
    Finding,
    answered,
    callback_address_is_ours,
    no_call,
    wrong,
)
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import AccessTokens, HttpProvider, ProviderResponse
from guichet.providers.shared.fields import callback_reference, decode_json_object, units, value_at
from guichet.providers.shared.results import most_conclusive, probe_result
from guichet.providers.sonatel.responses import (
    SENEGAL,
    read_cashin,
    read_cashin_row,
    read_initiation,
    read_list,
    read_row,
)

OPERATOR: Final = "orange_sn"
_CURRENCY: Final = "XOF"
#: Where the callback address of a merchant code is registered and read.
_CALLBACK_PATH: Final = "/api/notification/v1/merchantcallback"
TransactionType = Literal["MERCHANT_PAYMENT", "CASHIN"]


class Sonatel(HttpProvider):
    account_settings = ("client_id", "merchant_code", "retailer_msisdn")

    def configure(self, settings: Mapping[str, str]) -> None:
        form = {
            "client_id": settings["client_id"],
            "client_secret": settings["client_secret"],
            "grant_type": "client_credentials",
        }
        self._merchant_code = settings["merchant_code"]
        self._retailer = settings.get("retailer_msisdn")
        self._retailer_pin = settings.get("retailer_pin")
        self._tokens = AccessTokens(self._http, self._clock, "/oauth/v1/token", form=form)

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        """A refund is a cash-in, whichever account collected; it needs a retailer's number and PIN."""
        return operator == OPERATOR and bool(self._retailer and self._retailer_pin)

    def takes(self, operator: str, currency: Currency) -> bool:
        return operator == OPERATOR and currency == _CURRENCY

    async def initiate(self, charge: Charge) -> InitiationResult:
        if unserved := self.refuse_unserved(charge, "Sonatel"):
            return unserved
        body = {
            "customer": {**_customer(charge.payment.phone_number), "otp": charge.otp, "walletType": "PRINCIPAL"},
            "partner": {"idType": "CODE", "id": self._merchant_code},
            "amount": {"value": units(charge.amount), "unit": charge.payment.currency},
            "reference": charge.payment.reference,
        }
        return read_initiation(await self._post("payments/onestep", body), charge.payment.reference, self._clock.now())

    async def status(self, charge: Charge) -> StatusResult:
        rows = await self._listed(charge.payment.reference, "MERCHANT_PAYMENT")
        if isinstance(rows, Unknown):
            return rows
        return most_conclusive(read_row(row) for row in rows) or Unknown(ProviderAnswer.NOT_LISTED())

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        if request.currency != _CURRENCY:
            return NotProcessed("configuration", ProviderAnswer.NOT_PAID_BY_SONATEL(currency=request.currency))
        pin = await self._encrypted_pin()
        if isinstance(pin, NotProcessed):
            return pin
        body = {
            "partner": {"idType": "MSISDN", "id": self._retailer, "encryptedPinCode": pin},
            "customer": _customer(request.payee_number),
            "amount": {"value": units(request.amount), "unit": request.currency},
            "reference": request.reference,
            "receiveNotification": False,
        }
        return read_cashin(await self._post("cashins", body), request.reference, self._clock.now())

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        rows = await self._listed(request.reference, "CASHIN")
        if isinstance(rows, Unknown):
            return rows
        return most_conclusive(read_cashin_row(row) for row in rows) or Unknown(ProviderAnswer.NOT_LISTED())

    async def probe(self) -> Answer:
        return probe_result(await self._get("/api/account/v1/publicKeys"))

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        registered = await self.registered_callback()
        keys = await self._get("/api/account/v1/publicKeys")
        # Payments are settled from this list, and not every contract includes it.
        listed = await self._get("/api/eWallet/v1/transactions", {"reference": str(uuid4())})
        return [
            answered(AccountSubject.CREDENTIALS(), keys, AccountFinding.CLIENT_ACCEPTED()),
            answered(AccountSubject.TRANSACTIONS(), listed, AccountFinding.TRANSACTIONS_LISTED()),
            _registered(setup, registered),
            no_call(AccountSubject.RETAILER(), AccountFinding.ONLY_BY_CASH_IN()),
            no_call(AccountSubject.MERCHANT_CODE(), AccountFinding.ONLY_BY_PAYMENT()),
        ]

    async def registered_callback(self) -> ProviderResponse:
        """The callback address that Sonatel has for the merchant code; 404 when it has none."""
        return await self._get(_CALLBACK_PATH, {"code": self._merchant_code})

    async def register_callback(self, address: str) -> ProviderResponse:
        """Replaces that address. Sonatel sends our secret back with each callback, and signs with it."""
        body = {"apiKey": self._webhook_secret, "code": self._merchant_code, "name": "Guichet", "callbackUrl": address}
        return await self._tokens.send("POST", _CALLBACK_PATH, json=body)

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Signatures are checked when `webhook_secret` is configured."""
        body = decode_json_object(callback.body)
        if body is None or not self.is_signed(callback, "x-sonatel-signature", b","):
            return None
        nested = body.get("transaction")
        transaction = nested if isinstance(nested, dict) else body
        return callback_reference(transaction.get("reference"), transaction.get("transactionId"))

    async def _listed(self, reference: str, kind: TransactionType) -> list[dict[str, Any]] | Unknown:
        """The transactions under our reference. An empty list proves nothing: it may lag."""
        result = await self._get("/api/eWallet/v1/transactions", {"reference": reference})
        rows = read_list(result)
        if rows is None:
            return Unknown(result.raw)
        return [row for row in rows if row.get("reference") == reference and row.get("type", kind) == kind]

    async def _encrypted_pin(self) -> str | NotProcessed:
        """The retailer's PIN, encrypted with Sonatel's current RSA key."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - large, and for payouts only
        from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: PLC0415

        result = await self._get("/api/account/v1/publicKeys")
        if result.lost:
            return NotProcessed(raw=ProviderAnswer.NO_PUBLIC_KEY(answer=result.raw))
        try:
            key = serialization.load_der_public_key(base64.b64decode(str((result.object() or {}).get("key", ""))))
        except (ValueError, binascii.Error):
            return NotProcessed(raw=ProviderAnswer.NO_PUBLIC_KEY(answer=result.status))
        if not isinstance(key, rsa.RSAPublicKey):
            return NotProcessed("configuration", ProviderAnswer.NOT_RSA())
        return base64.b64encode(key.encrypt((self._retailer_pin or "").encode(), padding.PKCS1v15())).decode()

    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> ProviderResponse:
        """Sonatel wants the content type on a GET as well."""
        return await self._tokens.send("GET", path, query=query, headers={"Content-Type": "application/json"})

    async def _post(self, call: str, body: Mapping[str, object]) -> ProviderResponse:
        return await self._tokens.send("POST", f"/api/eWallet/v1/{call}", json=body)


def _registered(setup: AccountSetup, result: ProviderResponse) -> Finding:
    subject = AccountSubject.REGISTERED_CALLBACK()
    if result.status == 404:
        return wrong(subject, AccountFinding.NOT_REGISTERED())
    if not result.ok:
        return wrong(subject, verbatim(result.raw))
    return callback_address_is_ours(subject, callback_url(result), setup)


def callback_url(response: ProviderResponse) -> object:
    """The address in an object, or in a list of one."""
    value = response.value()
    return value_at(value[0] if isinstance(value, list) and value else value, "callbackUrl")


def _customer(phone_number: str | None) -> dict[str, object]:
    return {"idType": "MSISDN", "id": (phone_number or "").removeprefix(SENEGAL)}
