"""How FedaPay's objects and errors become results (docs/providers/fedapay.md, "Envelope", "Asking for its state",
"Errors")."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import DAY, HOUR, MINUTE, Instant, later, read_date
from guichet.domain.failures import RefusalReason
from guichet.domain.messages import Answer
from guichet.providers.base import (
    Accepted,
    Charge,
    FloatEmpty,
    NotFound,
    NotProcessed,
    RefundStatusResult,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.capabilities import FloatBalance
from guichet.providers.fedapay.networks import CURRENCY, CURRENCY_IDS
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import (
    ProviderStatus,
    hundredths,
    parse_status_word,
    payer_not_echoed,
    status_words,
    text_or_none,
    value_at,
)
from guichet.providers.shared.listings import Body, balance_of, rows_of
from guichet.providers.shared.results import classify_http_error, mark_ambiguous

#: What was given back from FedaPay's dashboard was paid before. Every other word means pending.
STATUSES: Final = status_words(
    succeeded="APPROVED TRANSFERRED REFUNDED APPROVED_PARTIALLY_REFUNDED TRANSFERRED_PARTIALLY_REFUNDED",
    failed="DECLINED CANCELED EXPIRED",
)
#: `pending` is a payout that was created and not started: nothing moved, and nothing will.
PAYOUT_STATUSES: Final = status_words(
    pending="SCHEDULED STARTED PROCESSING", succeeded="SENT", failed="FAILED DECLINED CANCELED"
)
NOT_STARTED: Final = "PENDING"
_EXPIRED: Final = "EXPIRED"
#: The network's word for a payer, or of a payout a payee, without money. A payout leaves our own balance too.
_NO_FUNDS: Final = "INSUFFICIENT_FUND_ERROR"
_ERROR_REASONS: Final[dict[str, RefusalReason]] = {
    _NO_FUNDS: "insufficient_funds",
    "INVALID_PARAMS": "configuration",
}
_STATUS_REASONS: Final[dict[str, RefusalReason]] = {"DECLINED": "rejected_by_payer", _EXPIRED: "expired"}
#: A late answer of the network overtakes a refusal: one was paid twelve seconds after it.
_BELIEVED_AFTER: Final = MINUTE
#: On the page the customer may try again while its token lives, which is a day.
_PAGE_LIFE: Final = DAY + HOUR
#: When nothing can pay any more what was declined or canceled: its token died, and the network had two days more.
_OVER_AFTER: Final = 3 * DAY
#: Parts of messages, whose language the account chooses.
_NOT_ALLOWED: Final = ("OPÉRATION NON AUTORISÉE", "OPERATION NOT ALLOWED", "UNAUTHORIZED OPERATION")
_FLOAT_EMPTY: Final = ("SOLDE INSUFFISANT", "INSUFFICIENT BALANCE")
#: Three payouts to one number in a day, and an amount for each: what is beyond waits for a person or for tomorrow.
_LIMIT: Final = "LIMIT"
_OUR_REFERENCE: Final = "merchant_reference"


def object_in(result: ProviderResponse, name: str) -> dict[str, Any]:
    """The object of a 2xx: under its class, under its name, or bare. Empty when there is none."""
    body = result.ok_object()
    wrapped = next((body[key] for key in (f"v1/{name}", name) if isinstance(body.get(key), dict)), body)
    return wrapped if text_or_none(wrapped.get("id")) else {}


def token_in(result: ProviderResponse) -> tuple[str, str | None] | None:
    """The token and the address of the page; None when there is no token."""
    body = result.ok_object()
    wrapped = body.get("v1/token")
    fields = wrapped if isinstance(wrapped, dict) else body
    token = text_or_none(fields.get("token"))
    return (token, text_or_none(fields.get("url"))) if token else None


def our_reference(row: Mapping[str, Any]) -> str | None:
    """Ours, as a transaction or payout states it."""
    return text_or_none(row.get(_OUR_REFERENCE)) or text_or_none(value_at(row, "custom_metadata", "reference"))


def currency_of(row: Mapping[str, Any]) -> str | None:
    """None where it cannot be told; it then equals none of ours."""
    if iso := text_or_none(value_at(row, "currency", "iso")):
        return iso.upper()
    return CURRENCY_IDS.get(str(row.get("currency_id")))


def is_not_found(result: ProviderResponse) -> bool:
    return result.status == 404 and result.object() is not None


def is_refused_repeat(result: ProviderResponse) -> bool:
    """Whether a creation is refused because our reference exists already: its name stands in the errors or the text."""
    if not 400 <= result.status < 500:
        return False
    body = result.object() or {}
    errors = body.get("errors")
    return (isinstance(errors, dict) and _OUR_REFERENCE in errors) or _OUR_REFERENCE in _message(body)


def read_transaction(result: ProviderResponse, charge: Charge, mode: str | None, now: Instant) -> StatusResult:
    """`mode`: FedaPay's word for the network that we asked for."""
    transaction = object_in(result, "transaction")
    if not transaction:
        return Unknown(result.raw)
    if our_reference(transaction) != charge.payment.reference:
        return Unknown(ProviderAnswer.OTHER_REFERENCE(answer=result.raw))
    transaction_id = str(transaction["id"])
    match parse_status_word(STATUSES, transaction.get("status")):
        case ProviderStatus.SUCCEEDED:
            amount, currency = hundredths(transaction.get("amount")), currency_of(transaction)
            return Succeeded(amount, currency, transaction_id, _payer(transaction, charge, mode))
        case ProviderStatus.FAILED:
            return _read_refusal_of_payin(transaction, charge, result.raw, now)
    return Accepted(transaction_id)


