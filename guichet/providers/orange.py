"""Orange Money Web Payment: Orange's own page, one connection per country (docs/providers/orange.md).

A status is asked by order, amount and `pay_token` together: if the answer that carried the token is lost, nobody can
ask any more, nobody has the page either, and the payment waits for a person. There is no refund here.
"""

import base64
from functools import partial
from typing import Final
from uuid import UUID

from guichet.clock import Clock, Instant
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
    parse_callback_json,
    return_page,
    text,
    unclear,
    units,
)
from guichet.providers.oauth import AccessTokens, Outcome

REQUIRED: Final = ("country", "client_id", "client_secret", "merchant_key")
OPTIONAL: Final = ("oauth_path", "currency", "merchant_name", "return_url")
_LONGEST_URL: Final = 120
_OAUTH: Final = "/oauth/v3/token"
_TOKEN_TIMEOUT: Final = 8.0
#: Error codes of a 400 or 403 that concern our account; 1204 says that this order is known already.
_OURS: Final = frozenset({50, 53, 1202, 1203})
_TAKEN_BEFORE: Final = 1204
_PENDING: Final = frozenset({"INITIATED", "PENDING"})


class Orange:
    remote = True

    def __init__(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        settings = connection.settings
        self._country = settings["country"].lower()
        self._merchant_key = settings["merchant_key"]
        self._currency = settings.get("currency") or "XOF"
        self._name = settings.get("merchant_name")
        self._return_url = settings.get("return_url")
        self._oauth = settings.get("oauth_path") or _OAUTH
        pair = f"{settings['client_id']}:{settings['client_secret']}"
        self._basic = base64.b64encode(pair.encode()).decode()
        self._http = ProviderClient(http_client, connection.base_url)
        self._tokens = AccessTokens(clock, self._fetch_token)

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return False

    async def initiate(self, charge: Charge) -> InitiationResult:
        page, notify = return_page(charge, self._return_url, _LONGEST_URL), charge.callback_url
        wrong_route = self._country != "dev" and charge.operator != f"orange_{self._country}"
        if wrong_route or charge.currency != "XOF":
            return NotProcessed("configuration", f"{self._country}: no {charge.operator} in {charge.currency}")
        if page is None or notify is None or len(notify) > _LONGEST_URL:
            return NotProcessed("configuration", "the return or notification address is missing or too long")
        body: dict[str, object] = {
            "merchant_key": self._merchant_key,
            "currency": self._currency,
            "order_id": order_id(charge.reference),
            "amount": units(charge.amount),
            "return_url": page,
            "cancel_url": page,
            "notif_url": notify,
            "lang": "fr",
        }
        if self._name:
            body["reference"] = self._name
        return _taken(await self._post("webpayment", body), order_id(charge.reference))

    async def status(self, charge: Charge) -> StatusResult:
        token = charge.provider_data.get("pay_token")
        if not token:
            return Unknown("the answer that carried the pay_token was lost")
        order = order_id(charge.reference)
        body: dict[str, object] = {"order_id": order, "amount": units(charge.amount), "pay_token": token}
        reply = await self._post("transactionstatus", body)
        if not isinstance(reply, ProviderResponse):
            return unclear(reply)
        answer = (reply.object() or {}) if reply.ok else {}
        state = str(answer.get("status", "")).upper()
        if answer.get("order_id", order) != order:
            return Unknown(f"about another order: {reply.raw}")
        if state == "SUCCESS":
            # Orange finds a transaction by its amount, so its success states that amount.
            return Succeeded(charge.amount, charge.currency, text(answer.get("txnid")) or order)
        if state in ("FAILED", "EXPIRED"):
            return Refused("expired" if state == "EXPIRED" else "rejected_by_payer", reply.raw)
        return Accepted(order) if state in _PENDING else Unknown(reply.raw)

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return Refused("no_refund")

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return Unknown("Orange Web Payment refunds nothing")

    async def probe(self) -> str:
        """A question about an order that does not exist: the account is right if Orange looks for it."""
        nothing: dict[str, object] = {"order_id": "probe", "amount": 1, "pay_token": "probe"}
        reply = await self._post("transactionstatus", nothing)
        looked = isinstance(reply, ProviderResponse) and reply.status < 500 and reply.status not in (401, 403, 429)
        return "ok" if looked else reply.raw

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Unsigned. It names nothing of ours: our reference is in its address, `notif_token` proves little."""
        body = parse_callback_json(callback)
        if body is None or not body.get("notif_token"):
            return None
        return CallbackReference("payment", None, text(body.get("order_id")))

    async def _post(self, what: str, body: dict[str, object]) -> Outcome:
        return await self._tokens.call(partial(self._send, what, body))

    async def _send(self, what: str, body: dict[str, object], token: str) -> Outcome:
        path = f"/orange-money-webpay/{self._country}/v1/{what}"
        return await self._http.send("POST", path, json=body, headers={"Authorization": f"Bearer {token}"})

    async def _fetch_token(self) -> Outcome:
        headers = {"Authorization": f"Basic {self._basic}"}
        form = {"grant_type": "client_credentials"}
        return await self._http.send("POST", self._oauth, form=form, headers=headers, timeout=_TOKEN_TIMEOUT)


def order_id(reference: str) -> str:
    """Our reference in 26 characters: Orange takes 30 and a UUID has 36. One reference, one order."""
    return base64.b32encode(UUID(reference).bytes).decode().rstrip("=")


def _taken(reply: Outcome, order: str) -> InitiationResult:
    if not isinstance(reply, ProviderResponse):
        return reply
    body = reply.object() or {}
    token, page = text(body.get("pay_token")), text(body.get("payment_url"))
    if reply.ok:
        provider_data = {"pay_token": token or "", "notif_token": text(body.get("notif_token")) or ""}
        return Accepted(order, page, provider_data) if token and page else Unknown(reply.raw)
    code = body.get("code")
    if reply.status in (400, 403) and code == 1201:
        return Refused("refused", reply.raw)
    if reply.status in (400, 403) and code in _OURS:
        return NotProcessed("configuration", reply.raw)
    if common := classify_http_error(reply):
        return common
    known = reply.status == 400 and isinstance(code, int) and code != _TAKEN_BEFORE
    return Refused("refused", reply.raw) if known else Unknown(reply.raw)
