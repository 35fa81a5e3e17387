"""What pawaPay refuses in a request (docs/providers/pawapay.md, "Errors", "Codes and limits")."""

import re
from collections.abc import Mapping
from typing import Any, Final

from guichet_simulator.http_helpers import ErrorResponse, Refused, hundredths, is_uuid
from guichet_simulator.models import Transaction
from guichet_simulator.pawapay.payloads import MAX_AMOUNT, PROVIDERS, Provider, rejected
from guichet_simulator.store import Store

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


def refund_error(store: Store, debit: Transaction, left: int, body: Mapping[str, Any]) -> str | None:
    """The failure code of a refund; `left` hundredths of the debit can still be refunded."""
    if left <= 0:
        running = store.select("provider = 'pawapay' AND parent = ? AND state = 'pending'", debit.ref)
        return "REFUND_IN_PROGRESS" if running else "DEPOSIT_ALREADY_REFUNDED"
    amount = hundredths(body["amount"], debit.currency)
    if amount is None:
        return "INVALID_AMOUNT"
    if body["currency"] != debit.currency:
        return "INVALID_CURRENCY"
    return "AMOUNT_TOO_LARGE" if amount > left else None
