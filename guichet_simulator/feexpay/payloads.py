"""FeexPay's nineteen networks (what each one needs for a payin, how it pays out), what it refuses in a request, and the
JSON it sends about a transaction (docs/providers/feexpay.md)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from guichet.clock import Instant, iso, to_datetime
from guichet_simulator.http_helpers import ErrorResponse, Refused, units
from guichet_simulator.models import PENDING, SUCCEEDED, Transaction, by_state

#: A reason of a scenario → the `reason` of a failed transaction.
REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED",
    "payer_not_found": "PAYER_NOT_FOUND",
    "rejected_by_payer": "APPROVAL_REJECTED",
    "expired": "EXPIRED",
    "declined": "CARD_DECLINED",
}

#: A state or a claim → the `status`.
STATES: Final = by_state(pending="PENDING", succeeded="SUCCESSFUL", failed="FAILED", expired="FAILED")


@dataclass(frozen=True, slots=True)
class Network:
    """`payout_path` ends the path of payouts; None for `transfer/global`, "" where there are no payouts."""

    label: str
    dial: str
    payout_path: str | None
    currency: str = "XOF"
    #: The customer confirms on a web page or in an app that `payment_url` opens.
    redirects: bool = False
    needs_return_url: bool = False
    #: The customer gets a code beforehand, and the payin must contain it.
    needs_code: bool = False
    #: A payin without a code makes the network text one.
    sends_code: bool = False
    #: The value of `network` that distinguishes this network from others with the same payout path.
    payout_label: str | None = None
    min_payout: int = 100

    def reference(self, now: Instant, ref: str) -> str:
        """FeexPay's identifier of a transaction: Celtiis has a format of its own, the others a UUID."""
        if self.label == "CELTIIS BJ":
            return f"AG_{to_datetime(now):%Y%m%d}_{ref.replace('-', '')[:20]}"
        return ref


NETWORKS: Final[dict[str, Network]] = {
    "mtn": Network("MTN", "229", None, payout_label="MTN", min_payout=50),
    "moov": Network("MOOV", "229", None, payout_label="MOOV", min_payout=50),
    "celtiis_bj": Network("CELTIIS BJ", "229", "celtiis_bj", payout_label="CELTIIS BJ", min_payout=50),
    "coris": Network("CORIS", "229", "", sends_code=True),
    "moov_bf": Network("MOOV BF", "226", "moov_bf"),
    "orange_bf": Network("ORANGE BF", "226", "orange_bf", needs_code=True),
    "wave_bf": Network("WAVE BF", "226", "wave_bf", redirects=True),
    "mtn_ci": Network("MTN CI", "225", "mtn_ci"),
    "moov_ci": Network("MOOV CI", "225", "moov_ci", redirects=True),
    "orange_ci": Network("ORANGE CI", "225", "orange_ci", redirects=True),
    "wave_ci": Network("WAVE CI", "225", "wave_ci", redirects=True),
    "orange_ml": Network("ORANGE ML", "223", "orange_ml"),
    "mobicash_ml": Network("MOBICASH ML", "223", "mobicash_ml"),
    "orange_sn": Network("ORANGE SN", "221", "orange_sn", redirects=True),
    "free_sn": Network("FREE SN", "221", "free_sn", redirects=True, needs_return_url=True),
    "wave_sn": Network("WAVE SN", "221", "wave_sn", redirects=True),
    "togocom_tg": Network("TOGOCOM TG", "228", "togo", payout_label="TOGOCOM TG"),
    "moov_tg": Network("MOOV TG", "228", "togo", payout_label="MOOV TG"),
    "mtn_cg": Network("MTN CG", "242", "mtn_cg", currency="XAF"),
}


def payout_network(path: str | None, label: object) -> tuple[str, Network] | None:
    """The operator and the network that a payout names by its path and its `network`; None when there is none."""
    for operator, network in NETWORKS.items():
        if network.payout_path == path and network.payout_label in (None, label):
            return operator, network
    return None


def callback_info_text(callback_info: object) -> str | None:
    return None if callback_info is None else str(callback_info)


