"""`/openapi.json` has every endpoint and field, is valid and agrees with docs/contract.md."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from guichet.api import guide
from guichet.api.endpoint import Endpoint
from guichet.api.endpoint_table import ENDPOINTS
from guichet.domain.errors import BY_CODE, MethodNotAllowed
from guichet.domain.events import DISPUTE_EVENTS, EVENTS, SESSION_EVENTS, WEBHOOK_TEST
from guichet.schemas.notification import NOTIFICATIONS
from tests.contract.openapi_document import nodes_of, operation_of, resolved, schemas_of, success_of, validator
from tests.contract.tables import Row, column, table, tables

IDS: Final = [f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS]
#: docs/contract.md's names of resources.
NAMES: Final = {
    "payment": "Payment",
    "payment.payment_mode": "PaymentModeSummary",
    "payment.customer": "PaymentCustomer",
    "payment.failure": "PaymentFailure",
    "payment.payment_link": "PaymentSourceLink",
    "refund": "Refund",
    "refund-proposal": "RefundProposal",
    "refund.failure": "RefundFailure",
    "dispute": "Dispute",
    "webhook-envelope": "Event",
    "checkout-session": "CheckoutSession",
    "payment-link": "PaymentLink",
    "payment-mode": "PaymentMode",
    "fee-quote": "FeeQuote",
    "balance": "Balance",
    "webhook-endpoint": "WebhookEndpoint",
    "webhook-endpoint-written": "WrittenWebhookEndpoint",
    "webhook-test": "WebhookTest",
    "webhook-delivery": "WebhookDelivery",
}
KINDS: Final = {
    "uuid": ("string", "uuid"),
    "date": ("string", "date-time"),
    "string": ("string", None),
    "number": ("number", "double"),
    "integer": ("integer", "int64"),
    "boolean": ("boolean", None),
    "array": ("array", None),
}


async def test_the_document_has_every_endpoint_and_no_other(document: dict[str, Any]) -> None:
    documented = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]

    assert sorted(documented) == sorted((row["Method"], row["Path"]) for row in table("endpoints"))
    assert document["openapi"] == "3.1.0"
    assert document["servers"][0]["url"] == "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=IDS)
async def test_every_endpoint_is_described(document: dict[str, Any], endpoint: Endpoint) -> None:
    operation = operation_of(document, endpoint)

    assert endpoint.summary.strip()
    assert endpoint.description.strip()
    in_path = re.findall(r"{(\w+)}", endpoint.path)
    assert [parameter.name for parameter in endpoint.parameters if parameter.where == "path"] == in_path
    assert bool(endpoint.body) == bool(endpoint.requests)
    assert operation["x-codeSamples"]
    described = [*operation.get("parameters", []), *operation["responses"].values()]
    assert all(part.get("description") or "$ref" in part for part in described)


async def test_every_field_is_described(document: dict[str, Any]) -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in schemas_of(document).items()
        for field, member in schema["properties"].items()
        if not member.get("description") and (name, field) != ("ErrorEnvelope", "error")
    ]

    assert not silent


async def test_every_reference_leads_somewhere_and_everything_is_used(document: dict[str, Any]) -> None:
    references = {node["$ref"] for node in nodes_of(document) if "$ref" in node}
    for reference in references:
        resolved(document, {"$ref": reference})
    parts = {
        f"#/components/{kind}/{name}"
        for kind, named in document["components"].items()
        if kind != "securitySchemes"
        for name in named
    }

    assert parts == references


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=IDS)
async def test_examples_are_what_they_illustrate(document: dict[str, Any], endpoint: Endpoint) -> None:
    operation = operation_of(document, endpoint)
    success = success_of(document, endpoint)
    for example in success["examples"].values():
        validator(document, success["schema"]).validate(example["value"])
    if endpoint.body:
        content = operation["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            validator(document, content["schema"]).validate(example["value"])


async def test_error_examples_are_errors(document: dict[str, Any]) -> None:
    for response in document["components"]["responses"].values():
        content = response["content"]["application/json"]
        for code, example in content["examples"].items():
            validator(document, content["schema"]).validate(example["value"])
            assert example["value"]["error"]["code"] == code


@pytest.mark.parametrize("row", table("endpoints"), ids=lambda row: f"{row['Method']} {row['Path']}")
async def test_successes_are_those_of_the_contract(document: dict[str, Any], row: Row) -> None:
    [endpoint] = [each for each in ENDPOINTS if (each.method, each.path) == (row["Method"], row["Path"])]
    schema = success_of(document, endpoint)["schema"]
    data = schema["properties"]["data"]
    name = NAMES[row["Data"].removesuffix("[]")]

    assert str(endpoint.status) == row["Success"]
    assert ("meta" in schema["required"]) == (row["Paginated"] != "no")
    metas = {"yes": "Meta", "by after": "WalkMeta", "no": "IgnoredParameters"}
    assert schema["properties"]["meta"]["$ref"].rpartition("/")[2] == metas[row["Paginated"]]
    assert schema["properties"]["warnings"]["items"]["$ref"].endswith("/RequestWarning")
    assert ("items" in data) == row["Data"].endswith("[]")
    assert (data.get("items") or data)["$ref"].rpartition("/")[2] == name


@pytest.mark.parametrize("name", tables("resource"))
async def test_resources_are_those_of_the_contract(document: dict[str, Any], name: str) -> None:
    rows = tables("resource")[name]
    names = [model.__name__ for model, _ in NOTIFICATIONS.values()]
    notified = [*names, NAMES[name]] if name == "webhook-envelope" else [NAMES[name]]
    for schema in (schemas_of(document)[each] for each in notified):
        assert {row["Field"] for row in rows} == set(schema["required"])
        for row in rows:
            member = schema["properties"][row["Field"]]
            nullable = "null" in member.get("type", ()) or {"type": "null"} in member.get("anyOf", ())
            assert nullable == (row["Nullable"] == "yes"), row
            if kind := KINDS.get(row["Type"]):
                found = member["type"][0] if isinstance(member["type"], list) else member["type"]
                assert (found, member.get("format")) == kind, row


async def test_fields_that_are_not_always_there(document: dict[str, Any]) -> None:
    sometimes = {
        f"{name}.{field}"
        for name, schema in schemas_of(document).items()
        if not name.endswith("Body") and name != "Customer"
        for field in set(schema["properties"]) - set(schema.get("required", ()))
    }

    assert sometimes == {
        "Payment.checkout_session",
        "Payment.redirect_url",
        "WebhookTest.message",
        "Failure.details",
        "Failure.reason",
        "Failure.reference",
        "IgnoredParameters.ignored",
        "Meta.ignored",
        "WalkMeta.ignored",
    }


@pytest.mark.parametrize("name", tables("request"))
async def test_requests_are_those_of_the_contract(document: dict[str, Any], name: str) -> None:
    method, path = name.split(" ")
    operation = document["paths"][path][method.lower()]
    fields = dict(_fields_sent(document, operation))

    rows = tables("request")[name]
    assert list(fields) == [row["Field"] for row in rows] or set(fields) == {row["Field"] for row in rows}
    for row in rows:
        schema, required = fields[row["Field"]]
        assert required == (row["Required"] == "yes"), row
        bounds = {"Min": "minimum", "Max": "maximum", "Min length": "minLength", "Max length": "maxLength"}
        for header, keyword in bounds.items():
            if row[header] and row["Type"] != "digits":
                assert schema[keyword] == int(row[header]), row
        if row["Type"] == "digits":
            assert schema["pattern"] == rf"^\+?[0-9]{{{row['Min length']},{row['Max length']}}}$"
        values = [value for value in schema.get("enum", schema.get("examples", ())) if value is not None]
        if row["Values"]:
            assert values == row["Values"].split(", "), row
        if row["Field"] == "page":  # With a default, generated clients would send it beside `after`.
            assert "default" not in schema
            continue
        assert _default(schema) == row["Default"].lower(), row


def _default(schema: Mapping[str, Any]) -> str:
    """Of a parameter by its keyword, of a body's field by its description (`_describe_default`)."""
    described = re.search(r" Par défaut : `(.+)`\.$", schema.get("description", ""))
    return str(schema.get("default", described[1] if described else "")).lower()


