"""FeexPay v2: all nineteen networks and cards over one account (docs/providers/feexpay.md).

No idempotency key, unsigned webhooks, no refund endpoint: a lost answer is found again in the history by
`callback_info` (our reference), a callback is only a hint, a refund is a payout.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from guichet.clock import DAY, Clock, Instant, iso
from guichet.domain.reconciliation import Line
from guichet.http_client import HttpClient
from guichet.providers.base import (
    CARDS,
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
    parse_callback_json,
    plain_text,
    text,
    unclear,
    units,
)
from guichet.providers.feexpay_history import read_history

REQUIRED: Final = ("api_key", "shop")
#: Everything settles in XOF but Congo.
_CURRENCIES: Final = {"mtn_cg": "XAF"}
_MIN_PAYIN: Final = 100_00
#: Path and `network` label of the payout that serves as a refund; every other code has a path of its own name.
_PAYOUTS: Final[dict[str, tuple[str, str | None]]] = {
    "mtn": ("transfer/global", "MTN"),
    "moov": ("transfer/global", "MOOV"),
    "celtiis_bj": ("celtiis_bj", "CELTIIS BJ"),
    "togocom_tg": ("togo", "TOGOCOM TG"),
    "moov_tg": ("togo", "MOOV TG"),
}
_NO_PAYOUT: Final = CARDS | {"coris"}
#: A payin without its code has the code texted here (docs/providers/feexpay.md, "Initiating a payment");
#: anywhere else it would be a debit.
_TEXTS_CODES: Final = frozenset({"coris"})
_REASONS: Final = {
    "LOW_BALANCE": "insufficient_funds",
    "NOT_ENOUGH_FUNDS": "insufficient_funds",
    "INSUFFICIENT": "insufficient_funds",
    "PAYER_NOT_FOUND": "payer_not_found",
    "INVALID_PHONE": "payer_not_found",
    "RESEAU": "payer_not_found",
    "REJECTED": "rejected_by_payer",
    "CANCEL": "rejected_by_payer",
    "EXPIRED": "expired",
    "OTP": "bad_otp",
    "LIMIT": "limit_reached",
    "DECLINED": "declined",
}
#: Five hundred rows, the most there are in one answer, with room to spare; bytes.
_HISTORY: Final = 1024 * 1024
_FAILED: Final = frozenset({"FAILED", "CANCELLED", "REJECTED", "EXPIRED"})
_SUCCESSFUL: Final = frozenset({"SUCCESSFUL", "SUCCESS"})


class FeexPay:
    remote = True

    def __init__(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        self._http = ProviderClient(http_client, connection.base_url)
        self._shop = connection.settings["shop"]
        self._headers = {"Authorization": f"Bearer {connection.settings['api_key']}"}
        self._clock = clock

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return operator not in _NO_PAYOUT

    async def initiate(self, charge: Charge) -> InitiationResult:
        if obstacle := _obstacle(charge):
            return obstacle
        if charge.operator in _TEXTS_CODES and not charge.otp:
            return Refused("bad_otp", "no code was given")
        card = charge.operator in CARDS
        path = "initcard" if card else f"requesttopay/{charge.operator}"
        body = self._card(charge) if card else self._payin(charge)
        return self._taken(await self._post(f"/api/transactions/public/{path}", body))

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        if charge.operator not in _TEXTS_CODES:
            return NotProcessed("configuration", f"FeexPay texts no code for {charge.operator}")
        if obstacle := _obstacle(charge):
            return obstacle
        body = self._payin(structs.replace(charge, otp=None))
        return _texted(await self._post(f"/api/transactions/public/requesttopay/{charge.operator}", body))

    async def status(self, charge: Charge) -> StatusResult:
        reference = charge.provider_reference or await self._search(charge.reference, charge.created_at, "PAYIN")
        if isinstance(reference, Unknown):
            return reference
        reply = await self._get(f"/api/transactions/public/single/status/{reference}")
        return _outcome(reply, reference, _currency(charge.operator))

    async def refund(self, reversal: Reversal) -> InitiationResult:
        operator = reversal.charge.operator
        path, label = _PAYOUTS.get(operator, (operator, None))
        body: dict[str, object] = {
            "shop": self._shop,
            "amount": units(reversal.amount),
            "phoneNumber": reversal.charge.phone_number,
            "motif": "Remboursement",
            "callback_info": reversal.reference,
        }
        if label:
            body["network"] = label
        return self._taken(await self._post(f"/api/payouts/public/{path}", body))

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        sent_at = reversal.sent_at or self._clock.now()
        reference = reversal.provider_reference or await self._search(reversal.reference, sent_at, "PAYOUT")
        if isinstance(reference, Unknown):
            return reference
        reply = await self._get(f"/api/payouts/status/public/{reference}")
        return _outcome(reply, reference, _currency(reversal.charge.operator))

    async def probe(self) -> str:
        """Something harmless, for `guichet providers check`: the shop's balances."""
        reply = await self._get(f"/api/balance/public/getByShop/{self._shop}")
        return "ok" if isinstance(reply, ProviderResponse) and reply.ok else reply.raw

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """Unsigned: whoever calls, the operator is asked."""
        body = parse_callback_json(callback) or {}
        ours, theirs = text(body.get("callback_info")), text(body.get("reference")) or text(body.get("order_id"))
        if not ours and not theirs:
            return None
        kind = "refund" if "payout" in str(body.get("type", "")).lower() else "payment"
        return CallbackReference(kind, ours, theirs)

    def _payin(self, charge: Charge) -> dict[str, object]:
        body: dict[str, object] = {
            "shop": self._shop,
            "amount": units(charge.amount),
            "phoneNumber": charge.phone_number,
            "description": plain_text(charge.description, 60),
            "callback_info": charge.reference,
        }
        optional = {
            "first_name": charge.firstname and plain_text(charge.firstname, 60),
            "last_name": charge.lastname and plain_text(charge.lastname, 60),
            "email": charge.email,
            "otp": charge.otp,
            "return_url": charge.return_url,
        }
        return body | {name: value for name, value in optional.items() if value}

    def _card(self, charge: Charge) -> dict[str, object]:
        return {
            "shop": self._shop,
            "amount": units(charge.amount),
            "phone": charge.phone_number or "0",
            "first_name": plain_text(charge.firstname or "", 60),
            "last_name": plain_text(charge.lastname or "", 60),
            "email": charge.email,
            "country": charge.country,
            "type_card": charge.operator,
            "currency": charge.currency,
            "description": plain_text(charge.description, 60),
            "callback_info": charge.reference,
            **(
                {"success_redirect_url": charge.return_url, "error_redirect_url": charge.return_url}
                if charge.return_url
                else {}
            ),
        }

    def _taken(self, reply: ProviderResponse | NotProcessed | Unknown) -> InitiationResult:
        """Some networks answer a final status here; it is not believed but asked about at once."""
        if not isinstance(reply, ProviderResponse):
            return reply
        if reply.ok:
            body = reply.object() or {}
            reference = body.get("reference") or body.get("transref") or body.get("order_id")
            if not reference:
                return Unknown(reply.raw)
            page = body.get("payment_url") or body.get("url")
            final = str(body.get("status", "")).upper() in _FAILED | _SUCCESSFUL
            return Accepted(str(reference), page, next_poll_at=self._clock.now() if final else None)
        return _refusal(reply)

    async def _search(self, ours: str, sent_at: Instant, kind: str) -> str | Unknown:
        """The operator's reference of what we sent as `callback_info`, from the history of the days around it.

        Not being there concludes nothing: an answer holds five hundred rows, and may lag.
        """
        body = {
            "shop": self._shop,
            "type": kind,
            "start_date": iso(sent_at - DAY)[:10],
            "end_date": iso(sent_at + DAY)[:10],
        }
        reply = await self._ask_history(body)
        if not isinstance(reply, ProviderResponse):
            return unclear(reply)
        rows = (reply.object() or {}).get("data") if reply.ok else None
        if isinstance(rows, list):
            for row in rows:
                if isinstance(row, dict) and row.get("callback_info") == ours and row.get("reference"):
                    return str(row["reference"])
        return Unknown(f"not in the history: {reply.raw[:80]}")

    async def history(self, since: Instant, until: Instant) -> list[Line] | Unknown:
        return await read_history(self._ask_history, self._shop, since, until)

    async def _ask_history(self, body: Mapping[str, object]) -> ProviderResponse | NotProcessed | Unknown:
        path = "/api/transactions/history"
        return await self._http.send("POST", path, json=body, headers=self._headers, max_bytes=_HISTORY)

    async def _post(self, path: str, body: Mapping[str, object]) -> ProviderResponse | NotProcessed | Unknown:
        return await self._http.send("POST", path, json=body, headers=self._headers)

    async def _get(self, path: str) -> ProviderResponse | NotProcessed | Unknown:
        return await self._http.send("GET", path, headers=self._headers)


