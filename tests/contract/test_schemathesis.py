"""schemathesis drives the real server from `/openapi.json` alone, each endpoint.

Examples of the document, then its coverage cases (bounds, missing and foreign members, other verbs), then random valid
and invalid requests: no 500, and no answer that the document does not describe.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis.errors import NonInteractiveExampleWarning
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sqlalchemy import update

from guichet.api.endpoint_table import ENDPOINTS
from guichet.db.tables import webhook_deliveries
from guichet.domain.errors import BY_CODE, ERROR_REASONS, Unauthorized
from guichet.settings import Settings
from tests.service_fixture import MerchantClient, ServiceFixture, open_service

LABELS: Final = [f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS]
#: Whatever one writes in a path is some text, so only what else is sent can be invalid.
CAN_BE_INVALID: Final = {
    f"{endpoint.method} {endpoint.path}"
    for endpoint in ENDPOINTS
    if endpoint.body or any(parameter.where == "query" for parameter in endpoint.parameters)
}
#: A slice: `make fuzz` sends what schemathesis makes by the thousand.
RANDOM_EXAMPLES: Final = 4
COVERAGE_CASES: Final = 16
RANDOM: Final = hypothesis_settings(
    max_examples=RANDOM_EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
ONE: Final = hypothesis_settings(RANDOM, max_examples=1)
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
pytestmark = [
    # schemathesis draws the cases of its coverage phase outside of a test of hypothesis.
    pytest.mark.filterwarnings(
        f"ignore::{NonInteractiveExampleWarning.__module__}.{NonInteractiveExampleWarning.__name__}"
    ),
]


@pytest.fixture
async def limited_service(settings: Settings) -> AsyncIterator[ServiceFixture]:
    """With a rate limit that is never reached, so that its header is on every answer."""
    async with open_service(replace(settings, rate_limit=1_000_000)) as opened:
        yield opened


async def _lived_in(service: ServiceFixture) -> tuple[MerchantClient, dict[str, str]]:
    """A merchant who has something of everything, and what the paths' parameters may be."""
    merchant = await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "http://127.0.0.1:9/hook"})
    await merchant.pay("0000", external_id="commande-1042", metadata={"panier": 77})
    refunded, proposed = await merchant.pay("0000"), await merchant.pay("0000")
    await service.run_worker()
    refund = await merchant.post(f"/payments/{refunded['reference']}/refund", {})
    await merchant.post(f"/payments/{proposed['reference']}/refund-proposal", {})
    await merchant.post("/webhooks/test")
    link = await merchant.live.post("/payment-links", {"amount": 2000, "description": "Don"})
    session = await merchant.post("/checkout-sessions", {"amount": 2000, "description": "Commande"})
    known = {"/payments": refunded["reference"], "/refunds": refund.data["reference"]}
    known["/checkout-sessions"] = session.data["id"]
    known["/payments/{reference}/refund-proposal"] = proposed["reference"]
    delivery = (await merchant.get("/webhooks/deliveries")).data[0]["id"]
    await service.ctx.db.write(update(webhook_deliveries).values(status="failed", next_attempt_at=None))
    return merchant, {**known, "/payment-links": str(link.data["id"]), "/webhooks": delivery}


async def _schema(service: ServiceFixture, known: dict[str, str]) -> Any:
    """The document, for this server's address and with references that exist as examples."""
    document = (await service.call("GET", "/openapi.json")).body
    for path, methods in document["paths"].items():
        for parameter in (p for operation in methods.values() for p in operation.get("parameters", ())):
            if parameter["in"] == "path" and path != "/payments/{reference}/refund":
                parameter["example"] = known.get(path) or known[f"/{path.split('/')[1]}"]
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"{service.base_url}/v1")
    schema.config.generation.update(with_security_parameters=False)
    return schema


def _coverage(schema: Any, operation: Any) -> list[Any]:
    """Some of the coverage cases, spread over all of them."""
    config = schema.config.generation_for(operation=operation)
    cases = list(schema.iter_coverage_cases(operation, generation_modes=list(GenerationMode), generation_config=config))
    return cases[:: max(1, -(-len(cases) // COVERAGE_CASES))]


def _drive(schema: Any, label: str, key: str) -> list[int]:
    """Runs every check on every case, with this key; the statuses answered."""
    headers = {"Authorization": f"Bearer {key}"}
    operation = schema.find_operation_by_label(label)
    assert operation is not None
    statuses = []

    def check(case: Any) -> None:
        response = case.call(headers=headers)
        statuses.append(response.status_code)
        case.validate_response(response, checks=CHECKS, additional_checks=[_known_error])

    for strategy in schema.get_strategies_from_examples(operation):
        ONE(given(case=strategy)(check))()
    for case in _coverage(schema, operation):
        check(case)
    for mode in GenerationMode:
        if mode is GenerationMode.POSITIVE or label in CAN_BE_INVALID:
            RANDOM(given(case=operation.as_strategy(generation_mode=mode))(check))()
    return statuses


def _known_error(context: Any, response: Any, case: Any) -> None:
    """An error is the envelope, with a code that belongs to its status."""
    if response.status_code < 400:
        return
    body = response.json()
    assert set(body) == {"success", "error"}, body
    assert body["success"] is False
    assert set(body["error"]) - {"details", "reason", "reference"} == {"code", "message"}, body
    assert BY_CODE[body["error"]["code"]].status == response.status_code
    assert "details" not in body["error"] or body["error"]["code"] == "invalid_request"
    assert "reason" not in body["error"] or body["error"]["reason"] in ERROR_REASONS


@pytest.mark.timeout(300)
async def test_no_answer_is_undocumented(limited_service: ServiceFixture) -> None:
    """In one service: what schemathesis derives from the document is derived once."""
    merchant, known = await _lived_in(limited_service)
    schema = await _schema(limited_service, known)
    for label in LABELS:
        statuses = await asyncio.to_thread(_drive, schema, label, merchant.keys["test"])
        if "/payment-links" in label:  # With a test key there is nothing to see.
            statuses += await asyncio.to_thread(_drive, schema, label, merchant.keys["live"])

        assert Unauthorized.status not in statuses, label
        assert min(statuses) in (200, 201), f"nothing succeeded, {label}: the cases were too poor to tell anything"
