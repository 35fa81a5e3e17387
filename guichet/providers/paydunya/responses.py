"""How PayDunya's responses become results (docs/providers/paydunya.md, "Errors", "States").

Nearly everything is said with HTTP 200. A success is `response_code` "00" or `success` true; what else there is must be
read in free French texts, so that a text that is in no table concludes nothing.
"""

import re
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from guichet.domain.failures import RefusalReason
from guichet.domain.messages import Answer
from guichet.domain.money import Hundredths
from guichet.providers.base import Accepted, Charge, FloatEmpty, NotProcessed, Refused, StatusResult, Succeeded, Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import (
    ProviderStatus,
    hundredths,
    parse_status_word,
    status_words,
    text_or_none,
    value_at,
)
from guichet.providers.shared.listings import Body, balance_of
from guichet.providers.shared.results import classify_http_error, find_reason, mark_ambiguous

CURRENCY: Final = "XOF"
#: The status of a path that does not exist: a wrong `base_url`, or a charge in the test mode.
NO_SUCH_PATH: Final = 404
#: Every other word means pending (docs/providers/README.md, "States").
INVOICE_STATUSES: Final = status_words(succeeded="COMPLETED", failed="CANCELLED FAILED EXPIRED")
PAYOUT_STATUSES: Final = status_words(pending="PENDING", succeeded="SUCCESS", failed="FAILED")
#: A payout that was announced and never submitted, or whose submission did not arrive.
NOT_SUBMITTED: Final = "CREATED"
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{6,160}")
_BALANCE: Final = re.compile(r"(-?[0-9](?:[0-9 \u00a0\u202f]*[0-9])?(?:\.[0-9]{1,2})?)\s*([A-Za-z]{3})")
_BALANCE_KEY: Final = "Balance "

#: Parts of texts that say that our settings, our account or our request are at fault: nothing was taken.
_OUR_FAULTS: Final = (
    "MASTERKEY",
    "PRIVATE KEY AND TOKEN",
    "KYC",
    "NOT ENABLED",
    "INFORMATIONS SAISIES INCORRECTES",
    "INVOICE INEXISTANT",
    "NOT AUTHORIZE",
    "CALLBACK",
    "WITHDRAW_MODE",
    "WITHDRAW MODE",
)
#: Parts of refusals after which the customer may still pay, or may have been asked to.
_UNDECIDED: Final = ("DÉLAI DE VALIDATION", "UNE ERREUR EST SURVENUE")
_TOO_SMALL: Final = ("MINIMUM", "TOTAL AMOUNT")
#: Parts of refusals that are known; every other one is compared with the state of the invoice.
_KNOWN: Final = ("N'EXISTE PAS", "NUMÉRO", "OTP")
_REASONS: Final[dict[str, RefusalReason]] = {
    "N'EXISTE PAS": "payer_not_found",
    "NUMÉRO": "payer_not_found",
    "INSUFFISANT": "insufficient_funds",
    "INSUFFICIENT": "insufficient_funds",
    "PLAFOND": "limit_reached",
    "OTP": "bad_otp",
    "ANNUL": "rejected_by_payer",
    "EXPIR": "expired",
}
#: PayDunya's plain word that our own balance is too small, and parts that do not say whose money is meant.
_FLOAT: Final = ("4002", "ENOUGH FUNDS")
_AMBIGUOUS: Final = ("INSUFFISANT", "INSUFFICIENT", "SOLDE", "FUNDS")
_DUPLICATE: Final = "ALREADY USED"


class Verdict(Enum):
    """Of what PayDunya says about a request that it did not take as it was."""

    #: Nothing was taken, through a fault of ours or theirs.
    NOT_TAKEN = auto()
    #: Refused, by a text that is known.
    REFUSED = auto()
    #: It says no, by a text that is not known.
    UNLISTED = auto()
    #: The customer may still pay.
    UNDECIDED = auto()


def as_token(value: object) -> str | None:
    """The name of an invoice or a payout; None for what can be none."""
    return value if isinstance(value, str) and _TOKEN.fullmatch(value) else None


def code_of(body: Body) -> str:
    """`response_code`, which was also seen as a list; empty when there is none."""
    code = body.get("response_code")
    if isinstance(code, list):
        code = code[0] if code else None
    return "" if code is None else str(code)


def says_yes(body: Body) -> bool:
    code = code_of(body)
    return code == "00" if code else body.get("success") is True


def says_no(body: Body) -> bool:
    return body.get("success") is False or code_of(body) not in ("", "00")


def wording(body: Body) -> str:
    """Everything that the body says in prose, in capitals."""
    texts = [body.get(name) for name in ("response_text", "message", "description", "fail_reason")]
    texts += [value_at(body, "errors", name) for name in ("message", "description")]
    return " ".join(text for text in texts if isinstance(text, str)).replace("’", "'").upper()


def verdict(body: Body) -> Verdict:
    text = wording(body)
    if code_of(body) == "1001" or _has(text, _OUR_FAULTS):
        return Verdict.NOT_TAKEN
    if _has(text, _UNDECIDED):
        return Verdict.UNDECIDED
    return Verdict.REFUSED if _has(text, _KNOWN) else Verdict.UNLISTED


