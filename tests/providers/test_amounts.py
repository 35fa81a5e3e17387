"""Amounts never pass through a float: an amount that differs from ours in the fifteenth decimal is another amount."""

from decimal import Decimal
from typing import Any

import pytest

from guichet.incidents import repository as incidents
from guichet.providers.shared.client import ProviderAccount, ProviderResponse
from guichet.providers.shared.fields import decode_json, hundredths
from guichet.settings import Settings
from tests.fakes.http_server import ReceivedRequest, ScriptedServer
from tests.invariants import check_books
from tests.providers.conformance import no_fees
from tests.providers.expectations import check, succeeded
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.provider_under_test import Scripted, callback, charge, provider_under_test
from tests.providers.simulated_providers import Setup, open_simulated_providers


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (5000, 500_000), ("5000", 500_000), ("5000.00", 500_000), (Decimal("87.5"), 8750), ("87.50", 8750), (0, 0),
        (Decimal("5088.0"), 508_800), (Decimal("5.088e3"), 508_800), ("-5", -500),
    ],
)  # fmt: skip
def test_amounts_are_read_exactly(stated: object, expected: int) -> None:
    assert hundredths(stated) == expected


@pytest.mark.parametrize(
    "stated",
    [
        Decimal("5088.000000000000001"), "5088.000000000000001", Decimal("5088." + "0" * 40 + "1"), "87.505",
        5088.0, float("inf"), float("nan"), True, None, "", "abc", [], {}, "NaN", "sNaN", "Infinity",
        "1e999999999", "1e-999999999", Decimal("1e999999999"), "1e300", 10**40,
    ],
    ids=repr,
)  # fmt: skip
def test_values_that_are_not_amounts_are_refused(stated: object) -> None:
    assert hundredths(stated) is None


def test_numbers_in_a_response_are_decoded_as_decimals() -> None:
    body = b'{"amount": 5088.000000000000001, "nested": [{"value": 5088.0}], "whole": 5088, "huge": 1e999999999}'
    numbers = decode_json(body)
    assert numbers == {
        "amount": Decimal("5088.000000000000001"),
        "nested": [{"value": Decimal("5088.0")}],
        "whole": 5088,
        "huge": Decimal("1e999999999"),
    }
    assert type(numbers["whole"]) is int
    response = ProviderResponse(status=200, body=body, complete=True)
    assert response.value() == response.object() == numbers


#: For each provider a status response whose amount is a JSON number, and the debit it is about.
STATUSES: dict[str, tuple[str, dict[str, Any]]] = {
    "mtn": ('{"status": "SUCCESSFUL", "amount": %s, "currency": "XOF"}', {}),
    "wave": (
        '{"checkout_status": "complete", "payment_status": "succeeded", "amount": %s, "currency": "XOF"}',
        {"operator": "wave_sn"},
    ),
    "pawapay": ('{"status": "FOUND", "data": {"status": "COMPLETED", "amount": %s, "currency": "XOF"}}', {}),
    "feexpay": ('{"status": "SUCCESSFUL", "amount": %s}', {}),
    "sonatel": (
        '[{"status": "SUCCESS", "reference": "%%s", "transactionId": "MP1", "amount": {"value": %s, "unit": "XOF"}}]',
        {"operator": "orange_sn"},
    ),
    "stripe": ('{"id": "cs_1", "payment_status": "paid", "amount_total": %s, "currency": "xof"}', {"operator": "VISA"}),
    "fedapay": (
        '{"id": 1, "status": "approved", "amount": %s, "currency_id": 1, "merchant_reference": "%%s"}',
        {},
    ),
    "paydunya": ('{"response_code": "00", "status": "completed", "invoice": {"total_amount": %s}}', {}),
    "coris": ('{"code": "0", "transactionId": "t", "montant": %s}', {"operator": "coris"}),
}


@pytest.mark.parametrize("provider_type", list(STATUSES))
async def test_no_provider_rounds_a_stated_amount(provider_type: str) -> None:
    template, changes = STATUSES[provider_type]
    debit = charge(provider_reference="theirs", **changes)

    def stating(amount: str) -> Scripted:
        body = template % amount
        return 200, (body % debit.payment.reference if "%s" in body else body).encode()

    async with provider_under_test(provider_type, stating("5088.000000000000001")) as scripted:
        check(await scripted.provider.status(debit), succeeded(None, "XOF"))
        scripted.answers[:] = [stating("5088")]
        check(await scripted.provider.status(debit), succeeded(5088_00, "XOF"))


async def test_numbers_in_a_callback_are_decoded_as_decimals() -> None:
    body = b'{"status": "SUCCESSFUL", "externalId": 12.5, "amount": 1e999999999}'
    async with provider_under_test("mtn", (202, b"")) as mtn:
        reference = mtn.provider.parse_callback(callback(body))
    assert reference is not None
    assert reference.reference is None


@pytest.mark.parametrize("expires_in", ["3600.5", '"3600"', "1e999999999", "-1", "null", '"soon"', "true"])
async def test_any_stated_lifetime_of_a_token_is_accepted(expires_in: str) -> None:
    token = b'{"access_token": "t", "expires_in": %s}' % expires_in.encode()
    async with provider_under_test("mtn", (200, b'{"status": "PENDING"}'), token=token) as mtn:
        await mtn.provider.status(charge())
        await mtn.provider.status(charge())
    assert (mtn.tokens, len(mtn.received)) == (1, 2)


@pytest.mark.parametrize(
    ("stated", "status", "kinds"),
    [("5088", "succeeded", []), ("5088.0", "succeeded", []), ("5088.000000000000001", "pending", [incidents.MISMATCH])],
)
async def test_a_success_with_another_amount_is_not_credited(
    sqlite_settings: Settings, stated: str, status: str, kinds: list[str]
) -> None:
    """The payment stays pending and an incident is opened for the staff."""

    async def feexpay(writer: Any, request: ReceivedRequest) -> None:
        body = b'{"reference": "r-1", "status": "PENDING"}'
        if request.line.startswith("GET"):
            body = b'{"reference": "r-1", "status": "SUCCESSFUL", "amount": %s}' % stated.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    async with ScriptedServer(feexpay) as server:
        account = ProviderAccount("feexpay", "feexpay", server.url("127.0.0.1", ""), PROVIDER_CASES["feexpay"].settings)
        setup = Setup({account.name: account}, {"moov": [account.name]})
        async with open_simulated_providers(sqlite_settings, setup) as simulated:
            await no_fees(simulated, "moov")
            order = {"amount": 5088, "operator": "moov", "phone_number": "22995000000"}
            answer = await simulated.nudged(simulated.merchant.live.post("/payments", order))
            for _ in range(3):
                await simulated.turn(10)
            payment = (await simulated.merchant.live.get(f"/payments/{answer.data['reference']}")).data
            balance = (await simulated.merchant.live.get("/balance")).data["balance"]
            found = await incidents.still_open(simulated.service.ctx.db)
            await check_books(simulated.service.ctx.db)
    assert payment["status"] == status
    assert balance == (5088 if status == "succeeded" else 0)
    assert [incident.kind for incident in found] == kinds
