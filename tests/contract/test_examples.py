"""Every example of the OpenAPI document, of the guide and of /docs is what the service does now.

`python -m tests.frozen` records them anew. What each endpoint's `requests` say is sent by the recording itself.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from yarl import URL

from tests.contract.openapi_document import nodes_of, schemas_of, success_of
from tests.contract.tables import column
from tests.frozen import examples, guide
from tests.frozen.curl import CurlCall, curl_calls
from tests.frozen.examples import Recorder, Shop, titles
from tests.frozen.lasting_values import SECRET
from tests.frozen.service import ENDPOINTS, EXAMPLES_FILE, Settings, running_service, verify
from tests.service_fixture import ServiceFixture

RECORDED: Final = json.loads(EXAMPLES_FILE.read_text(encoding="utf-8"))
GUIDE: Final = "\n".join(file.read_text(encoding="utf-8") for file in guide.FILES)
SCRIPTS: Final = re.findall(r"^```bash\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
VARIABLES: Final = ("GUICHET", "CLE", "CLE_PRODUCTION")


async def test_what_a_real_run_gives(settings: Settings) -> None:
    recorded = await examples.record(settings)

    assert recorded.splitlines() == EXAMPLES_FILE.read_text(encoding="utf-8").splitlines()


async def test_the_document_shows_what_was_recorded(document: dict[str, Any]) -> None:
    for endpoint in ENDPOINTS:
        shown = {title: example["value"] for title, example in success_of(document, endpoint)["examples"].items()}
        assert shown == RECORDED["answers"][endpoint.handler.__name__]
        assert set(titles(endpoint.handler.__name__)) <= set(shown)
    errors: dict[str, Any] = {}
    for response in document["components"]["responses"].values():
        errors |= {code: each["value"] for code, each in response["content"]["application/json"]["examples"].items()}
    assert {**errors, "method_not_allowed": RECORDED["errors"]["method_not_allowed"]} == RECORDED["errors"]
    assert set(document["webhooks"]) == set(RECORDED["webhooks"])
    for event, hook in document["webhooks"].items():
        body = hook["post"]["requestBody"]["content"]["application/json"]["example"]
        headers = {parameter["name"]: parameter["example"] for parameter in hook["post"]["parameters"]}
        assert body == RECORDED["webhooks"][event]["body"]
        assert (headers["X-Service-Event"], headers["X-Service-Delivery"]) == (body["event"], body["id"])
        assert body["event"] == event


@pytest.mark.parametrize("event", column("events", "Event"))
def test_the_signature_shown_is_that_of_the_body_shown(event: str) -> None:
    shown = RECORDED["webhooks"][event]
    body = examples.compact(shown["body"]).encode()
    moment = int(shown["signature"].partition(",")[0].removeprefix("t="))

    assert verify(SECRET, shown["signature"], body, moment)
    assert not verify(SECRET, shown["signature"], body + b" ", moment)


async def test_examples_of_single_fields_were_recorded_too(document: dict[str, Any]) -> None:
    """In an answer under the field's name, or in a request; references and dates anywhere."""
    answered = list(_members(RECORDED))
    sent = list(_members([dict(endpoint.requests) for endpoint in ENDPOINTS]))
    anywhere = [value for _, value in answered]
    for name, schema in schemas_of(document).items():
        known = sent if name.endswith("Body") or name == "Customer" else answered
        for field, member in schema["properties"].items():
            for example in member.get("examples", ()):
                found = (
                    anywhere if member.get("format") in ("uuid", "date-time") else [v for n, v in known if n == field]
                )
                assert example in found, f"{name}.{field}: {example} was never seen"


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    for node in nodes_of(value):
        yield from node.items()


async def test_the_page_shows_what_was_recorded(shared_service: ServiceFixture) -> None:
    page = html.unescape((await shared_service.call("GET", "/docs")).raw.decode())

    answers = [RECORDED["answers"][endpoint.handler.__name__].values() for endpoint in ENDPOINTS]
    shown = [answer for titled in answers for answer in titled]
    shown += [RECORDED["webhooks"][event]["body"] for event in column("events", "Event")]
    blocks = re.findall(r"<pre tabindex=\"0\"><code>({.*?})</code></pre>", page, re.DOTALL)
    assert [json.loads(block) for block in blocks] == shown


def test_the_guide_shows_what_was_recorded() -> None:
    assert guide.refreshed(GUIDE, RECORDED) == GUIDE
    assert GUIDE.count("```json\n") == GUIDE.count("<!-- example: ") >= 4


def _calls(base: str, keys: dict[str, str]) -> list[CurlCall]:
    values = dict(zip(VARIABLES, (f"{base}/v1", keys["test"], keys["live"]), strict=True))
    return [call for script in SCRIPTS for call in curl_calls(script, values)]


def test_what_the_guide_sends_is_what_the_document_shows() -> None:
    sent = [call for call in _calls("http://x", {"test": "", "live": ""}) if call.body is not None]

    assert sent
    for call in sent:
        [endpoint] = [
            each
            for each in ENDPOINTS
            if each.method == call.method
            and re.fullmatch(f"http://x/v1{re.sub('{[a-z]+}', '[^/]+', each.path)}", call.url)
        ]
        assert json.loads(call.body or b"") in endpoint.requests.values(), call


async def test_the_commands_of_the_guide_work_in_their_order(settings: Settings) -> None:
    async with running_service(settings) as service:
        shop = Shop(Recorder(service), await service.merchant())
        calls = _calls(service.url, shop.merchant.keys)
        assert len(calls) >= 14
        for call in calls:
            answer = await shop.send(call)
            assert answer["success"] is True, (call, answer)
            if "/payments/" in URL(call.url).path and call.method == "GET":
                assert answer["data"]["status"] == "succeeded"
            await shop.recorder.later(10)
