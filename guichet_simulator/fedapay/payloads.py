"""FedaPay's modes, what it refuses in a request, and its objects and events (docs/providers/fedapay.md)."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import DAY, Instant, iso
from guichet_simulator.fedapay.records import Record
from guichet_simulator.http_helpers import ErrorResponse, Refused, units
from guichet_simulator.models import PENDING, SUCCEEDED, Transaction

#: The modes that ask for the PIN, with the country and its dialling code.
PUSH_MODES: Final[Mapping[str, tuple[str, str]]] = {
    "mtn_open": ("bj", "229"),
    "moov": ("bj", "229"),
    "sbin": ("bj", "229"),
    "togocel": ("tg", "228"),
    "moov_tg": ("tg", "228"),
    "mtn_ci": ("ci", "225"),
    "free_sn": ("sn", "221"),
}
#: The only mode of the sandbox, whose keys say so.
SANDBOX_MODE: Final = "momo_test"
PAYOUT_MODES: Final = (
    *(mode for mode in PUSH_MODES if mode != "free_sn"),
    *("mtn", "moov_ci", "orange_ci", "wave_ci", "orange_sn", "wave_sn", "moov_bf", "orange-bf"),
)
MIN_PAYIN: Final = 100
MAX_PAYOUT: Final = 1_000_000
_FIRST_ACCOUNT: Final = 1234
_CURRENCY_IDS: Final = {"XOF": 1, "GNF": 2, "EUR": 3, "XAF": 4}
#: Microseconds until an approved transaction is part of the balance.
_TRANSFERRED_AFTER: Final = 3 * DAY
_ERROR_CODES: Final[Mapping[str | None, str]] = {"insufficient_funds": "INSUFFICIENT_FUND_ERROR"}
_TIMES: Final = ("approved_at", "canceled_at", "declined_at", "transferred_at", "sent_at", "failed_at")


def error(status: int, message: str, errors: Mapping[str, list[str]] | None = None) -> ErrorResponse:
    details = {} if errors is None else {"errors": errors}
    return ErrorResponse(status, {"message": message, **details})


NOT_ALLOWED: Final = "Opération non autorisée"
FLOAT_EMPTY: Final = "Solde insuffisant"


def check_creation(body: Mapping[str, Any], least: int) -> None:
    """Raises Refused for a transaction or payout whose fields are wrong."""
    amount, currency = body.get("amount"), body.get("currency")
    if not isinstance(amount, int) or isinstance(amount, bool) or amount < least:
        raise Refused(error(400, "Validation échouée", {"amount": [f"doit être au moins {least}"]}))
    if not isinstance(currency, dict) or currency.get("iso") != "XOF":
        raise Refused(error(400, "Validation échouée", {"currency": ["est invalide"]}))


def check_description(body: Mapping[str, Any]) -> None:
    if not body.get("description"):
        raise Refused(error(400, "Validation échouée", {"description": ["doit être rempli"]}))


def phone_of(value: object, countries: Mapping[str, str]) -> str:
    """The digits of a number with its country code. Raises Refused; a text in place of the object is answered 500."""
    if isinstance(value, str):
        raise Refused(ErrorResponse(500))
    if not isinstance(value, dict) or not value.get("number"):
        raise Refused(error(400, "Paramètre manquant ou la valeur est vide : phone_number"))
    number, dial = str(value["number"]), countries.get(str(value.get("country")))
    digits = number.removeprefix("+")
    if dial is None or not digits.isdigit() or (number.startswith("+") and not digits.startswith(dial)):
        raise Refused(error(400, "Numéro invalide", {"phone_number": ["est invalide"]}))
    return digits if number.startswith("+") else dial + digits


def transaction_object(
    record: Record, tx: Transaction | None, now: Instant, *, expired: bool, claim: str | None = None
) -> dict[str, Any]:
    """`claim`: another state than the true one."""
    state = claim or (tx.state if tx else "expired" if expired else PENDING)
    reason = tx.reason if tx else None
    decided_at = tx.decided_at if tx and tx.decided_at else None
    word = {
        PENDING: "pending",
        SUCCEEDED: "approved",
        "failed": "canceled" if reason == "insufficient_funds" else "declined",
        "expired": "expired",
    }[state]
    if word == "approved" and claim is None and decided_at and now - decided_at >= _TRANSFERRED_AFTER:
        word = "transferred"
    payload = _common(record, tx, "transaction", word, decided_at or now) | {
        "operation": "payment",
        "callback_url": record.get("callback_url"),
        "amount_debited": units(tx.amount) if tx and state == SUCCEEDED else None,
        "payment_url": None,
    }
    paid_by = tx.phone if tx and tx.detail.get("page_url") and state == SUCCEEDED else None
    payload["metadata"] = {"paid_customer": {"firstname": "Awa", "phone": f"+{paid_by}"}} if paid_by else {}
    return payload


def payout_object(record: Record, tx: Transaction | None, now: Instant, *, claim: str | None = None) -> dict[str, Any]:
    state = claim or (tx.state if tx else None)
    words = {None: "pending", PENDING: "processing", SUCCEEDED: "sent", "failed": "failed", "expired": "failed"}
    return _common(record, tx, "payout", words[state], tx.decided_at if tx and tx.decided_at else now)


def _common(record: Record, tx: Transaction | None, klass: str, word: str, at: Instant) -> dict[str, Any]:
    currency = (tx.stated_currency if tx else None) or "XOF"
    payload: dict[str, Any] = {
        "klass": f"v1/{klass}",
        "id": record["id"],
        "reference": f"trx_{record['id']}",
        "amount": units(tx.stated_amount) if tx else record["amount"],
        "description": record.get("description"),
        "status": word,
        "mode": (tx.operator if tx else record.get("mode")) or None,
        "currency_id": _CURRENCY_IDS[currency],
        "currency": {"klass": "v1/currency", "iso": currency},
        "merchant_reference": record.get("merchant_reference"),
        "custom_metadata": record.get("custom_metadata"),
        "account_id": _FIRST_ACCOUNT + sum(map(ord, record["company"])),
        "fees": 0 if word in ("approved", "transferred", "sent") else None,
        "last_error_code": _ERROR_CODES.get(tx.reason) if tx else None,
        "created_at": iso(record["created_at"]),
        "updated_at": iso(at),
        **dict.fromkeys(_TIMES),
    }
    if f"{word}_at" in payload:
        payload[f"{word}_at"] = iso(at)
    if tx and tx.stated_amount is None:
        del payload["amount"]
    return payload


def without_currency(payload: dict[str, Any], include: str | None) -> dict[str, Any]:
    """The object `currency` is shown to those who ask for it."""
    if "currency" not in (include or "").split(","):
        payload.pop("currency", None)
    return payload


def page_of(rows: list[dict[str, Any]], query: Mapping[str, str], name: str) -> dict[str, Any]:
    page, per_page = max(1, int(query.get("page", 1))), max(1, min(int(query.get("per_page", 25)), 100))
    pages = -(-len(rows) // per_page)
    meta = {
        "current_page": page,
        "next_page": page + 1 if page < pages else None,
        "prev_page": page - 1 if page > 1 else None,
        "per_page": per_page,
        "total_pages": pages,
        "total_count": len(rows),
    }
    return {f"v1/{name}": rows[(page - 1) * per_page : page * per_page], "meta": meta}
