"""How Wave's sessions, payouts and errors become results (docs/providers/wave.md, "Asking for its state", "Errors")."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.domain.messages import verbatim
from guichet.providers.base import (
    Accepted,
    FloatEmpty,
    NotProcessed,
    RefundInitiationResult,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import (
    ProviderStatus,
    full_number,
    hundredths,
    status_words,
    text_or_none,
    value_at,
)
from guichet.providers.shared.results import by_code, classify_http_error, mark_ambiguous

#: The codes that refuse a payment, a refund or a payout.
_REASONS: Final = by_code(
    {
        "insufficient_funds": "insufficient-funds",
        "payer_not_found": "blocked-account recipient-account-blocked payer-mobile-mismatch",
        "limit_reached": "kyb-limits-exceeded recipient-limit-exceeded",
        "refused": "customer-age-restricted recipient-minor checkout-refund-failed",
    }
)
#: Of a payout: our wallet does not hold enough.
_FLOAT_EMPTY: Final = "insufficient-funds"
#: Of the refund of a session: either may mean our wallet, which the money leaves.
_AMBIGUOUS: Final = frozenset({"insufficient-funds", "checkout-refund-failed"})
#: Codes that concern our account: nothing was taken.
_ACCOUNT_ERRORS: Final = frozenset({"currency-mismatch", "country-mismatch"})
_PAYOUT_STATUSES: Final = status_words(pending="processing", succeeded="succeeded", failed="failed reversed")


def read_new_session(response: ProviderResponse) -> Accepted | Unknown:
    session = response.ok_object()
    return _accepted(session) if session else Unknown(response.raw)


def read_session(session: Mapping[str, Any]) -> StatusResult:
    """A session has two statuses; it stays open after a refused attempt, because the customer may try again.

    Wave states no payer, but a session that it made for one number can be paid by no other.
    """
    checkout, payment = session.get("checkout_status"), session.get("payment_status")
    if checkout == "complete" and payment == "succeeded":
        return Succeeded(
            amount=hundredths(session.get("amount")),
            currency=text_or_none(session.get("currency")),
            provider_reference=text_or_none(session.get("id")),
            payer_number=full_number(session.get("restrict_payer_mobile")),
        )
    if payment == "cancelled" or (checkout == "expired" and payment != "succeeded"):
        code = str(value_at(session, "last_payment_error", "code") or "")
        return Refused(_REASONS.get(code, "expired" if checkout == "expired" else "rejected_by_payer"), code)
    if checkout == "open" and payment == "processing":
        return _accepted(session)
    return Unknown(verbatim(f"{checkout} and {payment}"))


def read_payout_refusal(result: ProviderResponse) -> NotProcessed | Refused | Unknown | FloatEmpty:
    """A payout leaves our own wallet: `insufficient-funds` is about that, not about the customer."""
    if result.status == 400 and _error_code(result) == _FLOAT_EMPTY:
        return FloatEmpty(result.raw)
    return read_refusal(result)


def read_session_refund_refusal(result: ProviderResponse) -> RefundInitiationResult:
    code = _error_code(result)
    return mark_ambiguous(read_refusal(result), code, _AMBIGUOUS)


def read_payout(result: ProviderResponse) -> Accepted | Succeeded | Refused | Unknown | FloatEmpty:
    payout = result.ok_object()
    return read_payout_object(payout) if payout else Unknown(result.raw)


def read_payout_object(payout: Mapping[str, Any]) -> Accepted | Succeeded | Refused | Unknown | FloatEmpty:
    payout_id, status = text_or_none(payout.get("id")), str(payout.get("status"))
    code = str(value_at(payout, "payout_error", "error_code") or "")
    raw = verbatim(f"{status} {code}".strip())
    match _PAYOUT_STATUSES.get(status):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(hundredths(payout.get("receive_amount")), text_or_none(payout.get("currency")), payout_id)
        case ProviderStatus.FAILED:
            return FloatEmpty(raw) if code == _FLOAT_EMPTY else Refused(_REASONS.get(code, "refused"), raw)
        case ProviderStatus.PENDING if payout_id:
            return Accepted(payout_id)
    return Unknown(raw)


def read_refusal(result: ProviderResponse) -> NotProcessed | Refused | Unknown:
    """A POST that is not answered 2xx. An Idempotency-Key that was used before means that something was taken."""
    if common := classify_http_error(result):
        return common
    code = _error_code(result)
    if _is_nested(result):  # Seen for `idempotency-mismatch`, which says that something was taken.
        return Refused(_REASONS[code], result.raw) if code in _REASONS else Unknown(result.raw)
    # A missing or unknown `aggregated_merchant_id` is a fault of our configuration, not the payer's.
    if code in _ACCOUNT_ERRORS or (result.status == 400 and b"aggregated_merchant" in result.body):
        return NotProcessed("configuration", result.raw)
    if result.status not in (400, 404, 409, 422) or not code or code == "idempotency-mismatch":
        return Unknown(result.raw)
    return Refused(_REASONS.get(code, "refused"), result.raw)


def _error_code(response: ProviderResponse) -> str:
    """Errors of payouts are documented under `code`, and seen under the other two names, or one level below."""
    body = response.object() or {}
    inner = body["error"] if _is_nested(response) else body
    return next((str(inner[name]) for name in ("code", "error_code", "error") if inner.get(name)), "")


def _is_nested(response: ProviderResponse) -> bool:
    """`{"error": {"code": …}}`."""
    return isinstance((response.object() or {}).get("error"), dict)


def _accepted(session: Mapping[str, Any]) -> Accepted | Unknown:
    session_id = text_or_none(session.get("id"))
    if session_id is None:
        return Unknown(ProviderAnswer.SESSION_WITHOUT_ID())
    return Accepted(session_id, text_or_none(session.get("wave_launch_url")))


def page_in(body: Mapping[str, Any], id_field: str) -> tuple[list[Mapping[str, Any]], str | None] | None:
    """The items of a page and the cursor of the next one (None: it is the last); None when it is not a whole page."""
    items, more = body.get("items"), value_at(body, "page_info", "has_next_page")
    if not isinstance(items, list) or not all(isinstance(item, dict) and item.get(id_field) for item in items):
        return None
    if more is False:
        return items, None
    cursor = text_or_none(value_at(body, "page_info", "end_cursor"))
    return (items, cursor) if more is True and cursor else None
