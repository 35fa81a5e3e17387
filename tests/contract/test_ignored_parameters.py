"""`meta.ignored` names the parameters of the address that nobody read, on every endpoint."""

from typing import Any

import pytest
from sqlalchemy import update

from guichet.db.tables import webhook_deliveries
from tests.contract.shapes import check_fields, check_resource, endpoint, order
from tests.contract.tables import table, tables
from tests.service_fixture import ServiceFixture

ROWS = table("endpoints")
LISTS = [row["Path"] for row in ROWS if row["Paginated"] == "yes"]
BODIES: dict[str, Any] = {
    "POST /payments": order(),
    "POST /payments/{reference}/refund": {},
    "POST /checkout-sessions": {"amount": 100, "description": "x"},
    "POST /payment-links": {"amount": 100, "description": "x"},
    "POST /payment-modes/fees": {"amount": 100, "operator": "mtn"},
    "PUT /webhooks/endpoint": {"url": None},
}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['Method']} {row['Path']}" for row in ROWS])
async def test_unknown_parameters_are_named_on_every_endpoint(sqlite_service: ServiceFixture, row: Any) -> None:
    name = f"{row['Method']} {row['Path']}"
    merchant = await sqlite_service.merchant()
    live = merchant.live if "payment-links" in name else merchant
    payment = await merchant.pay("0000", external_id="a")
    await sqlite_service.run_worker()
    path = row["Path"]
    if name == "GET /refunds/{reference}":
        path = f"/refunds/{(await merchant.post('/payments/a/refund')).data['reference']}"
    elif name == "GET /payments/{reference}/refund-proposal":
        await merchant.post("/payments/a/refund-proposal")
    elif name == "POST /webhooks/deliveries/{id}/resend":
        await live.put("/webhooks/endpoint", {"url": "http://127.0.0.1:9/h"})
        sent = (await live.post("/webhooks/test")).data["delivery_id"]
        await sqlite_service.ctx.db.write(update(webhook_deliveries).values(status="failed", next_attempt_at=None))
        path = path.replace("{id}", sent)
    elif path.startswith("/checkout-sessions/{id}"):
        session = (await live.post("/checkout-sessions", BODIES["POST /checkout-sessions"])).data
        path = path.replace("{id}", session["id"])
    elif name in ("GET /payment-links/{id}", "POST /payment-links/{id}/close"):
        link = (await live.post("/payment-links", BODIES["POST /payment-links"])).data
        path = path.replace("{id}", str(link["id"]))
    answer = await live.call(
        row["Method"], path.replace("{reference}", payment["reference"]) + "?statut=x&Page=2&statut=y", BODIES.get(name)
    )
    assert answer.status == int(row["Success"]), answer.raw
    meta = dict(answer.body["meta"])
    assert meta.pop("ignored") == ["statut", "Page"]
    if row["Paginated"] == "yes":
        check_fields(table("meta"), "meta", meta)
    elif row["Paginated"] == "by after":
        check_fields(table("meta by after"), "meta", meta)
    else:
        assert meta == {}
    if not row["Data"].endswith("[]") and row["Data"] != "webhook-test":
        check_resource(row["Data"], answer.data)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['Method']} {row['Path']}" for row in ROWS])
async def test_parameters_of_the_contract_are_read(shared_service: ServiceFixture, row: Any) -> None:
    """Those of the table of a GET; a POST and a PUT take none."""
    if row["Method"] != "GET" or "{" in row["Path"] or row["Path"] == "/webhooks/endpoint":
        return
    merchant = await shared_service.merchant()
    for field in tables("request")[f"GET {row['Path']}"]:
        value = field["Values"].split(", ")[0] or field["Min"] or ("2026-11-20" if field["Type"] == "date" else "x")
        answer = await merchant.get(f"{row['Path']}?{field['Field']}={value}")
        assert answer.status == (422 if field["Field"] == "after" else 200), answer.raw
        assert answer.status == 422 or "ignored" not in answer.body.get("meta", {}), field


async def test_numbers_stay_exact_in_an_answer_with_ignored_parameters(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    created = await merchant.post("/payments", order("VISA", amount=19.99, currency="EUR", metadata={"x": 1.0}))
    plain = await merchant.get(f"/payments/{created.data['reference']}")
    named = await merchant.get(f"/payments/{created.data['reference']}?x=1")
    assert named.raw == plain.raw[:-1] + b',"meta":{"ignored":["x"]}}'


async def test_a_status_that_does_not_exist_is_named(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    await merchant.pay("0002")
    answer = await merchant.get("/payments?status=succeded&statut=x")
    assert [each["status"] for each in answer.data] == ["pending"]
    assert answer.body["meta"]["ignored"] == ["status", "statut"]
    nothing = await merchant.get("/payments?status=&external_id=%00")
    assert nothing.body["meta"]["ignored"] == ["status"]
    assert "ignored" not in (await merchant.get("/payments?status=succeeded")).body["meta"]


async def test_an_error_has_no_meta(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for answer in (await merchant.get("/payments/nothing?x=1"), await merchant.get("/payments?per_page=0&x=1")):
        assert list(answer.body) == ["success", "error"]


@pytest.mark.parametrize("path", LISTS)
async def test_odd_names_are_answered_as_text(shared_service: ServiceFixture, path: str) -> None:
    answer = await (await shared_service.merchant()).get(f"{path}?%C3%A9=1&%FF=2&=3&%00=4&")
    assert answer.status == 200
    assert answer.body["meta"]["ignored"] == ["é", "\ufffd", "", "\0"]
    assert endpoint("GET", path)["Paginated"] == "yes"
