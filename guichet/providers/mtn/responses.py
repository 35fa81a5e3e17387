"""How MTN's responses become results (docs/providers/mtn.md, "Errors")."""

from typing import Final

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
from guichet.providers.capabilities import FloatBalance
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
from guichet.providers.shared.listings import Body, balance_of
from guichet.providers.shared.results import by_code, classify_http_error, mark_ambiguous

_REASONS: Final = by_code(
    {
        "insufficient_funds": "NOT_ENOUGH_FUNDS LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED",
        "payer_not_found": "PAYER_NOT_FOUND SENDER_ACCOUNT_NOT_ACTIVE PAYEE_NOT_FOUND",
        "limit_reached": "PAYER_LIMIT_REACHED PAYEE_LIMIT_REACHED",
        "rejected_by_payer": "APPROVAL_REJECTED PAYMENT_NOT_APPROVED TRANSACTION_CANCELED",
        "expired": "EXPIRED COULD_NOT_PERFORM_TRANSACTION",
        "configuration": "PAYEE_NOT_ALLOWED_TO_RECEIVE",
        "operator_unavailable": "INTERNAL_PROCESSING_ERROR SERVICE_UNAVAILABLE",
    }
)
#: Codes by which MTN says, about money that leaves our account, that there is not enough of it.
_FLOAT_EMPTY: Final = frozenset({"NOT_ENOUGH_FUNDS"})
#: Codes that do not say whether the payee or our account is meant: MTN Congo sends the first in place of the one above,
#: and the second is sent for anything.
_AMBIGUOUS: Final = frozenset({"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED", "INTERNAL_PROCESSING_ERROR"})
#: Codes by which MTN says that our account, not the customer, is at fault: it took nothing.
_ACCOUNT_ERRORS: Final = frozenset(
    {"NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY"}
)
#: Codes that MTN also sends during an outage: at initiation they prove nothing.
_OUTAGE_CODES: Final = frozenset({"INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE"})
_STATUSES: Final = status_words(
    pending="PENDING CREATED ONGOING DELAYED", succeeded="SUCCESSFUL", failed="FAILED REJECTED TIMEOUT"
)


def read_initiation(result: ProviderResponse, reference: str) -> InitiationResult:
    """The response to a POST. 409 means that MTN already has our request."""
    if result.status in (202, 409):
        return Accepted(reference)
    return _read_refusal(result) or classify_http_error(result) or Unknown(result.raw)


def _read_refusal(response: ProviderResponse) -> Refused | NotProcessed | None:
    """A 400, a 404, or a 500 with a business code; None for anything else."""
    code = response.error_code()
    if code in _ACCOUNT_ERRORS:
        return NotProcessed("configuration", response.raw)
    if response.status == 500 and code in _REASONS and code not in _OUTAGE_CODES:
        return Refused(_REASONS[code], response.raw)
    if response.status == 404:
        return Refused("configuration", response.raw) if code else NotProcessed("configuration", response.raw)
    return Refused(_REASONS.get(code, "refused"), response.raw) if response.status == 400 else None


def read_status(result: ProviderResponse, reference: str) -> StatusResult:
    body = result.ok_object()
    match parse_status_word(_STATUSES, body.get("status")):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(
                amount=hundredths(body.get("amount")),
                currency=text_or_none(body.get("currency")),
                provider_reference=text_or_none(body.get("financialTransactionId")) or reference,
                payer_number=full_number(value_at(body, "payer", "partyId")),
            )
        case ProviderStatus.FAILED:
            return Refused(_REASONS.get(_reason_code(body.get("reason")), "refused"), result.raw)
        case ProviderStatus.PENDING:
            return Accepted(reference)
    return Unknown(result.raw)


def _reason_code(reason: object) -> str:
    """In practice `reason` is a text, in the documentation an object with a code."""
    return str(reason.get("code") if isinstance(reason, dict) else reason).upper()


def read_refund_initiation(result: ProviderResponse, reference: str) -> RefundInitiationResult:
    """Like `read_initiation`, but money leaves our float: when that is empty, nobody refused anything."""
    code = result.error_code() if not result.ok else ""
    if code in _FLOAT_EMPTY:
        return FloatEmpty(result.raw)
    return mark_ambiguous(read_initiation(result, reference), code, _AMBIGUOUS)


def read_refund_status(result: ProviderResponse, reference: str) -> RefundStatusResult:
    """Like `read_status`; see `read_refund_initiation`."""
    status = read_status(result, reference)
    if not isinstance(status, Refused):
        return status
    code = _reason_code(result.ok_object().get("reason"))
    return FloatEmpty(result.raw) if code in _FLOAT_EMPTY else mark_ambiguous(status, code, _AMBIGUOUS)


def is_not_found(result: ProviderResponse) -> bool:
    """Whether MTN says that it does not know the reference. Another 404 does not say so."""
    return result.status == 404 and result.error_code() == "RESOURCE_NOT_FOUND"


def balances_in(body: Body, product: str) -> list[FloatBalance | None]:
    return [balance_of(product, hundredths(body.get("availableBalance")), body.get("currency"))]
