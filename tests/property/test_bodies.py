"""Whatever is sent, the answer is one of the contract's: never a 500, never outside the envelope, never a traceback."""

from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.shapes import check_error
from tests.contract.tables import table
from tests.property.strategies import BODIES, QUERIES, SEGMENTS
from tests.service_fixture import Answer, MerchantClient, ServiceFixture

#: Examples of each test, a slice: `make fuzz` sends thousands.
THOROUGH: Final = settings(
    max_examples=20,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
WRITES: Final = [
    ("POST", "/payments"),
    ("POST", "/payments/{reference}/refund"),
    ("POST", "/payments/{reference}/refund-proposal"),
    ("POST", "/checkout-sessions"),
    ("POST", "/checkout-sessions/{id}/expire"),
    ("POST", "/payment-links"),
    ("POST", "/payment-links/{id}/close"),
    ("POST", "/payment-modes/fees"),
    ("PUT", "/webhooks/endpoint"),
    ("POST", "/webhooks/test"),
    ("POST", "/webhooks/deliveries/{id}/resend"),
]
READS: Final = [row["Path"] for row in table("endpoints") if row["Method"] == "GET"]
CODES: Final = {int(row["HTTP"]): row["Code"] for row in table("errors") if row["Code"] != "key_expired"}


def _check(answer: Answer) -> None:
    assert answer.status < 500, answer.raw
    if answer.status < 300:
        assert answer.body["success"] is True
        assert set(answer.body) <= {"success", "data", "meta", "warnings"}
    else:
        check_error(answer, CODES[answer.status])


def _check_log(capfd: pytest.CaptureFixture[str]) -> None:
    out, err = capfd.readouterr()
    for line in (out + err).splitlines():
        assert "Traceback" not in line
        assert "[error" not in line, line


def test_every_write_of_the_contract_is_tried() -> None:
    assert [(row["Method"], row["Path"]) for row in table("endpoints") if row["Method"] != "GET"] == WRITES


@pytest.fixture
async def merchant(service: ServiceFixture) -> MerchantClient:
    return await service.merchant()


@pytest.mark.parametrize(("method", "path"), WRITES, ids=[f"{method} {path}" for method, path in WRITES])
@given(body=BODIES)
@THOROUGH
async def test_any_body(
    sqlite_service: ServiceFixture, capfd: pytest.CaptureFixture[str], method: str, path: str, body: bytes
) -> None:
    account = await sqlite_service.merchant()
    if path.startswith("/payment-links"):
        account = account.live
    elif "{reference}" in path:
        paid = await account.pay("0000")
        path = path.format(reference=paid["reference"])
        await account.get(f"/payments/{paid['reference']}")
    elif path.startswith("/webhooks/deliveries"):
        await account.put("/webhooks/endpoint", {"url": "http://127.0.0.1:9/hook"})
        path = path.format(id=(await account.post("/webhooks/test")).data["delivery_id"])
    if "{id}" in path:
        made = await account.post(path.partition("/{id}")[0], {"amount": 100, "description": "x"})
        path = path.format(id=made.data["id"])
    answer = await account.call(method, path, body)
    _check(answer)
    if answer.status == 201 and path in ("/payments", "/payment-links"):
        [listed] = (await account.get(path)).data
        assert listed | {"payment_url": None} == answer.data | {"payment_url": None}
    _check_log(capfd)


@given(body=BODIES)
@settings(THOROUGH, max_examples=15)
async def test_any_body_of_a_payment_is_storable(
    merchant: MerchantClient, capfd: pytest.CaptureFixture[str], body: bytes
) -> None:
    """What passed validation must also pass the stricter database."""
    _check(await merchant.post("/payments", body))
    _check(await merchant.get("/payments?per_page=1"))
    _check_log(capfd)


@pytest.mark.parametrize("live", [False, True], ids=["test", "live"])
@given(path=st.sampled_from(READS), segment=SEGMENTS, query=QUERIES)
@THOROUGH
async def test_any_read(
    service: ServiceFixture, capfd: pytest.CaptureFixture[str], live: bool, path: str, segment: str, query: str
) -> None:
    account = await service.merchant()
    place = path.replace("{reference}", segment).replace("{id}", segment)
    _check(await (account.live if live else account).get(f"{place}?{query}"))
    _check_log(capfd)


@given(segments=st.lists(SEGMENTS, min_size=1, max_size=4), method=st.sampled_from(["GET", "POST", "PUT", "DELETE"]))
@settings(THOROUGH, max_examples=15)
async def test_any_path(
    sqlite_service: ServiceFixture, capfd: pytest.CaptureFixture[str], segments: list[str], method: str
) -> None:
    account = await sqlite_service.merchant()
    _check(await account.call(method, "/" + "/".join(segments)))
    _check(await account.call(method, f"/payments/{segments[0]}/refund"))
    _check_log(capfd)


@given(key=st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60))
@settings(THOROUGH, max_examples=15)
async def test_any_authorization(sqlite_service: ServiceFixture, capfd: pytest.CaptureFixture[str], key: str) -> None:
    for header in (key, f"Bearer {key}", f"Bearer sk_test_{key}"):
        answer = await sqlite_service.call("GET", "/v1/balance", headers={"Authorization": header})
        check_error(answer, "unauthorized")
    _check_log(capfd)
