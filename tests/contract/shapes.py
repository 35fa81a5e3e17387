"""What an answer must look like, read from docs/contract.md: envelopes, resources field by field, refusals."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from tests.contract.tables import Row, column, table, tables
from tests.service_fixture import Answer

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z")
_URL: Final = re.compile(r"https?://[^\s/]+(/\S*)?")
#: A number that ends in a useless fraction (D5), outside of strings.
_FRACTION: Final = re.compile(rb"[0-9]\.[0-9]*0[,}\]\s]|[0-9][eE]")
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')

STATUS_OF: Final = {row["Code"]: int(row["HTTP"]) for row in table("errors")}

#: Nested resources have tables of their own.
NESTED: Final = {
    ("payment", "payment_mode"): "payment.payment_mode",
    ("payment", "customer"): "payment.customer",
    ("payment", "failure"): "payment.failure",
    ("payment", "payment_link"): "payment.payment_link",
    ("refund", "failure"): "refund.failure",
}


def _text(shape: re.Pattern[str] | None = None) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and (shape is None or bool(shape.fullmatch(value)))


def _plain(*kinds: type) -> Callable[[object], bool]:
    """Of one of these types; a boolean is not a number here."""
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


#: The types that docs/contract.md names.
TYPES: Final[dict[str, Callable[[object], bool]]] = {
    "string": _text(),
    "uuid": _text(_UUID),
    "date": _text(_DATE),
    "url": _text(_URL),
    "integer": _plain(int),
    "number": _plain(int, float),
    "boolean": _plain(bool),
    "object": _plain(dict),
    "array": _plain(list),
}


def check_resource(name: str, value: Any, *, also: Iterable[str] = ()) -> Any:
    """`value` has exactly the fields of the table, each of its type; `also` are fields documented outside the table."""
    check_fields(tables("resource")[name], name, value, also)
    for (parent, field), nested in NESTED.items():
        if parent == name and value[field] is not None:
            check_resource(nested, value[field])
    return value


def check_fields(rows: list[Row], name: str, value: Any, also: Iterable[str] = ()) -> None:
    assert isinstance(value, dict), f"{name} is not an object: {value!r}"
    assert set(value) == {row["Field"] for row in rows} | set(also), name
    for row in rows:
        found = value[row["Field"]]
        if found is None:
            assert row["Nullable"] == "yes", f"{name}.{row['Field']} is null"
        else:
            assert TYPES[row["Type"]](found), f"{name}.{row['Field']} is not a {row['Type']}: {found!r}"


def check_success(answer: Answer, row: Row, *, also: Iterable[str] = ()) -> Any:
    """A success of the endpoint described by `row`: status, envelope, `meta`, resources. Gives `data` back."""
    assert answer.status == int(row["Success"]), (row, answer.raw)
    assert answer.headers["Content-Type"] == "application/json"
    paginated = row["Paginated"] != "no"
    told = answer.body.get("warnings", [])
    assert [each["code"] for each in told] in ([], ["no_external_id"]), "a test may leave an external_id out"
    assert [key for key in answer.body if key != "warnings"] == ["success", "data", *(["meta"] if paginated else [])]
    assert answer.body["success"] is True
    if paginated:
        check_fields(table("meta by after" if row["Paginated"] == "by after" else "meta"), "meta", answer.body["meta"])
    name, is_list = row["Data"].removesuffix("[]"), row["Data"].endswith("[]")
    for each in answer.data if is_list else [answer.data]:
        check_resource(name, each, also=also)
    check_plain_numbers(answer.raw)
    return answer.data


def check_plain_numbers(raw: bytes) -> None:
    """No number on the wire ends in `.0` or carries an exponent (D5); not for bodies with a merchant's metadata."""
    assert not _FRACTION.search(_STRING.sub(b'""', raw)), raw


def check_error(answer: Answer, code: str) -> Any:
    """The envelope of an error with its status; gives the `error` object back."""
    assert code in column("errors", "Code")
    assert answer.headers["Content-Type"] == "application/json"
    assert list(answer.body) == ["success", "error"], answer.raw
    error = answer.error
    assert error["code"] == code, answer.raw
    assert answer.status == STATUS_OF[code]
    assert set(error) <= {"code", "message", "details", "reason", "reference"}
    _check_reason(error)
    assert isinstance(error["message"], str)
    assert error["message"]
    if "details" in error:
        assert code == "invalid_request"
        assert error["details"], "details that name no field"
        for field, messages in error["details"].items():
            assert isinstance(field, str)
            assert isinstance(messages, list)
            assert messages
            assert all(isinstance(message, str) and message for message in messages)
    return error


def _check_reason(error: Any) -> None:
    """`reason` and `reference` are as the contract's table says."""
    rows = [row for row in table("error-reasons") if row["Code"] == error["code"] and row["Emitted"] == "yes"]
    reasons = {row["Reason"]: row["Reference"] for row in rows}
    if error["code"] == "payment_failed":
        assert error["reason"] in column("failure-codes", "Code")
        assert TYPES["uuid"](error["reference"])
    elif error["code"] == "conflict":
        assert ("reference" in error) is bool(reasons[error["reason"]])
    else:
        assert "reason" not in error
        assert "reference" not in error or "" in reasons
    assert "reference" not in error or TYPES["uuid"](error["reference"])


def refused_fields(answer: Answer) -> set[str]:
    """The fields of a 422; empty when it names none."""
    return set(check_error(answer, "invalid_request").get("details", {}))


def endpoint(method: str, path: str) -> Row:
    """The row of one endpoint."""
    [row] = [row for row in table("endpoints") if (row["Method"], row["Path"]) == (method, path)]
    return row


#: Digits of a number after the dial code, where they are not eight.
NATIONAL_DIGITS: Final = {"225": 10, "221": 9, "242": 9}


def order(operator: str = "mtn", **fields: Any) -> dict[str, Any]:
    """A complete body of POST /payments for this operator code; a field given as `...` is left out.

    What the operator requires is read from its row of the table.
    """
    [row] = [row for row in table("operators") if row["Code"].casefold() == operator.casefold()]
    body: dict[str, Any] = {"amount": 5000, "operator": operator}
    if row["Type"] == "card":
        body["customer"] = {"firstname": "Awa", "lastname": "Kossou", "email": "awa@example.com"}
    else:
        body["phone_number"] = row["Dial code"] + "97001234".rjust(NATIONAL_DIGITS.get(row["Dial code"], 8), "0")
    if row["OTP"] == "yes":
        body["otp"] = "123456"
    if row["Return URL"] == "yes":
        body["return_url"] = "https://shop.example/back"
    body |= fields
    return {name: value for name, value in body.items() if value is not ...}
