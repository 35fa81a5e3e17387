"""POST /payments, field by field: type, bounds, default and requirement as docs/contract.md states them."""

from typing import Any

import pytest

from tests.contract.shapes import check_resource, order, refused_fields
from tests.contract.tables import Row, table
from tests.service_fixture import MerchantClient, ServiceFixture

ROWS = {row["Field"]: row for row in table("request POST /payments")}

#: Values that are of no accepted type, for each type of the table (D2).
WRONG_TYPES: dict[str, tuple[object, ...]] = {
    "number": ("5000", True, [5000], {"value": 5000}, ""),
    "integer": ("1", True, 1.5, [1], {}),
    "string": (5, True, 1.5, ["mtn"], {}),
    "digits": (22997001234, True, ["22997001234"], {}),
    "url": (5, True, [], {}, "", "shop", "//shop.example", "ftp://shop.example", "https://", "https://a b.example"),
    "https url": (5, True, [], {}, "", "shop.example", "http://shop.example", "https:/shop.example", "https://:443"),
    "e-mail": (5, True, [], {}, "", "awa", "awa@", "@example.com", "a b@example.com", "awa@example"),
    "object": ("{}", 5, True, [], [1]),
}
#: What a text of each length starts with (an e-mail address ends with it).
STARTS = {
    "return_url": "https://shop.example/",
    "callback_url": "https://shop.example/",
    "customer.email": "@" + ".".join(["abcdefghij" * 2] * 5) + ".example",
}


def _body(field: str, value: object) -> dict[str, Any]:
    """A complete body whose only peculiarity is this field."""
    body = order("VISA") if field.startswith("customer.") else order("coris" if field == "otp" else "mtn")
    if field == "payment_mode_id":
        body.pop("operator")
    parent, _, child = field.rpartition(".")
    target = body[parent] if parent else body
    if value is ...:
        target.pop(child, None)
    else:
        target[child] = value
    return body


def _text(field: str, length: int) -> str:
    """A valid text of so many characters; of two bytes each where the field may hold any text."""
    if ROWS[field]["Type"] == "digits":
        return "2" * length
    start = STARTS.get(field, "")
    rest = ("a" if start else "é") * (length - len(start))
    return rest + start if ROWS[field]["Type"] == "e-mail" else start + rest


async def _send(merchant: MerchantClient, field: str, value: object) -> Any:
    return await merchant.post("/payments", _body(field, value))


@pytest.mark.parametrize("field", ROWS)
async def test_a_field_of_the_wrong_type_is_named(shared_service: ServiceFixture, field: str) -> None:
    merchant = await shared_service.merchant()
    for value in WRONG_TYPES[ROWS[field]["Type"]]:
        answer = await _send(merchant, field, value)
        assert answer.status == 422, (field, value, answer.raw)
        named = refused_fields(answer)
        assert named == {field}, (field, value, answer.raw)
    assert (await merchant.get("/payments")).data == []


@pytest.mark.parametrize("field", [f for f, row in ROWS.items() if row["Max length"] and f != "operator"])
async def test_lengths_are_inclusive_and_count_characters(shared_service: ServiceFixture, field: str) -> None:
    merchant = await shared_service.merchant()
    row = ROWS[field]
    longest, shortest = int(row["Max length"]), int(row["Min length"] or 0)
    assert (await _send(merchant, field, _text(field, longest))).status == 201, field
    assert refused_fields(await _send(merchant, field, _text(field, longest + 1))) == {field}
    if shortest:
        assert (await _send(merchant, field, _text(field, shortest))).status == 201
        assert refused_fields(await _send(merchant, field, _text(field, shortest - 1))) == {field}


