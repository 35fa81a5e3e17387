"""MTN MoMo Open API: one connection per country, collection and disbursement (docs/providers/mtn.md).

Our reference is the X-Reference-Id: a repeat is answered 409 and never charges twice. So a request that MTN says it
never received may be sent again under the same id while the customer is still waiting for it.
"""

import base64
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from guichet.clock import MINUTE, Clock, Instant
from guichet.http_client import HttpClient
from guichet.providers.base import (
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
    hundredths,
    parse_callback_json,
    plain_text,
    text,
    unclear,
    units,
)
from guichet.providers.oauth import AccessTokens, Outcome

REQUIRED: Final = ("target_env", "subscription_key", "api_user", "api_key")
OPTIONAL: Final = ("disbursement_subscription_key", "disbursement_api_user", "disbursement_api_key", "refund_via")

#: Target environment → the operator code it serves (None: any, the sandbox) and its only currency.
_ENVIRONMENTS: Final[dict[str, tuple[str | None, str]]] = {
    "mtnbenin": ("mtn", "XOF"),
    "mtnivorycoast": ("mtn_ci", "XOF"),
    "mtncongo": ("mtn_cg", "XAF"),
    "sandbox": (None, "EUR"),
}
#: A lost request is sent again for this long; later the customer has gone.
_RESEND_WITHIN: Final = 2 * MINUTE
#: What MTN does not know by then it never received: a request expires after five minutes.
_NEVER_TAKEN_AFTER: Final = 15 * MINUTE
_REASONS: Final = {
    "NOT_ENOUGH_FUNDS": "insufficient_funds",
    "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED": "insufficient_funds",
    "PAYER_NOT_FOUND": "payer_not_found",
    "SENDER_ACCOUNT_NOT_ACTIVE": "payer_not_found",
    "PAYEE_NOT_FOUND": "payer_not_found",
    "PAYER_LIMIT_REACHED": "limit_reached",
    "PAYEE_LIMIT_REACHED": "limit_reached",
    "APPROVAL_REJECTED": "rejected_by_payer",
    "PAYMENT_NOT_APPROVED": "rejected_by_payer",
    "TRANSACTION_CANCELED": "rejected_by_payer",
    "EXPIRED": "expired",
    "COULD_NOT_PERFORM_TRANSACTION": "expired",
    "PAYEE_NOT_ALLOWED_TO_RECEIVE": "configuration",
    "INTERNAL_PROCESSING_ERROR": "operator_unavailable",
    "SERVICE_UNAVAILABLE": "operator_unavailable",
}
#: Codes by which MTN says that the account, not the customer, is at fault: it took nothing.
_OURS: Final = frozenset(
    {"NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY"}
)
#: Codes that an incident carries too: at initiation they conclude nothing.
_INCIDENTS: Final = frozenset({"INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE"})
_FAILED: Final = frozenset({"FAILED", "REJECTED", "TIMEOUT"})
_PENDING: Final = frozenset({"PENDING", "CREATED", "ONGOING", "DELAYED"})
_LONGEST_TEXT: Final = 60
_TOKEN_TIMEOUT: Final = 8.0


