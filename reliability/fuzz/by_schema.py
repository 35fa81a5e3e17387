"""Requests that tools make: schemathesis from our own /openapi.json, hypothesis from tests/property/strategies.py."""

import json
from contextlib import suppress
from http.client import HTTPConnection
from itertools import cycle
from typing import Any, Final

import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given
from hypothesis import seed as seeded
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from guichet.api.endpoint_table import ENDPOINTS
from reliability.fuzz.checks import Violation, check
from reliability.fuzz.exchange import Sent, Violated
from reliability.fuzz.known import Known
from reliability.fuzz.recorded import Probe
from reliability.fuzz.sockets import Answer
from tests.property.strategies import BODIES, QUERIES, SEGMENTS

_EACH: Final = 50


def _rules(examples: int) -> hypothesis_settings:
    return hypothesis_settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )


def draw(seed: int, known: Known, count: int) -> list[Probe]:
    """`count` requests by the strategies that tests use as well."""
    drawn: list[Probe] = []
    head = f"Host: x\r\nAuthorization: Bearer {known['test_key']}\r\n"
    writes = [endpoint for endpoint in ENDPOINTS if endpoint.body is not None]

    @seeded(seed)
    @_rules(max(1, count // 2))
    @given(st.sampled_from(writes), BODIES, SEGMENTS, QUERIES)
    def collect(endpoint: Any, body: bytes, segment: str, query: str) -> None:
        path = f"/v1{endpoint.path}".replace("{reference}", known["payment"])
        raw = f"{endpoint.method} {path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        drawn.append(Probe("hypothesis", raw, endpoint.method, path))
        target = f"/v1/payments/{segment}?{query}"
        drawn.append(Probe("hypothesis", f"GET {target} HTTP/1.1\r\n{head}\r\n".encode(), "GET", target))

    collect()
    return drawn[:count]


def drive(port: int, seed: int, known: Known, count: int, sent: Sent) -> None:
    """`count` requests by schemathesis, valid and invalid ones, over all endpoints. Raises Violated."""
    schema = _schema(port)
    headers = {"Authorization": f"Bearer {known['test_key']}"}
    calls = 0

    def call(case: Any) -> None:
        nonlocal calls
        calls += 1
        _call(case, headers, sent)

    operations = [schema.find_operation_by_label(f"{each.method} {each.path}") for each in ENDPOINTS]
    for turn, operation in enumerate(cycle(operations)):
        if calls >= count:
            return
        mode = list(GenerationMode)[turn // len(operations) % 2]
        rules = _rules(min(count - calls, _EACH))
        try:
            strategy = operation.as_strategy(generation_mode=mode)
        except Exception:  # Nothing can be invalid where there is neither a body nor a query.
            strategy = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        with suppress(Unsatisfiable):  # The same, noticed only when it is drawn.
            seeded(seed + turn)(rules(given(case=strategy)(call)))()


def _schema(port: int) -> Any:
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/openapi.json")
    document = json.loads(connection.getresponse().read())
    connection.close()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"http://127.0.0.1:{port}/v1")
    schema.config.generation.update(with_security_parameters=False)
    return schema


def _call(case: Any, headers: dict[str, str], sent: Sent) -> None:
    response = case.call(headers=headers)
    target = "/v1/" + response.request.url.split("/v1/", 1)[1]
    probe = Probe("schemathesis", str(response.request.body).encode(), case.method, target)
    answer = Answer(
        response.status_code,
        [(name.lower(), value) for name, values in response.headers.items() for value in values],
        response.content,
    )
    try:
        check(probe, [answer])
    except Violation as error:
        raise Violated(0, probe, str(error), [answer]) from None
    sent.count(probe, [answer])
