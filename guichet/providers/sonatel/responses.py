"""How Sonatel's responses become results (docs/providers/sonatel.md, "Errors")."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import Instant
from guichet.domain.failures import RefusalReason
from guichet.domain.messages import verbatim
from guichet.providers.base import (
    Accepted,
    FloatEmpty,
    InitiationResult,
    NotProcessed,
    RefundInitiationResult,
    RefundStatusResult,
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
    parse_status_word,
    status_words,
    text_or_none,
    value_at,
)
from guichet.providers.shared.results import classify_http_error

#: The dialling code of Sénégal. Sonatel writes national numbers of nine digits.
SENEGAL: Final = "221"
_STATUSES: Final = status_words(
    pending="ACCEPTED INITIATED PENDING PRE_INITIATED", succeeded="SUCCESS", failed="FAILED REJECTED CANCELLED"
)
_REASONS: Final[dict[str, RefusalReason]] = {
    "2000": "payer_not_found",
    "2001": "payer_not_found",
    "2011": "bad_otp",
    "2013": "payer_not_found",
    "2020": "insufficient_funds",
}
#: An invalid body, and also a reference that was used before: it proves nothing.
_INVALID_BODY: Final = "24"
#: Of a cash-in: our retailer's balance does not suffice. Of a payment: the customer's.
_FLOAT_EMPTY: Final = "2020"
#: Where the list of transactions stands in a response that is not the bare list.
_LIST_NAMES: Final = ("transactions", "data", "content")
_ACCOUNT_ERRORS: Final = frozenset({"2041", "4003"})


def read_initiation(result: ProviderResponse, reference: str, now: Instant) -> InitiationResult:
    """The response to a payment or a cash-in."""
    if not result.ok:
        return _read_refusal(result)
    body = result.ok_object()
    provider_reference = text_or_none(body.get("transactionId"))
    if body.get("reference", reference) != reference:
        return Unknown(ProviderAnswer.OTHER_REFERENCE(answer=result.raw))
    status = parse_status_word(_STATUSES, body.get("status"))
    if status is ProviderStatus.FAILED:
        return Refused(_read_reason(body), result.raw)
    if status is None or not provider_reference:
        return Unknown(result.raw)
    # A success states no amount: the list is asked at once.
    return Accepted(provider_reference, next_poll_at=now if status is ProviderStatus.SUCCEEDED else None)


def _read_reason(body: Mapping[str, Any]) -> RefusalReason:
    return _REASONS.get(str(body.get("code", "")), "refused")


def _read_refusal(response: ProviderResponse) -> NotProcessed | Refused | Unknown:
    """A response that is not 2xx (docs/providers/sonatel.md, "Errors")."""
    if common := classify_http_error(response):
        return common
    code = response.error_code()
    if code in _ACCOUNT_ERRORS or response.status == 415:
        return NotProcessed("configuration", response.raw)
    if response.status not in (400, 404, 422) or code in ("", _INVALID_BODY):
        return Unknown(response.raw)
    return Refused(_REASONS.get(code, "refused"), response.raw)


def read_list(response: ProviderResponse) -> list[dict[str, Any]] | None:
    """The rows of a list, which clients have seen bare and under three names; None when there is no list."""
    rows = response.value() if response.ok else None
    if isinstance(rows, dict):
        rows = next((rows[name] for name in _LIST_NAMES if name in rows), None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    return rows


def read_cashin(result: ProviderResponse, reference: str, now: Instant) -> RefundInitiationResult:
    """The response to a cash-in, which leaves our retailer's balance."""
    if _code(result.object()) == _FLOAT_EMPTY:
        return FloatEmpty(result.raw)
    return read_initiation(result, reference, now)


def read_cashin_row(row: Mapping[str, Any]) -> RefundStatusResult:
    failed = parse_status_word(_STATUSES, row.get("status")) is ProviderStatus.FAILED
    return FloatEmpty(verbatim(f"code {_FLOAT_EMPTY}")) if failed and _code(row) == _FLOAT_EMPTY else read_row(row)


def _code(body: Mapping[str, Any] | None) -> str:
    return str((body or {}).get("code", ""))


def read_row(row: Mapping[str, Any]) -> StatusResult:
    status, provider_reference = row.get("status"), text_or_none(row.get("transactionId"))
    match parse_status_word(_STATUSES, status):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(
                amount=hundredths(value_at(row, "amount", "value")),
                currency=text_or_none(value_at(row, "amount", "unit")),
                provider_reference=provider_reference,
                payer_number=full_number(value_at(row, "customer", "id"), SENEGAL),
            )
        case ProviderStatus.FAILED:
            return Refused(_read_reason(row), verbatim(f"status {status}"))
        case ProviderStatus.PENDING:
            return Accepted(provider_reference)
    return Unknown(verbatim(f"status {status}"))