def _read_refusal_of_payin(
    transaction: Mapping[str, Any], charge: Charge, raw: Answer, now: Instant
) -> Refused | Accepted:
    """Only `expired` is the end. What was declined or canceled may still be paid: it is believed after a minute, or on
    the page after its life, but is no final answer before nothing can pay it any more."""
    status, created_at = str(transaction.get("status")).upper(), charge.payment.created_at
    reason = _ERROR_REASONS.get(str(transaction.get("last_error_code")))
    reason = reason or _STATUS_REASONS.get(status, "refused")
    if status == _EXPIRED or now - created_at >= _OVER_AFTER:
        return Refused(reason, raw)
    refused_at = read_date(str(transaction.get(f"{status.lower()}_at"))) or created_at
    on_page = charge.payment.redirect_url is not None
    believed_at = later(created_at, _PAGE_LIFE) if on_page else later(refused_at, _BELIEVED_AFTER)
    if charge.ask_only or now < believed_at:
        return Accepted(str(transaction["id"]))
    return Refused(reason, raw, stated=False)


def _payer(transaction: Mapping[str, Any], charge: Charge, mode: str | None) -> str | None:
    """Who paid on the page, if FedaPay says so and it was our network: the payout of a refund goes over that one."""
    if transaction.get("mode") != mode:
        return None
    return payer_not_echoed(value_at(transaction, "metadata", "paid_customer", "phone"), charge)


def read_push(result: ProviderResponse, transaction_id: str) -> Accepted | NotProcessed | Refused:
    """What came of the request for the PIN. A lost answer says nothing, but the transaction is known and can be asked
    for: a result without it could not be."""
    if result.ok:
        return Accepted(transaction_id)
    if common := classify_http_error(result):
        return common if isinstance(common, NotProcessed) else Accepted(transaction_id)
    if result.object() is None or not 400 <= result.status < 500:
        return Accepted(transaction_id)
    if result.status == 404 or _says(result, _NOT_ALLOWED):
        return NotProcessed("configuration", result.raw)
    return Refused("refused", result.raw)


def read_payout(result: ProviderResponse, reference: str) -> RefundStatusResult:
    """The state of a payout; one that is not started is accepted."""
    payout = object_in(result, "payout")
    if is_not_found(result):
        return NotFound(result.raw)
    if not payout:
        return Unknown(result.raw)
    if our_reference(payout) != reference:
        return Unknown(ProviderAnswer.OTHER_REFERENCE(answer=result.raw))
    payout_id, code = str(payout["id"]), str(payout.get("last_error_code"))
    match parse_status_word(PAYOUT_STATUSES, payout.get("status")):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(hundredths(payout.get("amount")), currency_of(payout), payout_id)
        case ProviderStatus.FAILED:
            return mark_ambiguous(Refused(_ERROR_REASONS.get(code, "refused"), result.raw), code, (_NO_FUNDS,))
    return Accepted(payout_id)


def read_payout_refusal(result: ProviderResponse) -> NotProcessed | Refused | Unknown | FloatEmpty:
    """A creation or start of a payout that is not 2xx."""
    if 400 <= result.status < 500 and _says(result, _FLOAT_EMPTY):
        return FloatEmpty(result.raw)
    if common := classify_http_error(result):
        return common
    if result.object() is None or not 400 <= result.status < 500:
        return Unknown(result.raw)
    if result.status == 404 or _says(result, _NOT_ALLOWED):
        return NotProcessed("configuration", result.raw)
    return NotProcessed("limit_reached", result.raw) if _says(result, (_LIMIT,)) else Refused("refused", result.raw)


def _message(body: Mapping[str, Any]) -> str:
    return str(body.get("message", ""))


def _says(response: ProviderResponse, parts: tuple[str, ...]) -> bool:
    message = _message(response.object() or {}).upper()
    return any(part in message for part in parts)


def balances_in(body: Body) -> list[FloatBalance | None]:
    """One for each mode; they do not add up. A row states no currency where the account has one."""
    if not isinstance(body.get("v1/balances"), list):
        return [None]
    return [
        balance_of(
            text_or_none(row.get("mode")) or "",
            hundredths(row.get("amount")),
            currency_of(row) if "currency" in row or "currency_id" in row else CURRENCY,
        )
        for row in rows_of(body["v1/balances"])
    ]
