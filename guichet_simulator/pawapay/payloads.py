"""The operators that pawaPay calls providers, the numbers of its sandbox, what it refuses in a request, and the JSON it
sends.

Source: docs/providers/pawapay.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from guichet.clock import SECOND, Instant, iso
from guichet_simulator.http_helpers import ErrorResponse, Refused, hundredths, is_uuid
from guichet_simulator.models import PENDING, Claim, Fees, Kind, Transaction
from guichet_simulator.scenarios import BY_NAME, Scenario

CREDITS: Final = ("refund", "payout")
#: Percent of the amount that pawaPay charges.
FEES: Final[Fees] = {"debit": 2, "credit": 1}
#: Hundredths.
MAX_AMOUNT: Final = 2_000_000_00

Auth = Literal["PROVIDER_AUTH", "PREAUTH", "REDIRECT_AUTH"]


@dataclass(frozen=True, slots=True)
class Provider:
    """How the customer confirms: PROVIDER_AUTH (PIN prompt), PREAUTH (a code beforehand) or REDIRECT_AUTH (a page)."""

    country: str
    dial: str
    sandbox_number: str | None
    auth: Auth = "PROVIDER_AUTH"
    currency: str = "XOF"


PROVIDERS: Final[dict[str, Provider]] = {
    "MTN_MOMO_BEN": Provider("BEN", "229", "22951345789"),
    "MOOV_BEN": Provider("BEN", "229", "22995345789"),
    "MOOV_BFA": Provider("BFA", "226", "22602345678"),
    "ORANGE_BFA": Provider("BFA", "226", "22607345678", auth="PREAUTH"),
    "MTN_MOMO_CIV": Provider("CIV", "225", "2250503456789"),
    "ORANGE_CIV": Provider("CIV", "225", "2250734567890"),
    "WAVE_CIV": Provider("CIV", "225", None, auth="REDIRECT_AUTH"),
    "ORANGE_SEN": Provider("SEN", "221", "221773456789"),
    "FREE_SEN": Provider("SEN", "221", "221763456789"),
    "WAVE_SEN": Provider("SEN", "221", None, auth="REDIRECT_AUTH"),
    "MTN_MOMO_COG": Provider("COG", "242", "242063456789", currency="XAF"),
}

#: The last three digits of a sandbox number; its other digits are those of the number that succeeds.
_SANDBOX_SUFFIXES: Final = {
    "019": ("declined", "limit_reached"),
    "029": ("declined", "payer_not_found"),
    "039": ("declined", "rejected_by_payer"),
    "048": ("declined", "insufficient_funds"),
    "049": ("declined", "insufficient_funds"),
    "068": ("declined", "unspecified"),
    "069": ("declined", "unspecified"),
    "129": ("never_final", None),
    "138": ("never_final", None),
}
_CREDIT_SUFFIXES: Final = {
    "089": ("declined", "payer_not_found"),
    "099": ("declined", "limit_reached"),
    "109": ("declined", "limit_reached"),
    "118": ("declined", "unspecified"),
    "119": ("declined", "unspecified"),
}


def sandbox_scenario(provider: Provider, phone: str, kind: Kind) -> Scenario | None:
    """What pawaPay's own sandbox does with this number; None when it is not a number of the sandbox."""
    known = provider.sandbox_number
    if known is None or phone[:-3] != known[:-3]:
        return None
    if phone == known:
        return BY_NAME["succeeds"]
    suffixes = _SANDBOX_SUFFIXES if kind == "debit" else _CREDIT_SUFFIXES
    name, reason = suffixes.get(phone[-3:], (None, None))
    return replace(BY_NAME[name], reason=reason) if name else None


#: Seconds after which an accepted transaction is processed, and one that never ends is reconciled.
_PROCESSING_AFTER: Final = 1
_RECONCILED_AFTER: Final = 3

#: A reason of a scenario → the failure code.
REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "INSUFFICIENT_BALANCE",
    "payer_not_found": "PAYER_NOT_FOUND",
    "rejected_by_payer": "PAYMENT_NOT_APPROVED",
    "expired": "PAYMENT_NOT_APPROVED",
    "limit_reached": "PAYER_LIMIT_REACHED",
}
_CREDIT_REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "WALLET_LIMIT_REACHED",
    "payer_not_found": "RECIPIENT_NOT_FOUND",
    "limit_reached": "WALLET_LIMIT_REACHED",
}
_CLAIMED_STATUSES: Final[Mapping[str | None, str]] = {
    "succeeded": "COMPLETED",
    "failed": "FAILED",
    "expired": "FAILED",
    "processing": "PROCESSING",
}


def failure(code: str) -> dict[str, object]:
    return {"failureReason": {"failureCode": code, "failureMessage": code.replace("_", " ").capitalize()}}


def rejected(code: str, status: int = 200) -> ErrorResponse:
    return ErrorResponse(status, {"status": "REJECTED", **failure(code)})