def echoed_fields(body: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a request that responses and callbacks repeat."""
    names = ("first_name", "last_name", "email", "description", "motif")
    return {name: str(body[name]) for name in names if body.get(name)}


def network_label(tx: Transaction) -> str:
    return NETWORKS[tx.operator].label if tx.operator in NETWORKS else tx.operator


def initiation_payload(tx: Transaction, *, final: bool) -> dict[str, Any]:
    """The response to a payin. Only some networks state a final status in it; Moov Bénin does."""
    page = tx.detail.get("page_url")
    payload = {
        "reference": tx.ref,
        "transref": tx.ref,
        "status": STATES[tx.state] if final else "PENDING",
        "message": "Accepted",
        "amount": tx.amount // 100,
        "description": tx.detail["body"].get("description", ""),
        "callback_info": tx.client_ref,
        "phoneNumber": tx.phone,
    }
    return payload | ({"payment_url": page} if page else {})


def transaction_payload(tx: Transaction, status: str | None = None) -> dict[str, Any]:
    """The response to a status call; `status` states another one than the true one."""
    word = status or STATES[tx.state]
    payload = {
        "reference": tx.ref,
        "transref": tx.ref,
        "serviceref": tx.ref,
        "amount": units(tx.stated_amount),
        "phoneNumber": tx.phone,
        "status": word,
        "callback_info": tx.client_ref,
        "responsecode": word,
        "responsemsg": word,
        "reason": REASONS.get(tx.reason, "") if word == "FAILED" else "",
        "comment": "",
        "description": tx.detail["body"].get("description", tx.detail["body"].get("motif", "")),
        "operator_id": _operator_id(tx) if word == "SUCCESSFUL" else "",
        "date": iso(tx.decided_at or tx.created_at),
    }
    if tx.stated_amount is None:
        del payload["amount"]
    return payload


def callback_payload(tx: Transaction, status: str, now: Instant) -> dict[str, Any]:
    payload = transaction_payload(tx, status)
    return {
        "reference": tx.ref,
        "order_id": tx.ref,
        "status": payload["status"],
        "amount": payload.get("amount"),
        "callback_info": tx.client_ref,
        "type": "Paiement" if tx.kind == "debit" else "Payout",
        "reseau": network_label(tx),
        "phoneNumber": tx.phone,
        "date": iso(now),
        "description": payload["description"],
        "reason": payload["reason"],
        "ref_operator": payload["operator_id"],
    } | {name: tx.detail["body"].get(name, "") for name in ("first_name", "last_name", "email")}


def history_row(tx: Transaction) -> dict[str, Any]:
    return {
        "reference": tx.ref,
        "type": "PAYMENT_API" if tx.kind == "debit" else "PAYOUT_API",
        "status": STATES[tx.state],
        "amount": units(tx.stated_amount),
        "reseau": network_label(tx),
        "phone_number": tx.phone,
        "financial_transaction_id": _operator_id(tx) if tx.state == SUCCEEDED else "",
        "custom_id": "",
        "description": tx.detail["body"].get("description", ""),
        "callback_info": tx.client_ref,
        "reason": "" if tx.state in (PENDING, SUCCEEDED) else REASONS.get(tx.reason, ""),
        "date": iso(tx.created_at),
    }


def _operator_id(tx: Transaction) -> str:
    return str(9_000_000_000 + tx.id)


CARDS: Final = ("VISA", "MASTERCARD")
MIN_PAYIN: Final = 100
MAX_PAYIN: Final = 2_000_000
_MAX_MOTIF: Final = 30
_PLAIN_TEXT: Final = re.compile(r"[A-Za-z0-9 ]*")


def error(status: int, message: object, code: str | None = None, *, retry_after: str | None = None) -> ErrorResponse:
    """`message` is a text, or the list of everything that is wrong."""
    body = {"statusCode": status, "message": message} | ({"code": code} if code else {})
    return ErrorResponse(status, body, {"Retry-After": retry_after} if retry_after else {})


def check_payin(network: Network, body: Mapping[str, Any]) -> None:
    """Raises Refused for the first error, in the order in which FeexPay looks."""
    required = {"shop", "amount", "phoneNumber"}
    required |= {"otp"} if network.needs_code else set()
    required |= {"return_url"} if network.needs_return_url else set()
    if empty := [f"{name} should not be empty" for name in sorted(required) if not body.get(name)]:
        raise Refused(error(400, empty))
    if not _is_amount(body["amount"], MIN_PAYIN) or body["amount"] > MAX_PAYIN:
        raise Refused(error(400, f"amount must be between {MIN_PAYIN} and {MAX_PAYIN}", "ERR_INVALID_AMOUNT"))
    phone = str(body["phoneNumber"])
    if not phone.isdigit():
        raise Refused(error(400, "phoneNumber must contain digits only", "ERR_INVALID_PHONE_NUMBER"))
    if not phone.startswith(network.dial):
        raise Refused(error(405, "mauvais reseau"))
    if not _PLAIN_TEXT.fullmatch(str(body.get("description") or "")):
        raise Refused(error(400, ["description must contain letters, digits and spaces only"]))


def check_card(body: Mapping[str, Any]) -> None:
    if empty := [name for name in ("shop", "phone", "first_name", "last_name", "email") if not body.get(name)]:
        raise Refused(error(400, [f"{name} should not be empty" for name in empty]))
    if body.get("type_card") not in CARDS or not _is_amount(body.get("amount"), MIN_PAYIN):
        raise Refused(error(400, ["type_card or amount is invalid"]))


def check_payout(network: Network, body: Mapping[str, Any]) -> None:
    if empty := [name for name in ("shop", "amount", "phoneNumber", "motif") if not body.get(name)]:
        raise Refused(error(400, [f"{name} should not be empty" for name in empty]))
    if not _is_amount(body["amount"], network.min_payout):
        raise Refused(error(400, f"amount must be at least {network.min_payout}", "ERR_INVALID_AMOUNT"))
    motif = str(body["motif"])
    if len(motif) > _MAX_MOTIF or not _PLAIN_TEXT.fullmatch(motif):
        raise Refused(error(400, [f"motif must be {_MAX_MOTIF} letters, digits and spaces at most"]))
    if not str(body["phoneNumber"]).startswith(network.dial):
        raise Refused(error(400, "Invalid phone number", "ERR_INVALID_PHONE_NUMBER"))


def _is_amount(amount: object, minimum: int) -> bool:
    return isinstance(amount, int) and not isinstance(amount, bool) and amount >= minimum
