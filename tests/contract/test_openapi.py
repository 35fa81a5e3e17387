"""`/openapi.json` says what the service does, in both directions; `/docs` shows all of it, alone."""

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any, Final

import jsonschema_rs
import pytest

from guichet.api import guide
from guichet.api.endpoints import ENDPOINTS, TAGS, Endpoint
from guichet.domain.errors import BY_CODE
from guichet.domain.events import EVENTS, WEBHOOK_TEST
from guichet.providers.base import Accepted, Refused
from guichet.schemas.notification import NOTIFICATIONS
from guichet.settings import Settings
from tests.contract.tables import Row, table, tables
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ScriptedServer
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.service_fixture import MerchantClient, ServiceFixture, open_service

IDS: Final = [f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS]
#: docs/contract.md's names of resources.
NAMES: Final = {
    "payment": "Payment",
    "payment.payment_mode": "PaymentModeSummary",
    "payment.customer": "PaymentCustomer",
    "refund": "Refund",
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
    "number": ("number", None),
    "integer": ("integer", None),
    "boolean": ("boolean", None),
    "array": ("array", None),
}


@pytest.fixture
async def document(sqlite_service: ServiceFixture) -> dict[str, Any]:
    answer = await sqlite_service.call("GET", "/openapi.json")
    assert answer.status == 200
    return dict(answer.body)


def _schemas(document: Mapping[str, Any]) -> dict[str, Any]:
    return dict(document["components"]["schemas"])


def _resolved(document: Mapping[str, Any], node: Mapping[str, Any]) -> Any:
    """What a `$ref`, alone or beside null, stands for."""
    if choices := node.get("anyOf"):
        node = choices[0]
    found: Any = document
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def _nodes(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _nodes(item)


def _validator(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    return jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]}, validate_formats=True)


def _operation(document: Mapping[str, Any], endpoint: Endpoint) -> Any:
    return document["paths"][endpoint.path][endpoint.method.lower()]


def _success(document: Mapping[str, Any], endpoint: Endpoint) -> Any:
    return _operation(document, endpoint)["responses"][str(endpoint.status)]["content"]["application/json"]


# --- the document -----------------------------------------------------------------------------------------------------


async def test_the_document_has_every_endpoint_and_no_other(document: dict[str, Any]) -> None:
    documented = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]

    assert sorted(documented) == sorted((row["Method"], row["Path"]) for row in table("endpoints"))
    assert document["openapi"] == "3.1.0"
    assert document["servers"][0]["url"] == "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=IDS)
async def test_every_endpoint_is_described(document: dict[str, Any], endpoint: Endpoint) -> None:
    operation = _operation(document, endpoint)

    assert endpoint.summary.strip()
    assert endpoint.description.strip()
    assert endpoint.tag in TAGS
    in_path = re.findall(r"{(\w+)}", endpoint.path)
    assert [parameter.name for parameter in endpoint.parameters if parameter.where == "path"] == in_path
    assert bool(endpoint.body) == bool(endpoint.requests)
    assert operation["x-codeSamples"]
    described = [*operation.get("parameters", []), *operation["responses"].values()]
    assert all(part.get("description") or "$ref" in part for part in described)


async def test_every_field_is_described(document: dict[str, Any]) -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in _schemas(document).items()
        for field, member in schema["properties"].items()
        if not member.get("description") and (name, field) != ("Error", "error")
    ]

    assert not silent


async def test_every_reference_leads_somewhere_and_everything_is_used(document: dict[str, Any]) -> None:
    references = {node["$ref"] for node in _nodes(document) if "$ref" in node}
    for reference in references:
        _resolved(document, {"$ref": reference})
    parts = {
        f"#/components/{kind}/{name}"
        for kind, named in document["components"].items()
        if kind != "securitySchemes"
        for name in named
    }

    # No operation can answer 405: it belongs to the verbs that are not there.
    assert parts - references == {"#/components/responses/MethodNotAllowed"}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=IDS)
