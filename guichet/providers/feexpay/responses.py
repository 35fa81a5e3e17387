"""How FeexPay's responses become results (docs/providers/feexpay.md, "Errors")."""

from typing import Final

from msgspec.structs import replace

from guichet.clock import Instant
from guichet.domain.failures import RefusalReason
from guichet.providers.base import (
    Accepted,
    Charge,
    FloatEmpty,
    InitiationResult,
    NotProcessed,
    OtpRequestResult,
    RefundInitiationResult,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import (
    ProviderStatus,
    hundredths,
    parse_status_word,
    payer_not_echoed,
    status_words,
    text_or_none,
)
from guichet.providers.shared.listings import Body
from guichet.providers.shared.results import classify_http_error, find_reason, mark_ambiguous

#: Every other word means pending (docs/providers/README.md, "States").
STATUSES: Final = status_words(succeeded="SUCCESSFUL SUCCESS", failed="FAILED CANCELLED REJECTED EXPIRED")
#: A part of a code or of a message, and what it means.
_REASONS: Final[dict[str, RefusalReason]] = {
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
#: Parts of a refused payout's code or message that do not say whose money is meant: the networks' words for a payee who
#: may get no more, for FeexPay's own balance with them, and for ours with FeexPay.
_AMBIGUOUS: Final = ("LOW_BALANCE", "NOT_ENOUGH_FUNDS", "INSUFFICIENT", "INSUFFISANT", "INTERNAL_PROCESSING_ERROR")


def read_initiation(result: ProviderResponse, now: Instant) -> InitiationResult:
    """The response to a payin or a payout.

    Some networks state a final status here. It is not believed: the status is asked at once instead.
    """
    if not result.ok:
        return _read_refusal(result)
    body = result.ok_object()
    reference = body.get("reference") or body.get("transref") or body.get("order_id")
    if not reference:
        return Unknown(result.raw)
    page = text_or_none(body.get("payment_url")) or text_or_none(body.get("url"))
    final = parse_status_word(STATUSES, body.get("status")) is not None
    return Accepted(str(reference), page, next_poll_at=now if final else None)


def read_payout(result: ProviderResponse, now: Instant) -> RefundInitiationResult:
    """The response to a payout, which leaves our shop's balance."""
    if result.ok:
        return read_initiation(result, now)
    code = result.error_code()
    if code == "ERR_INSUFFICIENT_BALANCE":
        return FloatEmpty(result.raw)
    wording = f"{code} {(result.object() or {}).get('message', '')}"
    return mark_ambiguous(_read_refusal(result), _ambiguous_part(wording), _AMBIGUOUS)


def _ambiguous_part(wording: object) -> str:
    upper = str(wording).upper()
    return next((part for part in _AMBIGUOUS if part in upper), "")


def read_code_sent(result: ProviderResponse) -> OtpRequestResult:
    """FeexPay does not document this response: any 2xx with an object counts unless it says that it failed."""
    if not result.ok:
        return _read_refusal(result)
    body = result.object()
    if body is None:
        return Unknown(result.raw)
    if parse_status_word(STATUSES, body.get("status")) is ProviderStatus.FAILED:
        return Refused(find_reason(_REASONS, body.get("reason") or body.get("message") or ""), result.raw)
    return Accepted()


def _read_refusal(response: ProviderResponse) -> Refused | NotProcessed | Unknown:
    """An initiation that is not 2xx. A duplicate proves nothing about the first request."""
    body = response.object()
    code = response.error_code()
    if body is None or code == "ERR_DUPLICATE_TRANSACTION":
        return response.lost or Unknown(response.raw)
    if code == "ERR_PAYOUT_NOT_ENABLED":
        return Refused("no_refund", response.raw)
    if common := classify_http_error(response):
        return common
    if response.status == 404:
        return NotProcessed("configuration", response.raw)
    if response.status in (400, 405, 422):
        return Refused(find_reason(_REASONS, f"{code} {body.get('message', '')}"), response.raw)
    return Unknown(response.raw)


def is_about(result: ProviderResponse, reference: str) -> bool:
    """Whether a status states our reference: the proof that a transaction which a callback named is our payment."""
    return result.ok_object().get("callback_info") == reference


def is_about_another(result: ProviderResponse, reference: str) -> bool:
    """Whether a status states somebody else's reference. It may also state none."""
    stated_reference = result.ok_object().get("callback_info")
    return isinstance(stated_reference, str) and stated_reference not in ("", reference)


def read_payin(result: ProviderResponse, charge: Charge, reference: str, currency: str) -> StatusResult:
    """`read_status`, with the number that paid."""
    status = read_status(result, reference, currency)
    if isinstance(status, Succeeded):
        return replace(status, payer_number=payer_not_echoed(result.ok_object().get("phoneNumber"), charge))
    return status


def read_status(result: ProviderResponse, reference: str, currency: str) -> StatusResult:
    """Responses state no currency: `currency` is the one in which the network settles."""
    body = result.ok_object()
    match parse_status_word(STATUSES, body.get("status")):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(hundredths(body.get("amount")), currency, reference)
        case ProviderStatus.FAILED:
            return Refused(find_reason(_REASONS, _why(body)), result.raw)
    return Accepted(reference) if body else Unknown(result.raw)


def _why(body: Body) -> object:
    return body.get("reason") or body.get("responsemsg") or ""


def read_payout_status(result: ProviderResponse, reference: str, currency: str) -> StatusResult:
    """`read_status` of money that leaves our shop's balance."""
    status = read_status(result, reference, currency)
    return mark_ambiguous(status, _ambiguous_part(_why(result.ok_object())), _AMBIGUOUS)
