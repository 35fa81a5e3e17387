"""What FeexPay refuses in a request (docs/providers/feexpay.md, "Errors", "Codes and limits")."""

import re
from collections.abc import Mapping
from typing import Any, Final

from guichet_simulator.feexpay.payloads import Network
from guichet_simulator.http_helpers import ErrorResponse, Refused

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