def _fields_sent(
    document: Mapping[str, Any], operation: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[dict[str, Any], bool]]]:
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            yield parameter["name"], (parameter["schema"], parameter["required"])
    if body := operation.get("requestBody"):
        yield from _members(document, resolved(document, body["content"]["application/json"]["schema"]), "")


def _members(
    document: Mapping[str, Any], schema: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, tuple[dict[str, Any], bool]]]:
    for name, member in schema["properties"].items():
        yield prefix + name, (member, name in schema.get("required", ()))
        if "anyOf" in member:
            yield from _members(document, resolved(document, member), f"{name}.")


async def test_every_code_and_event_is_explained(document: dict[str, Any]) -> None:
    codes = {
        code
        for response in document["components"]["responses"].values()
        for code in response["content"]["application/json"]["examples"]
    }

    # No operation can answer 405: it belongs to the verbs that are not there, and the introduction explains it.
    assert codes | {MethodNotAllowed.code} == {row["Code"] for row in table("errors") if row["Emitted"] == "yes"}
    assert list(guide.MEANINGS) == list(BY_CODE)
    assert all(f"| `{code}` | {error.status} |" in document["info"]["description"] for code, error in BY_CODE.items())
    assert (
        list(document["webhooks"])
        == [*EVENTS, WEBHOOK_TEST, *DISPUTE_EVENTS, *SESSION_EVENTS]
        == [row["Event"] for row in table("events")]
    )