def _currency(operator: str) -> str:
    return _CURRENCIES.get(operator, "XOF")


def _obstacle(charge: Charge) -> NotProcessed | None:
    """Why a payin is never sent."""
    if charge.amount < _MIN_PAYIN:
        return NotProcessed("limit_reached", "FeexPay takes no payin below 100")
    if charge.currency != _currency(charge.operator):
        return NotProcessed("configuration", f"FeexPay does not take {charge.currency} for {charge.operator}")
    return None


def _texted(reply: ProviderResponse | NotProcessed | Unknown) -> OtpRequestResult:
    """The shape of this answer is nowhere written down: any success counts unless it says that it failed."""
    if not isinstance(reply, ProviderResponse):
        return reply
    if not reply.ok:
        return _refusal(reply)
    body = reply.object()
    if body is None:
        return Unknown(reply.raw)
    if str(body.get("status", "")).upper() in _FAILED:
        return Refused(_reason(str(body.get("reason") or body.get("message") or "")), reply.raw)
    return Accepted()


def _refusal(reply: ProviderResponse) -> Refused | NotProcessed | Unknown:
    """An explicit no at initiation; a duplicate or an incident is no answer at all.

    Source: docs/providers/feexpay.md, "Errors".
    """
    body = reply.object()
    code = str((body or {}).get("code", ""))
    if body is None or code == "ERR_DUPLICATE_TRANSACTION":
        return Unknown(reply.raw)
    if code == "ERR_PAYOUT_NOT_ENABLED":
        return Refused("no_refund", reply.raw)
    if common := classify_http_error(reply):
        return common
    if reply.status == 404:
        return NotProcessed("configuration", reply.raw)
    if reply.status in (400, 405, 422):
        return Refused(_reason(f"{code} {body.get('message', '')}"), reply.raw)
    return Unknown(reply.raw)


def _outcome(reply: ProviderResponse | NotProcessed | Unknown, reference: str, currency: str) -> StatusResult:
    if not isinstance(reply, ProviderResponse):
        return unclear(reply)
    body: dict[str, Any] = (reply.object() or {}) if reply.ok else {}
    status = str(body.get("status", "")).upper()
    if status in _SUCCESSFUL:
        return Succeeded(hundredths(body.get("amount")), currency, reference)
    if status in _FAILED:
        return Refused(_reason(str(body.get("reason") or body.get("responsemsg") or "")), reply.raw)
    return Accepted(reference) if body else Unknown(reply.raw)


def _reason(text: str) -> str:
    upper = text.upper()
    return next((reason for mark, reason in _REASONS.items() if mark in upper), "refused")
