"""How Stripe's objects and errors become results (docs/providers/stripe.md, "Asking for its state", "Errors")."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from guichet.clock import SECOND, Instant
from guichet.domain.messages import verbatim
from guichet.domain.money import DECIMALS, Currency, Hundredths
from guichet.providers.base import Accepted, AlreadyRefunded, NotProcessed, Refused, StatusResult, Succeeded, Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import ProviderStatus, status_words, text_or_none, units, value_at
from guichet.providers.shared.listings import Body, balance_of, rows_of
from guichet.providers.shared.results import by_code, classify_http_error, mark_ambiguous

_REASONS: Final = by_code(
    {
        "declined": "card_declined expired_card",
        "insufficient_funds": "insufficient_funds balance_insufficient",
        "limit_reached": "amount_too_small amount_too_large",
    }
)
#: Why a refund was refused, or failed: the money leaves our balance, and the customer's card may refuse it too.
_AMBIGUOUS: Final = frozenset({"insufficient_funds", "balance_insufficient"})
#: The `pending_reason` of a refund that Stripe makes once our balance covers it.
_WAITS_FOR_FLOAT: Final = "insufficient_funds"
#: The `status` of a session that is not paid.
_SESSION_STATUSES: Final = status_words(pending="open complete", failed="expired")
_REFUND_STATUSES: Final = status_words(
    pending="pending requires_action", succeeded="succeeded", failed="failed canceled"
)


def smallest_unit(amount: Hundredths, currency: Currency) -> int:
    """Stripe counts in the smallest unit of a currency; XOF and XAF have no decimals."""
    return amount if DECIMALS.get(currency) else units(amount)


def hundredths(smallest: object, currency: str | None) -> Hundredths | None:
    """The reverse of `smallest_unit`; None when it is not an integer."""
    if isinstance(smallest, bool) or not isinstance(smallest, int):
        return None
    return Hundredths(smallest if DECIMALS.get(currency or "", 2) else smallest * 100)


def currency_of(body: Mapping[str, Any]) -> str | None:
    return (text_or_none(body.get("currency")) or "").upper() or None


def instant(seconds: object) -> Instant | None:
    return Instant(seconds * SECOND) if isinstance(seconds, int) and not isinstance(seconds, bool) else None


def reference_in(body: object) -> str | None:
    """Ours, in the metadata that we gave a session's payment or a refund."""
    return text_or_none(value_at(body, "metadata", "reference"))


def read_session(result: ProviderResponse) -> StatusResult:
    session = result.ok_object()
    session_id, currency = text_or_none(session.get("id")), currency_of(session)
    if session.get("payment_status") == "paid":
        return Succeeded(hundredths(session.get("amount_total"), currency), currency, session_id)
    match _SESSION_STATUSES.get(str(session.get("status"))):
        case ProviderStatus.FAILED:
            return Refused("expired", result.raw)
        case ProviderStatus.PENDING if session_id:
            return Accepted(session_id, text_or_none(session.get("url")))
    return Unknown(result.raw)


def read_refund(result: ProviderResponse) -> Accepted | Succeeded | Refused | Unknown:
    refund = result.ok_object()
    refund_id, currency = text_or_none(refund.get("id")), currency_of(refund)
    match _REFUND_STATUSES.get(str(refund.get("status"))):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(hundredths(refund.get("amount"), currency), currency, refund_id)
        case ProviderStatus.FAILED:
            code = str(refund.get("failure_reason"))
            return mark_ambiguous(Refused(_REASONS.get(code, "refused"), result.raw), code, _AMBIGUOUS)
        case ProviderStatus.PENDING if refund_id:
            return Accepted(refund_id, float_empty=refund.get("pending_reason") == _WAITS_FOR_FLOAT)
    return Unknown(result.raw)


def read_refund_refusal(result: ProviderResponse) -> NotProcessed | Refused | Unknown | AlreadyRefunded:
    """A refund that was made before, by hand or by another call, is no reason to give the merchant its money back."""
    code = _code_of((result.object() or {}).get("error"))
    if code == "charge_already_refunded":
        return AlreadyRefunded(verbatim(code))
    return mark_ambiguous(read_refusal(result), code, _AMBIGUOUS)


def read_refusal(result: ProviderResponse) -> NotProcessed | Refused | Unknown:
    """A POST that is not answered 2xx. A key that was used before means that something was taken under it."""
    if common := classify_http_error(result):
        return common
    error = (result.object() or {}).get("error")
    if not isinstance(error, dict) or error.get("type") == "idempotency_error":
        return Unknown(result.raw)
    if result.status not in (400, 402, 404):
        return Unknown(result.raw)
    code = _code_of(error)
    return Refused(_REASONS.get(code, "declined" if result.status == 402 else "refused"), result.raw)


def _code_of(error: object) -> str:
    return str(value_at(error, "decline_code") or value_at(error, "code") or "")


def balances_in(body: Body) -> list[FloatBalance | None]:
    """What can be paid out now, by currency, in its smallest unit, and what comes later."""
    later: Counter[object] = Counter()
    for row in rows_of(body.get("pending")):
        later[row.get("currency")] += hundredths(row.get("amount"), currency_of(row)) or 0
    available = [
        (balance_of("", hundredths(row.get("amount"), currency_of(row)), row.get("currency")), row.get("currency"))
        for row in rows_of(body.get("available"))
    ]
    return [balance and replace(balance, not_yet_available=later[currency]) for balance, currency in available]
