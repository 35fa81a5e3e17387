"""The JSON that Sonatel sends (docs/providers/sonatel.md, "Asking for its state", "Errors")."""

from collections.abc import Mapping
from typing import Any, Final

from guichet_simulator.http_helpers import ErrorResponse, units
from guichet_simulator.models import Transaction, by_state

#: The dialling code of Sénégal: the API has national numbers.
DIAL: Final = "221"
#: A state or a claim → the `status`.
STATES: Final = by_state(pending="PENDING", succeeded="SUCCESS", failed="FAILED", expired="CANCELLED")


#: Where four public clients find the rows of the list; None: the response is the bare list.
_LIST_SHAPES: Final = (None, "transactions", "data", "content")


def list_shape(reference: str) -> str | None:
    """Where the list about this reference stands in the response. All shapes occur: a client must read each of them."""
    return _LIST_SHAPES[sum(reference.encode()) % len(_LIST_SHAPES)]


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> ErrorResponse:
    """An error as `application/problem+json`."""
    body = {
        "type": "https://developer.orange-sonatel.com/errors",
        "title": detail,
        "instance": "/",
        "status": str(status),
        "code": code,
        "detail": detail,
        "violations": [],
    }
    return ErrorResponse(status, body, {"Content-Type": "application/problem+json", **(headers or {})})


def transaction_payload(tx: Transaction, status: str | None = None) -> dict[str, Any]:
    """A row of the list, and a callback; `status` states another one than the true one."""
    payment = tx.kind == "debit"
    return {
        "transactionId": tx.ref,
        "reference": tx.client_ref,
        "status": status or STATES[tx.state],
        "type": "MERCHANT_PAYMENT" if payment else "CASHIN",
        "channel": "API",
        "paymentMethod": "ONE_STEP",
        "amount": {"value": units(tx.stated_amount), "unit": tx.stated_currency},
        "customer": {"idType": "MSISDN", "id": (tx.phone or "").removeprefix(DIAL)},
        "partner": {"idType": "CODE" if payment else "MSISDN", "id": tx.detail["merchant"]},
        "metadata": tx.detail["metadata"],
    }