async def test_every_reason_is_explained(document: dict[str, Any]) -> None:
    assert list(guide.FAILURES) == column("failure-codes", "Code")
    assert list(guide.CONFLICTS) == [row["Reason"] for row in table("error-reasons") if row["Code"] == "conflict"]
    described = document["info"]["description"]
    for code, meaning in [*guide.FAILURES.items(), *guide.CONFLICTS.items()]:
        assert f"| `{code}` | {meaning} |" in described
    known = schemas_of(document)
    assert known["Failure"]["properties"]["reason"]["x-extensible-enum"] == [*guide.FAILURES, *guide.CONFLICTS]
    assert known["PaymentFailure"]["properties"]["code"]["x-extensible-enum"] == list(guide.FAILURES)


async def test_headers_are_those_of_the_contract(document: dict[str, Any]) -> None:
    headers = document["components"]["headers"]
    elsewhere = {row["Header"] for row in table("response-headers") if row["On"] == str(MethodNotAllowed.status)}
    assert {row["Header"] for row in table("response-headers")} - elsewhere <= set(headers)
    assert all(f"`{header}`" in document["info"]["description"] for header in elsewhere)
    for event, hook in document["webhooks"].items():
        sent = {parameter["name"]: parameter for parameter in hook["post"]["parameters"]}
        assert {*sent, "Content-Type"} == {row["Header"] for row in table("webhook-headers")}
        assert sent["X-Service-Event"]["example"] == event


async def test_nothing_is_said_in_a_way_that_generated_clients_break_on(document: dict[str, Any]) -> None:
    """Each was met by a generated client that did not compile or did not run: see clients/."""
    for name, schema in schemas_of(document).items():
        assert name not in ("Error", "Exception"), "a class of most languages"
        assert "anyOf" not in schema, f"{name}: its members are lost beside an alternative"
        for field, member in schema["properties"].items():
            where = f"{name}.{field}"
            assert "default" not in member, f"{where}: openapi-typescript would make it obligatory"
            assert "const" not in member, f"{where}: PHP takes true for a text"
            assert "enum" not in member or member["type"] == "string", where
            assert {len(choice) for choice in member.get("anyOf", ())} <= {1}, f"{where}: only a reference, or null"
    for node in nodes_of(document["components"]["schemas"]):
        kinds = node.get("type", ())
        assert "integer" not in kinds or node["format"] == "int64"
        assert "number" not in kinds or node["format"] == "double"
    operations = [*document["paths"].values(), *document["webhooks"].values()]
    used = [operation["tags"] for methods in operations for operation in methods.values()]
    assert {len(tags) for tags in used} == {1}
    assert {tag for tags in used for tag in tags} == {tag["name"] for tag in document["tags"]}