class Mtn:
    remote = True

    def __init__(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        """Raises ValueError for a target environment or a `refund_via` that does not exist."""
        settings = connection.settings
        self._env = settings["target_env"]
        if self._env not in _ENVIRONMENTS:
            raise ValueError(f"target_env must be one of {', '.join(_ENVIRONMENTS)}")
        self._operator, self._currency = _ENVIRONMENTS[self._env]
        self._refund_via = settings.get("refund_via") or "refund"
        if self._refund_via not in ("refund", "transfer"):
            raise ValueError("refund_via must be refund or transfer")
        self._clock = clock
        http = ProviderClient(http_client, connection.base_url)
        self._collection = _Product(http, clock, "collection", self._env, settings, "")
        self._disbursement = (
            _Product(http, clock, "disbursement", self._env, settings, "disbursement_")
            if settings.get("disbursement_subscription_key")
            else None
        )

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        """What was collected elsewhere can only be transferred."""
        serves = self._operator in (None, operator)
        return serves and self._disbursement is not None and (collected_here or self._refund_via == "transfer")

    async def initiate(self, charge: Charge) -> InitiationResult:
        if self._operator not in (None, charge.operator) or charge.currency != self._currency:
            return NotProcessed("configuration", f"{self._env} does not take {charge.operator} in {charge.currency}")
        body = {
            **self._text(charge.reference, charge.amount, charge.description),
            "payer": {"partyIdType": "MSISDN", "partyId": charge.phone_number},
        }
        reply = await self._collection.post("requesttopay", charge.reference, body, charge.callback_url)
        return _taken(reply, charge.reference)

    async def status(self, charge: Charge) -> StatusResult:
        reply = await self._collection.get(f"requesttopay/{charge.reference}")
        if not _is_not_found(reply) or charge.provider_reference is not None:
            return _outcome(reply, charge.reference)
        age = self._clock.now() - charge.created_at
        if age < _RESEND_WITHIN:
            return _as_status(await self.initiate(charge))
        if age >= _NEVER_TAKEN_AFTER:
            return Refused("operator_unavailable", "MTN never received the request")
        return Unknown("MTN does not know the request")

    async def refund(self, reversal: Reversal) -> InitiationResult:
        if self._disbursement is None:
            return Refused("no_refund")
        charge = reversal.charge
        body = self._text(reversal.reference, reversal.amount, "Remboursement")
        party: dict[str, object] = {"payee": {"partyIdType": "MSISDN", "partyId": charge.phone_number}}
        body |= {"referenceIdToRefund": charge.reference} if self._refund_via == "refund" else party
        reply = await self._disbursement.post(self._refund_via, reversal.reference, body, charge.callback_url)
        return _taken(reply, reversal.reference)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        """A disbursement that MTN never received is sent again: the same id cannot pay twice."""
        if self._disbursement is None:
            return Unknown("the connection has no disbursement account")
        reply = await self._disbursement.get(f"{self._refund_via}/{reversal.reference}")
        if _is_not_found(reply) and reversal.provider_reference is None:
            return _as_status(await self.refund(reversal))
        return _outcome(reply, reversal.reference)

    async def probe(self) -> str:
        for product in (self._collection, self._disbursement):
            reply = await product.get("account/balance") if product else None
            if reply is not None and not (isinstance(reply, ProviderResponse) and reply.ok):
                return f"{product.name if product else ''}: {reply.raw}"
        return "ok"

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """The body is unsigned and names nothing but our own externalId; our reference is in the path as well."""
        body = parse_callback_json(callback)
        if body is None or "status" not in body:
            return None
        kind = "refund" if "payee" in body else "payment"
        return CallbackReference(kind, text(body.get("externalId")))

    def _text(self, reference: str, amount: int, words: str) -> dict[str, object]:
        plain = plain_text(words, _LONGEST_TEXT)
        return {
            "amount": str(units(amount)),
            "currency": self._currency,
            "externalId": reference,
            "payerMessage": plain,
            "payeeNote": plain,
        }


class _Product:
    """Collection or Disbursement: its own subscription key, user and token."""

    def __init__(
        self, http: ProviderClient, clock: Clock, name: str, env: str, settings: Mapping[str, str], prefix: str
    ) -> None:
        self.name = name
        self._http = http
        self._key = settings[f"{prefix}subscription_key"]
        self._env = env
        user = settings.get(f"{prefix}api_user") or settings["api_user"]
        secret = settings.get(f"{prefix}api_key") or settings["api_key"]
        self._basic = base64.b64encode(f"{user}:{secret}".encode()).decode()
        self._tokens = AccessTokens(clock, self._fetch_token)

    async def post(self, path: str, reference: str, body: Mapping[str, object], callback: str | None) -> Outcome:
        extra = {"X-Reference-Id": reference} | ({"X-Callback-Url": callback} if callback else {})
        return await self._tokens.call(partial(self._send, "POST", path, body, extra))

    async def get(self, path: str) -> Outcome:
        return await self._tokens.call(partial(self._send, "GET", path, None, {}))

    async def _send(
        self, method: str, path: str, body: Mapping[str, object] | None, extra: Mapping[str, str], token: str
    ) -> Outcome:
        headers = {
            "Authorization": f"Bearer {token}",
            "X-Target-Environment": self._env,
            "Ocp-Apim-Subscription-Key": self._key,
            **extra,
        }
        return await self._http.send(method, f"/{self.name}/v1_0/{path}", json=body, headers=headers)

    async def _fetch_token(self) -> Outcome:
        headers = {"Authorization": f"Basic {self._basic}", "Ocp-Apim-Subscription-Key": self._key}
        return await self._http.send("POST", f"/{self.name}/token/", headers=headers, timeout=_TOKEN_TIMEOUT)


def _taken(reply: Outcome, reference: str) -> InitiationResult:
    """The answer to a POST (docs/providers/mtn.md, "Errors"). 409 is our own request, received before."""
    if not isinstance(reply, ProviderResponse):
        return reply
    if reply.status in (202, 409):
        return Accepted(reference)
    return _refusal(reply) or classify_http_error(reply) or Unknown(reply.raw)


def _refusal(reply: ProviderResponse) -> Refused | NotProcessed | None:
    """What MTN refuses in so many words, in a 400 or under a business code in a 500."""
    code = str((reply.object() or {}).get("code", ""))
    if code in _OURS:
        return NotProcessed("configuration", reply.raw)
    if reply.status == 500 and code in _REASONS and code not in _INCIDENTS:
        return Refused(_REASONS[code], reply.raw)
    if reply.status == 404:
        return Refused("configuration", reply.raw) if code else NotProcessed("configuration", reply.raw)
    return Refused(_REASONS.get(code, "refused"), reply.raw) if reply.status == 400 else None


def _outcome(reply: Outcome, reference: str) -> StatusResult:
    if not isinstance(reply, ProviderResponse):
        return unclear(reply)
    body: dict[str, Any] = (reply.object() or {}) if reply.ok else {}
    status = str(body.get("status", "")).upper()
    if status == "SUCCESSFUL":
        operators_own = text(body.get("financialTransactionId"))
        return Succeeded(hundredths(body.get("amount")), text(body.get("currency")), operators_own or reference)
    if status in _FAILED:
        return Refused(_reason(body.get("reason")), reply.raw)
    return Accepted(reference) if status in _PENDING else Unknown(reply.raw)


def _reason(stated: object) -> str:
    """A string in practice, an object with a code in the documentation."""
    code = stated.get("code") if isinstance(stated, dict) else stated
    return _REASONS.get(str(code).upper(), "refused")


def _is_not_found(reply: Outcome) -> bool:
    if not isinstance(reply, ProviderResponse) or reply.status != 404:
        return False
    return (reply.object() or {}).get("code") == "RESOURCE_NOT_FOUND"


def _as_status(answer: InitiationResult) -> StatusResult:
    return Unknown(answer.raw) if isinstance(answer, NotProcessed) else answer
