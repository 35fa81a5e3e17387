"""Coris Money: a code by SMS, then one synchronous call with all parameters in the query (docs/providers/coris.md).

None of our references is sent, repeats are not recognised, there are no callbacks and no refunds. When the response to
a payment is lost nothing can be asked: the payment stays pending until staff have looked.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import MINUTE
from guichet.domain.failures import RefusalReason
from guichet.domain.messages import Answer, verbatim
from guichet.domain.money import Currency
from guichet.providers.base import (
    Accepted,
    Charge,
    InitiationResult,
    NotProcessed,
    OtpRequestResult,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.shared.account_checks import AccountSetup, Finding, no_call, probed
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import HttpProvider, ProviderResponse
from guichet.providers.shared.fields import hundredths, text_or_none, units
from guichet.providers.shared.results import classify_http_error, find_reason

OPERATOR: Final = "coris"
_CURRENCY: Final = "XOF"
#: The dialling code of Bénin.
_BENIN: Final = "229"
#: A part of the message of a refusal, and what it means.
_REASONS: Final[dict[str, RefusalReason]] = {
    "OTP": "bad_otp",
    "INSUFFISANT": "insufficient_funds",
    "INEXISTANT": "payer_not_found",
    "PLAFOND": "limit_reached",
}
#: Parts of messages that concern our account: nothing was taken.
_ACCOUNT_ERRORS: Final = ("SERVICE NON AUTORISE", "HASH", "PARAMETRE")
#: The values of `code`. 1 is an error of theirs that does not say what happened.
_DONE: Final = "0"
_REFUSED: Final = "-1"


class Coris(HttpProvider):
    #: Its code is good for as long, and it answers at once.
    prompt_lasts = 5 * MINUTE
    account_settings = ("client_id", "code_pv")

    def configure(self, settings: Mapping[str, str]) -> None:
        """`base_url` must end with `/external/v1/api`."""
        self._client_id = settings["client_id"]
        self._client_secret = settings["client_secret"]
        self._point_of_sale = settings["code_pv"]
        self._country = settings.get("code_pays") or _BENIN

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        if unserved := self.refuse_unserved(charge, "Coris"):
            return unserved
        result = await self._call("POST", "/send-code-otp", self._customer(charge))
        return classify_http_error(result) or _read_code_sent(result)

    def takes(self, operator: str, currency: Currency) -> bool:
        return operator == OPERATOR and currency == _CURRENCY

    async def initiate(self, charge: Charge) -> InitiationResult:
        if unserved := self.refuse_unserved(charge, "Coris"):
            return unserved
        if not charge.otp:
            return Refused("bad_otp", ProviderAnswer.NO_CODE_GIVEN())
        query = {
            **self._customer(charge),
            "codePv": self._point_of_sale,
            "montant": str(units(charge.amount)),
            "codeOTP": charge.otp,
        }
        result = await self._call("POST", "/operations/paiement-bien", query)
        return classify_http_error(result) or _read_payment(result)

    async def status(self, charge: Charge) -> StatusResult:
        """Only for a payment whose response said that it was paid: nothing this call says can undo that."""
        if charge.payment.provider_reference is None:
            return Unknown(ProviderAnswer.REFERENCES_UNKNOWN())
        query = {"codeOperation": charge.payment.provider_reference}
        result = await self._call("GET", "/operations/transaction-status", query)
        payment = _read_payment(result)
        return payment if isinstance(payment, Succeeded) else Unknown(payment.raw)

    async def probe(self) -> Answer:
        """Asks about a customer who does not exist: any business answer shows that the account is right."""
        result = await self._call("GET", "/infos-client", {"codePays": self._country, "telephone": "0100000000"})
        body = result.object() if result.ok else None
        return "ok" if body is not None and "HASH" not in _message(body) else result.raw

    async def check_account(self, setup: AccountSetup) -> list[Finding]:
        return [
            probed(await self.probe(), AccountFinding.HASH_ACCEPTED()),
            no_call(verbatim("code_pv"), AccountFinding.ONLY_BY_PAYMENT()),
            no_call(AccountSubject.LIMITS_AND_BALANCE(), AccountFinding.CORIS_TELLS_NONE()),
        ]

    def _customer(self, charge: Charge) -> dict[str, str]:
        national_number = (charge.payment.phone_number or "").removeprefix(self._country)
        return {"codePays": self._country, "telephone": national_number}

    async def _call(self, method: str, path: str, query: dict[str, str]) -> ProviderResponse:
        """The hash covers the values in the order in which they are sent, then the secret."""
        digest = hashlib.sha256("".join((*query.values(), self._client_secret)).encode()).hexdigest()
        headers = {"clientId": self._client_id, "hashParam": digest, "Content-Type": "application/json"}
        return await self._http.send(method, path, query=query, headers=headers)


def _message(body: dict[str, Any]) -> str:
    return str(body.get("message") or body.get("msg") or "").upper()


def _read_payment(response: ProviderResponse) -> Succeeded | Refused | NotProcessed | Unknown:
    """The response to a payment or to a status call: 200 for refusals too."""
    body = response.object() or {}
    code, transaction_id = str(body.get("code", "")), text_or_none(body.get("transactionId"))
    if response.ok and code == _DONE and transaction_id:
        return Succeeded(hundredths(body.get("montant")), _CURRENCY, transaction_id)
    if code != _REFUSED or transaction_id:
        return Unknown(response.raw)
    return _read_refusal(body, response.raw)


def _read_code_sent(response: ProviderResponse) -> OtpRequestResult:
    """When the code is sent, the response has a text and no `code`."""
    body = response.object() or {}
    code = str(body.get("code", _DONE if body.get("text") else ""))
    if response.ok and code == _DONE:
        return Accepted()
    return _read_refusal(body, response.raw) if code == _REFUSED else Unknown(response.raw)


def _read_refusal(body: dict[str, Any], raw: Answer) -> Refused | NotProcessed:
    message = _message(body)
    if any(part in message for part in _ACCOUNT_ERRORS):
        return NotProcessed("configuration", raw)
    return Refused(find_reason(_REASONS, message), raw)
