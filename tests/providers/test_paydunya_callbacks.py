"""PayDunya: which payment or payout each form of a callback names (docs/providers/paydunya.md, "Callbacks")."""

from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from guichet.providers.base import CallbackReference
from tests.providers.provider_under_test import REFERENCE, REFUND, callback, provider_under_test
from tests.providers.test_paydunya import DIGEST, TOKEN

MESSAGE: dict[str, Any] = {
    "hash": DIGEST, "status": "completed", "invoice": {"token": TOKEN}, "custom_data": {"reference": REFERENCE},
}  # fmt: skip
FORM = urlencode(
    {
        "data[hash]": DIGEST,
        "data[invoice][token]": TOKEN,
        "data[invoice][items][item_0][name]": "x",
        "data[custom_data][reference]": REFERENCE,
        "data[status]": "completed",
    }
).encode()


@pytest.mark.parametrize(
    "body",
    [
        FORM,
        msgspec.json.encode({"data": MESSAGE}),
        msgspec.json.encode({"hash": DIGEST, "data": {**MESSAGE, "hash": None}} | {"data": MESSAGE}),
        msgspec.json.encode(MESSAGE),
        urlencode({"data": msgspec.json.encode(MESSAGE).decode()}).encode(),
        urlencode({"data": urlencode({"": msgspec.json.encode(MESSAGE).decode()})[1:]}).encode(),
    ],
    ids=["form", "json", "json with both", "flat", "text in a form", "text encoded twice"],
)
async def test_a_callback_of_each_form_names_the_payment(body: bytes) -> None:
    async with provider_under_test("paydunya", (200, b"")) as paydunya:
        assert paydunya.provider.parse_callback(callback(body)) == CallbackReference(REFERENCE, TOKEN)


async def test_a_callback_without_the_digest_names_no_invoice() -> None:
    async with provider_under_test("paydunya", (200, b"")) as paydunya:
        for changes in ({"hash": "0" * 128}, {"hash": None}, {"hash": ["x"]}):
            forged = paydunya.provider.parse_callback(callback({**MESSAGE, **changes}))
            assert forged == CallbackReference(REFERENCE, None)


async def test_the_empty_callback_that_tries_our_address_is_readable() -> None:
    """It comes while a payout is announced; its address says which."""
    async with provider_under_test("paydunya", (200, b"")) as paydunya:
        assert paydunya.provider.parse_callback(callback(b"")) == CallbackReference()
        payout = {"status": "success", "token": TOKEN, "disburse_id": REFUND, "hash": DIGEST}
        assert paydunya.provider.parse_callback(callback(payout)) == CallbackReference(REFUND, TOKEN)
        for hostile in (b"\xff\xfe", b"[]", b"null", b"&" * 5000, b"a[" * 500 + b"=1", b"data[x][y]=1&data[x]=2"):
            paydunya.provider.parse_callback(callback(hostile))