def status_word(tx: Transaction, now: Instant) -> str:
    """The true status, in pawaPay's word."""
    if tx.state != PENDING:
        return {"succeeded": "COMPLETED"}.get(tx.state, "FAILED")
    age = (now - tx.created_at) / SECOND
    never_ends = tx.scenario in ("never_final", "pending_long")
    if tx.kind == "credit" and never_ends:
        return "ENQUEUED"
    if never_ends and age > _RECONCILED_AFTER:
        return "IN_RECONCILIATION"
    return "PROCESSING" if age > _PROCESSING_AFTER else "ACCEPTED"


def transaction_payload(tx: Transaction, now: Instant, claim: Claim | None = None) -> dict[str, Any]:
    """The `data` of a status response, and a callback; `claim` states another status than the true one."""
    status = _CLAIMED_STATUSES.get(claim) or status_word(tx, now)
    resource = tx.resource
    account = {"type": "MMO", "accountDetails": {"phoneNumber": tx.phone, "provider": tx.operator}}
    payload: dict[str, Any] = {
        f"{resource}Id": tx.ref,
        "status": status,
        "currency": tx.stated_currency,
        "country": PROVIDERS[tx.operator].country,
        "recipient" if tx.kind == "credit" else "payer": account,
        "customerMessage": tx.detail.get("message"),
        "clientReferenceId": tx.client_ref,
        "created": iso(tx.created_at),
        "metadata": tx.detail["metadata"],
    }
    if tx.stated_amount is not None:
        payload["amount"] = f"{tx.stated_amount // 100}.{tx.stated_amount % 100:02d}"
    if resource == "refund":
        payload["depositId"] = tx.detail["depositId"]
    if status == "COMPLETED":
        payload["providerTransactionId"] = str(8_000_000_000 + tx.id)
    if status == "FAILED":
        reasons = REASONS if tx.kind == "debit" else _CREDIT_REASONS
        payload |= failure(reasons.get(tx.reason, "UNSPECIFIED_FAILURE"))
    return payload | _page_fields(tx, status, now)


def _page_fields(tx: Transaction, status: str, now: Instant) -> dict[str, str]:
    """The address of the page where the customer confirms, which comes half a second after the deposit."""
    page = tx.detail.get("page_url")
    if not page or status in ("COMPLETED", "FAILED"):
        return {}
    if now - tx.created_at < SECOND // 2:
        return {"nextStep": "GET_AUTH_URL"}
    return {"nextStep": "REDIRECT_TO_AUTH_URL", "authorizationUrl": page}


_AMOUNT: Final = re.compile(r"([0]|([1-9][0-9]{0,17}))([.][0-9]{0,3}[1-9])?")
_MESSAGE: Final = re.compile(r"[A-Za-z0-9 ]{4,22}")
_MAX_METADATA: Final = 10


def check_input(body: Mapping[str, Any], id_field: str, party_field: str | None) -> None:
    """Raises Refused (HTTP 400) for a field that is missing or malformed. A refund has no `party_field`."""
    echo = {id_field: body.get(id_field)}
    required = [body.get(id_field)]
    if party_field is not None:
        required += [body.get("amount"), body.get("currency")]
    if any(value in (None, "") for value in required):
        raise Refused(rejected("MISSING_PARAMETER", 400), echo)
    if party_field is not None:
        party = body.get(party_field) or {}
        details = party.get("accountDetails") if isinstance(party, dict) else None
        if not isinstance(details, dict):
            raise Refused(rejected("MISSING_PARAMETER", 400), echo)
        if party.get("type") != "MMO" or not {"phoneNumber", "provider"} <= details.keys():
            raise Refused(rejected("INVALID_PARAMETER", 400), echo)
    message, metadata = body.get("customerMessage"), body.get("metadata", [])
    valid = (
        is_uuid(str(body[id_field]))
        and (message is None or bool(_MESSAGE.fullmatch(str(message))))
        and isinstance(metadata, list)
        and len(metadata) <= _MAX_METADATA
    )
    if not valid:
        raise Refused(rejected("INVALID_PARAMETER", 400), echo)


def business_error(body: Mapping[str, Any], party: Mapping[str, Any]) -> str | None:
    """The failure code of a request that is answered 200 and REJECTED."""
    provider = PROVIDERS.get(str(party["provider"]))
    if provider is None:
        return "INVALID_PROVIDER"
    if body["currency"] != provider.currency:
        return "INVALID_CURRENCY"
    amount = hundredths(body["amount"], provider.currency)
    if not isinstance(body["amount"], str) or not _AMOUNT.fullmatch(body["amount"]) or amount is None:
        return "INVALID_AMOUNT"
    phone = str(party["phoneNumber"])
    if not phone.isdigit() or not phone.startswith(provider.dial):
        return "INVALID_PHONE_NUMBER"
    return "AMOUNT_OUT_OF_BOUNDS" if amount > MAX_AMOUNT else None


def confirmation_error(provider: Provider, body: Mapping[str, Any]) -> ErrorResponse | None:
    """HTTP 400 when the code is missing, or for page addresses where there is no page."""
    if provider.auth == "PREAUTH" and not body.get("preAuthorisationCode"):
        return rejected("MISSING_PARAMETER", 400)
    if provider.auth != "REDIRECT_AUTH" and (body.get("successfulUrl") or body.get("failedUrl")):
        return rejected("UNSUPPORTED_PARAMETER", 400)
    return None
