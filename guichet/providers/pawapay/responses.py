"""How pawaPay's responses become results (docs/providers/pawapay.md, "Initiating a payment", "Errors").

The business result is in the body of a 200. A 500 has no status and proves nothing.
"""

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from guichet.domain.availability import DEGRADED, DOWN, UP, OperatorState
from guichet.domain.failures import RefusalReason
from guichet.domain.messages import Answer
from guichet.providers.base import (
    Accepted,
    AlreadyRefunded,
    Charge,
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
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import (
    ProviderStatus,
    hundredths,
    payer_not_echoed,
    status_words,
    text_or_none,
    value_at,
)
from guichet.providers.shared.results import by_code, classify_http_error

_REASONS: Final = by_code(
    {
        "insufficient_funds": "INSUFFICIENT_BALANCE",
        "payer_not_found": "PAYER_NOT_FOUND RECIPIENT_NOT_FOUND INVALID_PHONE_NUMBER",
        "rejected_by_payer": "PAYMENT_NOT_APPROVED",
        "limit_reached": "PAYER_LIMIT_REACHED WALLET_LIMIT_REACHED AMOUNT_OUT_OF_BOUNDS",
    }
)
#: Rejections after which another route may be tried: the operator or our account is closed, nothing was taken.
_NOT_PROCESSED: Final[dict[str, RefusalReason]] = {
    "PROVIDER_TEMPORARILY_UNAVAILABLE": "operator_unavailable",
    "INVALID_PROVIDER": "configuration",
    "INVALID_CURRENCY": "configuration",
    "AMOUNT_OUT_OF_BOUNDS": "limit_reached",
    "DEPOSITS_NOT_ALLOWED": "configuration",
    "PAYOUTS_NOT_ALLOWED": "configuration",
}
#: Rejections that say nothing about the money.
_INCONCLUSIVE: Final = frozenset({"", "UNKNOWN_ERROR", "REFUND_IN_PROGRESS"})
_ACCEPTED: Final = frozenset({"ACCEPTED", "DUPLICATE_IGNORED", "ENQUEUED"})
_STATUSES: Final = status_words(
    pending="ACCEPTED ENQUEUED PROCESSING IN_RECONCILIATION", succeeded="COMPLETED", failed="FAILED"
)
#: Of deposits: they are taken, they take long, or they are refused.
_AVAILABILITY: Final[dict[str, OperatorState]] = {"OPERATIONAL": UP, "DELAYED": DEGRADED, "CLOSED": DOWN}


def read_initiation(result: ProviderResponse, *, id_field: str, reference: str) -> InitiationResult:
    """The response to a POST; `id_field` is the field in which it repeats our reference."""
    body = result.object() or {}
    if result.ok and str(body.get("status")) in _ACCEPTED:
        return Accepted(reference) if body.get(id_field, reference) == reference else Unknown(result.raw)
    if common := classify_http_error(result):
        return common
    if body.get("status") == "REJECTED" and (result.ok or result.status == 400):
        return _read_rejection(failure_code(body), result.raw)
    return Unknown(result.raw)


def _read_rejection(code: str, raw: Answer) -> NotProcessed | Refused | Unknown:
    if code in _NOT_PROCESSED:
        return NotProcessed(_NOT_PROCESSED[code], raw)
    return Unknown(raw) if code in _INCONCLUSIVE else Refused(_REASONS.get(code, "refused"), raw)


def read_status(result: ProviderResponse, reference: str) -> StatusResult:
    body = result.ok_object()
    data = body.get("data") if body.get("status") == "FOUND" else None
    if not isinstance(data, dict):
        return Unknown(result.raw)
    match _STATUSES.get(str(data.get("status"))):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(hundredths(data.get("amount")), text_or_none(data.get("currency")), reference)
        case ProviderStatus.FAILED:
            return Refused(_REASONS.get(failure_code(data), "refused"), result.raw)
        case ProviderStatus.PENDING:
            return Accepted(reference, text_or_none(data.get("authorizationUrl")))
    return Unknown(result.raw)


def read_deposit(result: ProviderResponse, charge: Charge) -> StatusResult:
    """`read_status`, with the number that paid."""
    status = read_status(result, charge.payment.reference)
    if not isinstance(status, Succeeded):
        return status
    payer_number = value_at(result.ok_object(), "data", "payer", "accountDetails", "phoneNumber")
    return replace(status, payer_number=payer_not_echoed(payer_number, charge))


def is_not_found(result: ProviderResponse) -> bool:
    """Whether pawaPay says that it does not know the reference: a 200 with the status NOT_FOUND."""
    return result.ok_object().get("status") == "NOT_FOUND"


def read_refund_initiation(result: ProviderResponse, *, id_field: str, reference: str) -> RefundInitiationResult:
    """Like `read_initiation`, for money that leaves our wallet."""
    body = result.object() or {}
    if body.get("status") == "REJECTED" and (special := _about_our_money(body)):
        return special
    return read_initiation(result, id_field=id_field, reference=reference)


def read_refund_status(result: ProviderResponse, reference: str) -> RefundStatusResult:
    """Like `read_status`, for money that leaves our wallet."""
    data = result.ok_object().get("data")
    if isinstance(data, dict) and data.get("status") == "FAILED" and (special := _about_our_money(data)):
        return special
    return read_status(result, reference)


def _about_our_money(body: dict[str, Any]) -> FloatEmpty | AlreadyRefunded | None:
    match code := failure_code(body):
        case "PAWAPAY_WALLET_OUT_OF_FUNDS":
            return FloatEmpty(code)
        case "DEPOSIT_ALREADY_REFUNDED":
            return AlreadyRefunded(code)
    return None


def failure_code(body: dict[str, Any]) -> str:
    """The reference and the guide of pawaPay name the reason of a refusal differently."""
    code = value_at(body, "failureReason", "failureCode") or value_at(body, "rejectionReason", "rejectionCode")
    return str(code or "")


def read_availability(result: ProviderResponse) -> dict[str, OperatorState] | Unknown:
    """The state of deposits by pawaPay's word for the operator; a word for a state that we do not know is left out."""
    countries = result.value() if result.ok else None
    if not isinstance(countries, list):
        return Unknown(result.raw)
    states: dict[str, OperatorState] = {}
    for provider in _objects(country.get("providers") for country in _objects([countries])):
        for operation in _objects([provider.get("operationTypes")]):
            state = _AVAILABILITY.get(str(operation.get("status")))
            if operation.get("operationType") == "DEPOSIT" and state:
                states[str(provider.get("provider"))] = state
    return states


def _objects(lists: Iterable[object]) -> list[dict[str, Any]]:
    """The objects in these lists; whatever else is there is left out."""
    return [item for items in lists if isinstance(items, list) for item in items if isinstance(item, dict)]
