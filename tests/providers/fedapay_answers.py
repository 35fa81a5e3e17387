"""What FedaPay answers, for the tests of its connector."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.providers.provider_under_test import REFERENCE, REFUND, ProviderUnderTest, Scripted, provider_under_test

TOKEN = {"token": "jwt", "url": "https://process.fedapay.com/jwt"}
NOT_ALLOWED = {"message": "Opération non autorisée", "errors": {}}
TAKEN_ALREADY = (422, {"message": "…", "errors": {"merchant_reference": ["has already been taken"]}})
PAGE = "https://process.fedapay.com/jwt"


def transaction(status: str = "pending", **changes: Any) -> Scripted:
    found = {"id": 412345, "status": status, "amount": 5000, "currency_id": 1, "mode": "moov", "metadata": {}}
    found |= {"merchant_reference": REFERENCE, "custom_metadata": {"reference": REFERENCE}, "last_error_code": None}
    return 200, {"v1/transaction": found | changes}


def payout(status: str = "pending", **changes: Any) -> Scripted:
    found = {"id": 77, "status": status, "amount": 5000, "currency_id": 1, "merchant_reference": REFUND}
    return 200, {"v1/payout": found | {"last_error_code": None} | changes}


def fedapay(
    *answers: Scripted, token: object = TOKEN, **settings: str
) -> AbstractAsyncContextManager[ProviderUnderTest]:
    return provider_under_test("fedapay", *answers, token=token, **settings)


def lines(tested: ProviderUnderTest) -> list[str]:
    return [request.line.partition(" HTTP")[0].partition("?")[0] for request in tested.received]