async def test_an_overlong_operator_code_is_refused(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    longest = int(ROWS["operator"]["Max length"])
    for length in (longest, longest + 1):
        assert refused_fields(await merchant.post("/payments", order(operator="mtn") | {"operator": "m" * length})) == {
            "operator"
        }


@pytest.mark.parametrize(
    ("amount", "accepted"),
    [
        (b"1", True),
        (b"1.0", True),
        (b"5e3", True),
        (b"99999999", True),
        (b"0.99", False),
        (b"0", False),
        (b"-5000", False),
        (b"-0", False),
        (b"99999999.01", False),
        (b"100000000", False),
        (b"1e400", False),
        (b"123456789012345678901234567890", False),
    ],
)
async def test_the_amount_is_bounded(shared_service: ServiceFixture, amount: bytes, accepted: bool) -> None:
    """A card knows no debit bounds: only those of `amount` are seen."""
    assert (ROWS["amount"]["Min"], ROWS["amount"]["Max"]) == ("1", "99999999")
    merchant = await shared_service.merchant()
    customer = b'{"firstname":"A","lastname":"B","email":"a@example.com"}'
    body = b'{"operator":"VISA","currency":"EUR","customer":%s,"amount":%s}' % (customer, amount)
    answer = await merchant.post("/payments", body)
    assert (answer.status == 201) is accepted, answer.raw
    if not accepted:
        assert refused_fields(answer) == {"amount"}


@pytest.mark.parametrize("field", ROWS)
async def test_required_fields_and_defaults(shared_service: ServiceFixture, field: str) -> None:
    """Left out or null: the same thing (D2), a refusal if the field is required, its default otherwise."""
    merchant = await shared_service.merchant()
    row = ROWS[field]
    if field in ("operator", "payment_mode_id"):
        assert row["Required"] == f"unless {'operator' if field != 'operator' else 'payment_mode_id'}"
        assert refused_fields(await merchant.post("/payments", order() | {"operator": None})) <= {
            "operator",
            "payment_mode_id",
        }
        return
    operators = {"mobile_money": "mtn", "requires_otp": "coris", "requires_return_url": "free_sn", "card": "VISA"}
    operator = operators.get(row["Required"])
    for value in (..., None):
        body = _body(field, value) if operator is None else _without(order(operator), field, value)
        answer = await merchant.post("/payments", body)
        if row["Required"] == "no":
            assert answer.status == 201, answer.raw
            if field in answer.data:
                assert answer.data[field] == (row["Default"] or None)
        else:
            named = refused_fields(answer)
            wanted = {f for f in ROWS if f.startswith("customer.") and ROWS[f]["Required"] == "card"}
            assert named == (wanted if field == "customer" else {field})


def _without(body: dict[str, Any], field: str, value: object) -> dict[str, Any]:
    parent, _, child = field.rpartition(".")
    target = body[parent] if parent else body
    if value is ...:
        del target[child]
    else:
        target[child] = value
    return body


async def test_accepted_values_of_currency(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for currency in ROWS["currency"]["Values"].split(", "):
        assert (await merchant.pay(currency=currency))["currency"] == currency
    for other in ("xof", "GBP", "", "XOF "):
        assert refused_fields(await merchant.post("/payments", order(currency=other))) == {"currency"}


async def test_all_errors_are_reported_at_once(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    everything: dict[str, object] = {
        "amount": 0,
        "currency": "ABC",
        "operator": "coris",
        "phone_number": "12",
        "otp": "1" * 17,
        "description": "d" * 256,
        "external_id": "",
        "return_url": "x",
        "callback_url": "x",
        "metadata": 5,
        "test_scenario": "x",
        "customer": {"firstname": 5, "lastname": 5, "email": "x", "address": 5, "country": 5},
    }
    expected = set(ROWS) - {"payment_mode_id", "operator", "customer"}
    assert refused_fields(await merchant.post("/payments", everything)) == expected


async def test_unknown_fields_are_ignored(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    payment = await merchant.pay(status="succeeded", reference="x", customer={"phone_number": "1", "vip": True})
    check_resource("payment", payment)
    assert payment["status"] == "pending"
    assert payment["customer"]["phone_number"] == "22997001234"


def test_every_row_is_tested_by_its_type() -> None:
    rows: list[Row] = list(ROWS.values())
    assert {row["Type"] for row in rows} <= set(WRONG_TYPES)
