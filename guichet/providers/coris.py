"""Coris Money: a code by SMS, one synchronous call with everything in the query (docs/providers/coris.md).

No reference of ours travels, nothing is idempotent, nothing notifies, nothing refunds. A lost answer can never be asked
about: it stays unknown until a person has looked.
"""

import hashlib
from typing import Final

from guichet.clock import Clock, Instant
from guichet.http_client import HttpClient
from guichet.providers.base import (
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    OtpRequestResult,
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
    hundredths,
    text,
    unclear,
    units,
)

REQUIRED: Final = ("client_id", "client_secret", "code_pv")
OPTIONAL: Final = ("code_pays",)
OPERATOR: Final = "coris"
_CURRENCY: Final = "XOF"
_BENIN: Final = "229"
_REASONS: Final = {
    "OTP": "bad_otp",
    "INSUFFISANT": "insufficient_funds",
    "INEXISTANT": "payer_not_found",
    "PLAFOND": "limit_reached",
}
#: Refusals that concern our account: nothing was taken.
_OURS: Final = ("SERVICE NON AUTORISE", "HASH", "PARAMETRE")


class Coris:
    remote = True

    def __init__(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        """`base_url` ends with `/external/v1/api`."""
        settings = connection.settings
        self._http = ProviderClient(http_client, connection.base_url)
        self._client = settings["client_id"]
        self._secret = settings["client_secret"]
        self._point_of_sale = settings["code_pv"]
        self._country = settings.get("code_pays") or _BENIN

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return False

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        if not _serves(charge):
            return NotProcessed("configuration", f"Coris does not take {charge.operator} in {charge.currency}")
        query = {"codePays": self._country, "telephone": self._national(charge.phone_number or "")}
        reply = await self._call("POST", "/send-code-otp", query)
        if not isinstance(reply, ProviderResponse):
            return reply
        return classify_http_error(reply) or _sent(reply)

    async def initiate(self, charge: Charge) -> InitiationResult:
        phone = charge.phone_number or ""
        if not _serves(charge):
            return NotProcessed("configuration", f"Coris does not take {charge.operator} in {charge.currency}")
        if not charge.otp:
            return Refused("bad_otp", "no code was given")
        query = {
            "codePays": self._country,
            "telephone": self._national(phone),
            "codePv": self._point_of_sale,
            "montant": str(units(charge.amount)),
            "codeOTP": charge.otp,
        }
        reply = await self._call("POST", "/operations/paiement-bien", query)
        if not isinstance(reply, ProviderResponse):
            return reply
        return classify_http_error(reply) or _outcome(reply)

    async def status(self, charge: Charge) -> StatusResult:
        if charge.provider_reference is None:
            return Unknown("Coris knows no reference of ours: its own books must be looked at")
        query = {"codeOperation": charge.provider_reference}
        reply = await self._call("GET", "/operations/transaction-status", query)
        answer = _outcome(reply) if isinstance(reply, ProviderResponse) and reply.ok else unclear_reply(reply)
        # It was paid once: whatever else this loosely documented call says cannot undo that.
        return answer if isinstance(answer, Succeeded) else Unknown(answer.raw)

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return Refused("no_refund")

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return Unknown("Coris refunds nothing")

    async def probe(self) -> str:
        """A question about a customer who does not exist: any business answer means that the account is right."""
        reply = await self._call("GET", "/infos-client", {"codePays": self._country, "telephone": "0100000000"})
        body = reply.object() if isinstance(reply, ProviderResponse) and reply.ok else None
        return "ok" if body is not None and "HASH" not in _message(body) else reply.raw

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        return None

    def _national(self, phone: str) -> str:
        return phone.removeprefix(self._country)

    async def _call(self, method: str, path: str, query: dict[str, str]) -> ProviderResponse | NotProcessed | Unknown:
        """The hash covers the values in the order in which they are sent."""
        proof = hashlib.sha256("".join((*query.values(), self._secret)).encode()).hexdigest()
        headers = {"clientId": self._client, "hashParam": proof, "Content-Type": "application/json"}
        return await self._http.send(method, path, query=query, headers=headers)


def unclear_reply(reply: ProviderResponse | NotProcessed | Unknown) -> Unknown:
    return Unknown(reply.raw) if isinstance(reply, ProviderResponse) else unclear(reply)


def _serves(charge: Charge) -> bool:
    return charge.operator == OPERATOR and charge.currency == _CURRENCY


def _message(body: dict[str, object]) -> str:
    return str(body.get("message") or body.get("msg") or "").upper()


def _outcome(reply: ProviderResponse) -> Succeeded | Refused | NotProcessed | Unknown:
    """HTTP is 200 for refusals too. Code 1 is an error of theirs: what it did is not said."""
    body = reply.object() or {}
    code, message = str(body.get("code", "")), _message(body)
    theirs = text(body.get("transactionId"))
    if reply.ok and code == "0" and theirs:
        return Succeeded(hundredths(body.get("montant")), _CURRENCY, theirs)
    if code != "-1" or theirs:
        return Unknown(reply.raw)
    return _refusal(message, reply.raw)


def _sent(reply: ProviderResponse) -> OtpRequestResult:
    """A code on its way is announced by a text alone, without a code of result."""
    body = reply.object() or {}
    code = str(body.get("code", "0" if body.get("text") else ""))
    if reply.ok and code == "0":
        return Accepted()
    return _refusal(_message(body), reply.raw) if code == "-1" else Unknown(reply.raw)


def _refusal(message: str, raw: str) -> Refused | NotProcessed:
    if any(mark in message for mark in _OURS):
        return NotProcessed("configuration", raw)
    return Refused(next((reason for mark, reason in _REASONS.items() if mark in message), "refused"), raw)