async def test_examples_are_what_they_illustrate(document: dict[str, Any], endpoint: Endpoint) -> None:
    operation = _operation(document, endpoint)
    success = _success(document, endpoint)
    _validator(document, success["schema"]).validate(success["example"])
    if endpoint.body:
        content = operation["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            _validator(document, content["schema"]).validate(example["value"])


async def test_error_examples_are_errors(document: dict[str, Any]) -> None:
    for response in document["components"]["responses"].values():
        content = response["content"]["application/json"]
        for code, example in content["examples"].items():
            _validator(document, content["schema"]).validate(example["value"])
            assert example["value"]["error"]["code"] == code


# --- against the contract ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", table("endpoints"), ids=lambda row: f"{row['Method']} {row['Path']}")
async def test_successes_are_those_of_the_contract(document: dict[str, Any], row: Row) -> None:
    [endpoint] = [each for each in ENDPOINTS if (each.method, each.path) == (row["Method"], row["Path"])]
    schema = _success(document, endpoint)["schema"]
    data = schema["properties"]["data"]
    name = NAMES[row["Data"].removesuffix("[]")]

    assert str(endpoint.status) == row["Success"]
    assert ("meta" in schema["properties"]) == (row["Paginated"] == "yes")
    assert ("items" in data) == row["Data"].endswith("[]")
    expected = {"Payment", "CreatedPayment"} if (endpoint.method, endpoint.path) == ("POST", "/payments") else {name}
    assert (data.get("items") or data)["$ref"].rpartition("/")[2] in expected


@pytest.mark.parametrize("name", tables("resource"))
async def test_resources_are_those_of_the_contract(document: dict[str, Any], name: str) -> None:
    rows = tables("resource")[name]
    told = [model.__name__ for model, _ in NOTIFICATIONS.values()]
    notified = told if name == "webhook-envelope" else [NAMES[name]]
    for schema in (_schemas(document)[each] for each in notified):
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
        for name, schema in _schemas(document).items()
        if not name.endswith("Body") and name != "Customer"
        for field in set(schema["properties"]) - set(schema["required"])
    }

    assert sometimes == {"CreatedPayment.redirect_url", "WebhookTest.message", "Failure.details"}


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
        assert str(schema.get("default", "")).lower() == row["Default"].lower(), row


def _fields_sent(
    document: Mapping[str, Any], operation: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[dict[str, Any], bool]]]:
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            yield parameter["name"], (parameter["schema"], parameter["required"])
    if body := operation.get("requestBody"):
        yield from _members(document, _resolved(document, body["content"]["application/json"]["schema"]), "")


def _members(
    document: Mapping[str, Any], schema: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, tuple[dict[str, Any], bool]]]:
    for name, member in schema["properties"].items():
        yield prefix + name, (member, name in schema.get("required", ()))
        if "anyOf" in member:
            yield from _members(document, _resolved(document, member), f"{name}.")


async def test_every_code_and_event_is_explained(document: dict[str, Any]) -> None:
    codes = {
        code
        for response in document["components"]["responses"].values()
        for code in response["content"]["application/json"]["examples"]
    }

    assert codes == {row["Code"] for row in table("errors") if row["Emitted"] == "yes"}
    assert list(guide.MEANINGS) == list(BY_CODE)
    assert all(f"| `{code}` | {error.status} |" in document["info"]["description"] for code, error in BY_CODE.items())
    assert list(document["webhooks"]) == [*EVENTS, WEBHOOK_TEST] == [row["Event"] for row in table("events")]


async def test_headers_are_those_of_the_contract(document: dict[str, Any]) -> None:
    headers = document["components"]["headers"]
    assert {row["Header"] for row in table("response-headers")} <= set(headers)
    for event, hook in document["webhooks"].items():
        sent = {parameter["name"]: parameter for parameter in hook["post"]["parameters"]}
        assert {*sent, "Content-Type"} == {row["Header"] for row in table("webhook-headers")}
        assert sent["X-Service-Event"]["example"] == event


# --- against the service ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", [each for each in ENDPOINTS if each.body], ids=lambda each: each.handler.__name__)
async def test_what_the_examples_send_is_accepted(sqlite_service: ServiceFixture, endpoint: Endpoint) -> None:
    """The curl samples, word for word, by the merchant they are written for."""
    document = (await sqlite_service.call("GET", "/openapi.json")).body
    merchant = await sqlite_service.merchant()
    samples = _operation(document, endpoint)["x-codeSamples"]
    assert len(samples) == len(endpoint.requests)
    for number, sample in enumerate(samples):
        if endpoint.path == "/payments/{reference}/refund":
            merchant = await sqlite_service.merchant(f"R{number}")
            await merchant.pay("0000", external_id="commande-1042")
            await sqlite_service.run_worker()
        answer = await _run(
            merchant.live if endpoint.live_only else merchant, sample["source"], document["servers"][0]["url"]
        )
        assert answer.status == endpoint.status, answer.raw


async def _run(merchant: MerchantClient, source: str, server: str) -> Any:
    words = shlex.split(source.replace("\\\n", " "))
    assert words[0] == "curl"
    assert "Authorization: Bearer $CLE" in words
    [url] = [word for word in words if word.startswith(server)]
    body = words[words.index("-d") + 1] if "-d" in words else None
    method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
    return await merchant.call(method, url.removeprefix(server), None if body is None else body.encode())


@pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS if not each.body and "{" not in each.path], ids=lambda each: each.path
)
async def test_the_samples_without_a_body_are_accepted(sqlite_service: ServiceFixture, endpoint: Endpoint) -> None:
    document = (await sqlite_service.call("GET", "/openapi.json")).body
    [sample] = _operation(document, endpoint)["x-codeSamples"]

    answer = await _run(await sqlite_service.merchant(), sample["source"], document["servers"][0]["url"])

    assert answer.status == endpoint.status, answer.raw


class Seen:
    """Every answer of a day, held to the document; what was filled, and what was null."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.filled: set[str] = set()
        self.empty: set[str] = set()

    def answer(self, endpoint: Endpoint, body: Any) -> None:
        schema = _success(self.document, endpoint)["schema"]
        _validator(self.document, schema).validate(body)
        self._walk(schema, body)

    def notification(self, body: Any) -> None:
        hook = self.document["webhooks"][body["event"]]["post"]
        schema = hook["requestBody"]["content"]["application/json"]["schema"]
        _validator(self.document, schema).validate(body)
        self._walk(schema, body)

    def _walk(self, schema: Mapping[str, Any], value: Any, name: str = "") -> None:
        if "$ref" in schema or "anyOf" in schema:
            if value is not None:
                reference = schema.get("$ref") or schema["anyOf"][0]["$ref"]
                self._walk(_resolved(self.document, schema), value, reference.rpartition("/")[2])
        elif "items" in schema:
            for item in value:
                self._walk(schema["items"], item)
        elif "properties" in schema:
            assert set(value) <= set(schema["properties"]), f"{name} answers what is not documented"
            for field, item in value.items():
                (self.empty if item is None else self.filled).add(f"{name}.{field}")
                self._walk(schema["properties"][field], item)


async def test_every_documented_field_is_answered_and_every_answered_field_is_documented(
    sqlite_settings: Settings, receiver: ScriptedServer
) -> None:
    operator = ScriptedProvider()
    operator.script("initiate", Accepted(redirect_url="https://operator.example/confirm"))
    operator.script("status", done)
    operator.script("refund", Refused())
    clock = ManualClock()
    async with open_service(
        sqlite_settings, clock, accounts={"scripted": operator}, routes={"mtn": ["scripted"]}
    ) as service:
        seen = Seen((await service.call("GET", "/openapi.json")).body)
        await _a_day(service, await service.merchant(), seen, receiver)

    documented = {
        f"{name}.{field}": member
        for name, schema in _schemas(seen.document).items()
        if not name.endswith("Body") and name not in ("Customer", "Error", "Failure")
        for field, member in schema["properties"].items()
    }
    nullable = {
        name
        for name, member in documented.items()
        if "null" in member.get("type", ()) or {"type": "null"} in member.get("anyOf", ())
    }
    filled = {name for name in seen.filled if not name.startswith(".")}
    # The packaged catalogue has no pictures; only the answer that creates a card payment has its page.
    assert set(documented) - filled == {"PaymentMode.logo", "Payment.payment_url"}
    assert nullable - seen.empty <= {"Payment.payment_mode", "CreatedPayment.payment_mode"}


async def _a_day(service: ServiceFixture, merchant: MerchantClient, seen: Seen, receiver: ScriptedServer) -> None:
    """Everything a merchant does, with either key; each answer is looked at."""

    async def do(account: MerchantClient, name: str, path: str, body: object = None) -> Any:
        [endpoint] = [each for each in ENDPOINTS if each.handler.__name__ == name]
        answer = await account.call(endpoint.method, path, body)
        assert answer.status == endpoint.status, answer.raw
        seen.answer(endpoint, answer.body)
        return answer.data

    async def look(account: MerchantClient) -> None:
        for endpoint in ENDPOINTS:
            if endpoint.method == "GET" and "{" not in endpoint.path:
                await do(account, endpoint.handler.__name__, endpoint.path)

    mobile = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000000"}
    customer = {"firstname": "Awa", "lastname": "Diallo", "email": "awa@example.com"}
    await look(merchant)
    await do(merchant, "send_test", "/webhooks/test")
    await do(merchant, "configure_endpoint", "/webhooks/endpoint", {"url": None})
    await do(merchant, "configure_endpoint", "/webhooks/endpoint", {"url": receiver.url("127.0.0.1")})
    await do(merchant, "send_test", "/webhooks/test")
    await do(merchant, "list_deliveries", "/webhooks/deliveries")
    await do(merchant, "create_payment", "/payments", {**mobile, "phone_number": "2290197000003"})
    await do(
        merchant, "create_payment", "/payments", {**mobile, "external_id": "a", "metadata": {}, "customer": customer}
    )
    await do(merchant, "create_payment", "/payments", {"amount": 15000, "operator": "VISA", "customer": customer})
    await service.run_worker()
    await do(merchant, "read_payment", "/payments/a")
    refund = await do(merchant, "create_refund", "/payments/a/refund", {"reason": "Retour"})
    await do(merchant, "read_refund", f"/refunds/{refund['reference']}")
    await service.run_worker(1)
    await do(merchant, "quote_fees", "/payment-modes/fees", {"amount": 5000, "operator": "mtn"})
    await look(merchant)
    await do(merchant.live, "configure_endpoint", "/webhooks/endpoint", {"url": receiver.url("127.0.0.1")})
    await do(merchant.live, "create_payment", "/payments", {**mobile, "external_id": "b"})
    await service.run_worker(60)
    await do(merchant.live, "create_refund", "/payments/b/refund", {})
    await service.run_worker(60)
    link = {"amount": 2000, "description": "Don"}
    permanent = await do(merchant.live, "create_link", "/payment-links", link)
    limits = {"type": "limité", "max_uses": 3, "starts_at": "2026-01-01", "expires_at": "2026-12-31"}
    await do(merchant.live, "create_link", "/payment-links", {**link, **limits})
    await do(merchant.live, "read_link", f"/payment-links/{permanent['id']}")
    await look(merchant.live)
    assert {json.loads(request.body)["event"] for request in receiver.received} == {*EVENTS, WEBHOOK_TEST}
    for request in receiver.received:
        seen.notification(json.loads(request.body))


# --- how they are served ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
async def test_they_are_public_and_kept_by_their_tag(sqlite_service: ServiceFixture, path: str) -> None:
    plain = await sqlite_service.call("GET", path, headers={"Accept-Encoding": "identity"})
    again = await sqlite_service.call(
        "GET", path, headers={"Accept-Encoding": "identity", "If-None-Match": f'"other", W/{plain.headers["ETag"]}'}
    )
    head = await sqlite_service.call("HEAD", path, headers={"Accept-Encoding": "identity"})

    assert (plain.status, again.status, head.status) == (200, 304, 200)
    assert (again.raw, head.raw) == (b"", b"")
    assert again.headers["ETag"] == plain.headers["ETag"]
    assert head.headers["Content-Length"] == str(len(plain.raw))


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, br", "br"),
        ("br, GZIP;q=0.5", "br"),
        ("gzip", "gzip"),
        ("br;q=0, GZIP;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip; q=0.000, deflate", None),
        ("identity", None),
    ],
)
async def test_they_are_compressed_if_the_client_accepts_it(
    sqlite_service: ServiceFixture, accepted: str, encoding: str | None
) -> None:
    plain = await sqlite_service.call("GET", "/openapi.json", headers={"Accept-Encoding": "identity"})
    answer = await sqlite_service.call("GET", "/openapi.json", headers={"Accept-Encoding": accepted})

    assert answer.headers.get("Content-Encoding") == encoding
    assert (answer.headers["ETag"] == plain.headers["ETag"]) == (encoding is None)
    assert int(answer.headers["Content-Length"]) < len(plain.raw) / 4 or encoding is None
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.raw == plain.raw


async def test_other_verbs_are_refused_in_the_envelope(sqlite_service: ServiceFixture) -> None:
    answer = await sqlite_service.call("POST", "/docs")

    assert (answer.status, answer.error["code"], answer.headers["Allow"]) == (405, "method_not_allowed", "GET, HEAD")


class _Page(HTMLParser):
    """What a browser would look for in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.ids += [given["id"] or ""] if "id" in given else []
        if tag == "a":
            self.links.append(given.get("href") or "")
        elif address := given.get("src") or given.get("href"):
            self.loaded.append(address)
        assert "style" not in given, "the policy allows no inline style"
        assert not any(name.startswith("on") for name in given)

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_page_shows_all_and_loads_nothing(sqlite_service: ServiceFixture) -> None:
    answer = await sqlite_service.call("GET", "/docs")
    document = (await sqlite_service.call("GET", "/openapi.json")).body
    page = _Page()
    page.feed(answer.raw.decode())

    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script" not in page.tags
    assert all(address.startswith("data:") for address in page.loaded)
    assert len(page.ids) == len(set(page.ids))
    leading = {link for link in page.links if not link.startswith("#")}
    assert leading == {"openapi.json"}
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert {operation["operationId"] for operation in operations} <= set(page.ids)
    assert {hook["post"]["operationId"] for hook in document["webhooks"].values()} <= set(page.ids)
    for operation in operations:
        assert all(sample["source"] in page.text for sample in operation["x-codeSamples"])
    assert {name for name in _schemas(document) if not name.endswith("Body") and name != "Customer"} <= set(page.ids)


async def test_the_page_allows_its_own_style_and_nothing_else(sqlite_service: ServiceFixture) -> None:
    answer = await sqlite_service.call("GET", "/docs")
    [style] = re.findall(r"<style>(.*?)</style>", answer.raw.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
