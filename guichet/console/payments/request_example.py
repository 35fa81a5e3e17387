"""The request to the API that would make a payment, for a terminal, with a placeholder for the key."""

import json
import shlex
from typing import Any, Final

from guichet.domain.money import DEFAULT_CURRENCY, plain
from guichet.domain.payments import DEFAULT_COUNTRY, DEFAULT_DESCRIPTION, Payment
from guichet.printable import printable_json

#: In place of the key; a shell says that the variable is not set.
KEY_PLACEHOLDER: Final = "$GUICHET_KEY"


def curl_example(payment: Payment, public_url: str) -> str:
    """A command in one text of several lines. A code that the customer typed was not stored, and is not in it."""
    body = printable_json(json.dumps(_body(payment), ensure_ascii=False, indent=2))
    amount = f'"amount": {plain(payment.amount)}'
    body = body.replace('"amount": null', amount, 1)
    return (
        f"curl -X POST {shlex.quote(f'{public_url}/v1/payments')} \\\n"
        f'  -H "Authorization: Bearer {KEY_PLACEHOLDER}" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(body)}"
    )


def _body(payment: Payment) -> dict[str, Any]:
    customer = {
        "firstname": payment.firstname,
        "lastname": payment.lastname,
        "email": payment.email,
        "address": payment.address,
        "country": None if payment.country == DEFAULT_COUNTRY else payment.country,
    }
    fields = {
        "currency": None if payment.currency == DEFAULT_CURRENCY else payment.currency,
        "operator": payment.operator,
        "phone_number": payment.phone_number,
        "description": None if payment.description == DEFAULT_DESCRIPTION else payment.description,
        "external_id": payment.external_id,
        "return_url": payment.return_url,
        "callback_url": payment.callback_url,
        "metadata": json.loads(payment.metadata) if payment.metadata else None,
        "customer": {name: value for name, value in customer.items() if value} or None,
    }
    # The amount is written as its exact decimal afterwards: JSON libraries know binary fractions only.
    return {"amount": None, **{name: value for name, value in fields.items() if value is not None}}