def _has(text: str, parts: Iterable[str]) -> bool:
    return any(part in text for part in parts)


def refusal(body: Body, raw: Answer) -> Refused:
    return Refused(find_reason(_REASONS, wording(body)), raw)


def is_unpaid(confirmed: ProviderResponse) -> bool:
    """Whether the invoice is known not to be paid."""
    body = confirmed.ok_object()
    word = str(body.get("status")).upper()
    return code_of(body) == "00" and (word == "PENDING" or INVOICE_STATUSES.get(word) is ProviderStatus.FAILED)


def not_taken(result: ProviderResponse) -> NotProcessed:
    """Why a step that moves no money did not do what it is for. A lost answer is one of these: nobody was shown what it
    made."""
    if isinstance(common := classify_http_error(result), NotProcessed):
        return common
    if result.status == NO_SUCH_PATH:
        return NotProcessed("configuration", result.raw)
    body = result.object()
    if common is not None or body is None:
        return NotProcessed("operator_unavailable", result.raw)
    if _has(wording(body), _TOO_SMALL):
        return NotProcessed("limit_reached", result.raw)
    at_fault = verdict(body) is Verdict.NOT_TAKEN
    return NotProcessed("configuration" if at_fault else "operator_unavailable", result.raw)


def read_invoice_status(
    result: ProviderResponse, charge: Charge, token: str, *, mode: str, proven: bool
) -> StatusResult:
    """The state of the invoice `token`. `proven`: it is this payment's; otherwise only its `custom_data` proves it.
    `mode`: "live" or "test", that of our keys."""
    body = result.ok_object()
    if code_of(body) != "00":
        return Unknown(result.raw)
    reference = value_at(body, "custom_data", "reference")
    if reference != charge.payment.reference and (reference or not proven):
        return Unknown(ProviderAnswer.OTHER_REFERENCE(answer=result.raw))
    if body.get("mode", mode) != mode:
        return Unknown(ProviderAnswer.OTHER_MODE(mode=str(body.get("mode"))))
    invoice = body["invoice"] if isinstance(body.get("invoice"), dict) else {}
    match parse_status_word(INVOICE_STATUSES, body.get("status") or invoice.get("status")):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(_paid(invoice, charge.amount), CURRENCY, token)
        case ProviderStatus.FAILED:
            return _ended(body, result.raw)
    # What only a callback named is stored now that it is proven.
    return Accepted(None if proven else token)


def _paid(invoice: Body, requested: Hundredths) -> Hundredths | None:
    """Where the payer bears the fees, `total_amount` has them added to what we asked for."""
    total = hundredths(invoice.get("total_amount"))
    without_fees = hundredths(invoice.get("total_amount_without_fees"))
    return requested if total is not None and total > requested == without_fees else total


def _ended(body: Body, raw: Answer) -> Refused:
    """An invoice that nobody paid is cancelled after a day; a refusal may be seen only as that."""
    reason = find_reason(_REASONS, wording(body))
    word = str(body.get("status")).upper()
    return Refused("expired" if reason == "refused" and word != "FAILED" else reason, raw)


def read_payout_refusal(result: ProviderResponse) -> Refused | FloatEmpty | None:
    """The refusal of a payout that nothing was sent for before; None when the text is in no table."""
    body = result.object() or {}
    text = wording(body)
    if code_of(body) == _FLOAT[0] and _FLOAT[1] in text:
        return FloatEmpty(result.raw)
    if _DUPLICATE in text or verdict(body) in (Verdict.NOT_TAKEN, Verdict.UNDECIDED):
        return None
    part = next((part for part in _AMBIGUOUS if part in text), "")
    if not part and verdict(body) is not Verdict.REFUSED:
        return None
    return mark_ambiguous(refusal(body, result.raw), part, _AMBIGUOUS)


def read_payout_status(body: Body, raw: Answer, token: str) -> Succeeded | Refused | Accepted:
    match parse_status_word(PAYOUT_STATUSES, body.get("status")):
        case ProviderStatus.SUCCEEDED:
            return Succeeded(hundredths(body.get("amount")), CURRENCY, token)
        case ProviderStatus.FAILED:
            text = wording(body)
            part = next((part for part in _AMBIGUOUS if part in text), "")
            return mark_ambiguous(refusal(body, raw), part, _AMBIGUOUS)
    return Accepted()


def balances_in(body: Body) -> list[FloatBalance | None]:
    """One for each country: `"Balance SN": "12345 XOF"`."""
    balances = {key.removeprefix(_BALANCE_KEY): value for key, value in body.items() if key.startswith(_BALANCE_KEY)}
    return [_balance(country, value) for country, value in balances.items()] or [None]


def _balance(country: str, value: object) -> FloatBalance | None:
    match = _BALANCE.fullmatch((text_or_none(value) or "").strip())
    if match is None:
        return None
    return balance_of(country, hundredths("".join(match[1].split())), match[2])
