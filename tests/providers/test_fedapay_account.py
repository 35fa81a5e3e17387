"""FedaPay: its events, the history of an account, and whose account it is (docs/providers/fedapay.md)."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from guichet.clock import DAY, SECOND, earlier, iso
from guichet.providers.base import Callback, CallbackReference, Unknown
from guichet.providers.capabilities import History, StatesIdentity
from guichet.providers.fedapay import TYPE
from guichet.providers.shared.signatures import hmac_sha256_hex
from guichet_simulator.app import SECRETS
from tests.providers.fedapay_answers import fedapay, lines
from tests.providers.provider_under_test import (
    NOW,
    REFERENCE,
    Scripted,
    callback,
)


def event(name: str = "transaction.approved", **changes: Any) -> dict[str, Any]:
    entity = {"id": 412345, "merchant_reference": REFERENCE, "status": "approved"}
    return {"name": name, "object_id": 412345, "entity": entity, "account": {"id": 1}, **changes}


def signed(body: object, *, age: int = 0, secret: str = SECRETS["fedapay"], more: str = "") -> Callback:
    raw, seconds = msgspec.json.encode(body), NOW // SECOND - age
    digest = hmac_sha256_hex(secret, f"{seconds}.".encode() + raw)
    return callback(raw, {"X-FEDAPAY-SIGNATURE": f"t={seconds}{more},s={digest}"})


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (event(), CallbackReference(REFERENCE, "412345")),
        ({**event(), "name": None, "type": "transaction.canceled"}, CallbackReference(REFERENCE, "412345")),
        (event(entity=msgspec.json.encode(event()["entity"]).decode()), CallbackReference(REFERENCE, "412345")),
        (event(entity={"id": 1, "custom_metadata": {"reference": REFERENCE}}), CallbackReference(REFERENCE, "1")),
        (event("payout.sent"), CallbackReference(REFERENCE, None)),
        (event(entity={"id": 412345}), CallbackReference()),
        (event("customer.created"), CallbackReference()),
        (event(entity="no object"), CallbackReference()),
    ],
)
async def test_an_event_names_our_reference_and_its_id_beside_it(said: object, named: CallbackReference) -> None:
    async with fedapay((200, {})) as tested:
        assert tested.provider.parse_callback(signed(said)) == named


async def test_only_a_signed_event_of_now_is_read() -> None:
    async with fedapay((200, {})) as tested:
        read = tested.provider.parse_callback
        assert read(signed(event(), more=",s=00")) == CallbackReference(REFERENCE, "412345")
        assert read(signed(event(), age=300)) is not None
        assert read(signed(event(), age=301)) is None
        assert read(signed(event(), secret="wh_live_other")) is None
        assert read(callback(event())) is None
        header = signed(event()).headers["X-FEDAPAY-SIGNATURE"]
        assert read(callback(event(), {"X-FEDAPAY-SIGNATURE": header.replace("s=", "v1=")})) is None
    async with fedapay((200, {}), webhook_secret="") as tested:
        assert tested.provider.parse_callback(callback(event())) == CallbackReference(REFERENCE, "412345")


def listed(number: int, days: int, **changes: Any) -> dict[str, Any]:
    row = {"id": number, "reference": f"trx_{number}", "merchant_reference": f"ours-{number}", "status": "approved"}
    row |= {"amount": 500, "fees": 9, "currency_id": 1, "created_at": iso(earlier(NOW, days * DAY))}
    return row | changes


def pages(kind: str, *found: list[dict[str, Any]], total: int | None = None) -> list[Scripted]:
    count = sum(map(len, found)) if total is None else total
    following = [*range(2, len(found) + 1), None]
    return [
        (200, {f"v1/{kind}s": rows, "meta": {"next_page": after, "total_count": count}})
        for rows, after in zip(found, following, strict=True)
    ]


async def history(*answers: Scripted) -> Any:
    async with fedapay(*answers) as tested:
        assert isinstance(tested.provider, History)
        found = await tested.provider.history(earlier(NOW, DAY), NOW, "https://pay.example.com")
        return found, lines(tested)


async def test_the_history_is_read_page_by_page() -> None:
    rows = [[listed(3, 0), listed(2, 1, status="declined")], [listed(1, 9)]]
    paid = [[listed(3, 0, status="sent"), listed(2, 0, status="pending")]]
    found, asked = await history(*pages("transaction", *rows), *pages("payout", *paid))
    assert asked == ["GET /v1/transactions/search"] * 2 + ["GET /v1/payouts/search"]
    assert [(each.kind, each.references[0], each.status, each.fee) for each in found] == [
        ("payment", "ours-3", "succeeded", 9_00),
        ("payment", "ours-2", "failed", 9_00),
        ("refund", "ours-3", "succeeded", 9_00),
        ("refund", "ours-2", "pending", 9_00),
    ]
    assert (found[0].amount, found[0].currency, found[0].references) == (500_00, "XOF", ("ours-3", "3", "trx_3"))


async def test_it_ends_early_only_if_rows_come_newest_first() -> None:
    first, rest = [listed(9, 0), listed(8, 5)], [[listed(7, 6)], [listed(6, 7)], [listed(5, 8)]]
    none = pages("payout", [])
    _, asked = await history(*pages("transaction", first, *rest)[:2], *none)
    assert len(asked) == 3
    _, asked = await history(*pages("transaction", [listed(1, 9)], [listed(2, 8)], [listed(3, 0)]), *none)
    assert len(asked) == 4


@pytest.mark.parametrize(
    "answers",
    [
        pages("transaction", [listed(1, 0)], total=2),
        pages("transaction", [listed(1, 0)], [])[:1] + pages("transaction", [], [])[:1],
        [(200, {"v1/transactions": [{"status": "approved"}], "meta": {}})],
        [(200, {"v1/transactions": []})],
        [(200, {})],
        [(500, b"")],
    ],
)
async def test_a_list_that_may_be_incomplete_is_unknown(answers: list[Scripted]) -> None:
    assert isinstance((await history(*answers))[0], Unknown)


async def test_the_account_is_the_one_that_transactions_name() -> None:
    rows = pages("transaction", [listed(1, 0, account_id=1234)])
    for answer, meant in ((rows[0], "1234"), (pages("transaction", [])[0], Unknown), ((401, {}), Unknown)):
        async with fedapay(answer) as tested:
            assert isinstance(tested.provider, StatesIdentity)
            identity = await tested.provider.account_identity()
            assert identity == meant or type(identity) is meant


@pytest.mark.parametrize(
    ("settings", "is_sandbox"),
    [
        ({"secret_key": "sk_live_1"}, False),
        ({"secret_key": "sk_sandbox_1"}, True),
        ({"secret_key": "sk_live_1", "webhook_secret": "wh_sandbox_1"}, True),
    ],
)
def test_keys_show_their_sandbox(settings: Mapping[str, str], is_sandbox: bool) -> None:
    assert (TYPE.sandbox(settings) is not None) is is_sandbox
