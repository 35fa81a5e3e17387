"""MTN MoMo: the result of each response (docs/providers/mtn.md)."""

import base64
from typing import Any

import pytest

from guichet.clock import DAY, HOUR, MINUTE, SECOND, earlier
from guichet.http_client import HttpClient
from guichet.provider_accounts import USER_AGENT
from guichet.providers.base import (
    Accepted,
    AmbiguousRefusal,
    CallbackReference,
    FloatEmpty,
    NotFound,
    NotProcessed,
    Refused,
    Unknown,
)
from guichet.providers.provider_types import PROVIDER_TYPES
from guichet.providers.shared.client import ProviderAccount
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ReceivedRequest, ScriptedServer
from tests.providers.expectations import ambiguous, check, refused, succeeded
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.provider_under_test import (
    NOW,
    PAYEE,
    REFERENCE,
    REFUND,
    Scripted,
    callback,
    charge,
    provider_under_test,
    refund_request,
)

TAKEN = Accepted(REFERENCE)


@pytest.mark.parametrize(
    ("said", "meant", "reason"),
    [
        ((202, b""), Accepted, None),
        ((409, {"code": "RESOURCE_ALREADY_EXIST", "message": "…"}), Accepted, None),
        ((400, b""), Refused, "refused"),
        ((400, {"code": "PAYER_NOT_FOUND"}), Refused, "payer_not_found"),
        ((401, {"statusCode": 401, "message": "Access denied"}), NotProcessed, "configuration"),
        ((403, {"code": "FORBIDDEN_IP"}), NotProcessed, "configuration"),
        ((404, {"statusCode": 404, "message": "Resource not found"}), NotProcessed, "configuration"),
        ((429, {"statusCode": 429}), NotProcessed, "operator_unavailable"),
        ((500, {"code": "NOT_ENOUGH_FUNDS"}), Refused, "insufficient_funds"),
        ((500, {"code": "PAYER_LIMIT_REACHED"}), Refused, "limit_reached"),
        ((500, {"code": "NOT_ALLOWED_TARGET_ENVIRONMENT"}), NotProcessed, "configuration"),
        ((500, {"code": "INTERNAL_PROCESSING_ERROR"}), Unknown, None),
        ((500, {"code": "SOMETHING_NEW"}), Unknown, None),
        ((500, b""), Unknown, None),
        ((502, b"<html>"), Unknown, None),
        ((503, {"code": "SERVICE_UNAVAILABLE"}), Unknown, None),
        ((200, {"status": "SUCCESSFUL"}), Unknown, None),
        ((302, b""), Unknown, None),
    ],
)
async def test_initiation_responses_become_results(said: Scripted, meant: type, reason: str | None) -> None:
    async with provider_under_test("mtn", said) as mtn:
        answer = await mtn.provider.initiate(charge())
    assert type(answer) is meant
    assert getattr(answer, "reason", None) == reason


async def test_initiation_request_has_the_documented_fields() -> None:
    async with provider_under_test("mtn", (202, b"")) as mtn:
        await mtn.provider.initiate(charge())
    headers, body = mtn.received[0].headers, mtn.sent()
    assert mtn.path() == "/collection/v1_0/requesttopay"
    assert headers["x-reference-id"] == REFERENCE
    assert headers["x-target-environment"] == "mtnbenin"
    assert headers["x-callback-url"].endswith(REFERENCE)
    assert (body["amount"], body["currency"], body["externalId"]) == ("5000", "XOF", REFERENCE)
    assert body["payer"] == {"partyIdType": "MSISDN", "partyId": "22997000001"}
    assert body["payerMessage"] == "Panier n 12 l ete"


@pytest.mark.parametrize("changes", [{"operator": "mtn_ci"}, {"currency": "XAF"}, {"currency": "EUR"}])
async def test_a_payment_that_the_country_does_not_support_is_refused_without_a_request(
    changes: dict[str, Any],
) -> None:
    async with provider_under_test("mtn", (202, b"")) as mtn:
        assert isinstance(await mtn.provider.initiate(charge(**changes)), NotProcessed)
    assert mtn.received == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"status": "PENDING"}), TAKEN),
        ((200, {"status": "CREATED"}), TAKEN),
        (
            (200, {"status": "SUCCESSFUL", "amount": "5000", "currency": "XOF", "financialTransactionId": "77"}),
            succeeded(5000_00, "XOF", "77"),
        ),
        (
            (200, {"status": "SUCCESSFUL", "amount": 5000, "currency": "XOF"}),
            succeeded(5000_00, "XOF", REFERENCE),
        ),
        ((200, {"status": "SUCCESSFUL", "amount": "5000.00"}), succeeded(5000_00, None, REFERENCE)),
        ((200, {"status": "SUCCESSFUL", "currency": "XOF"}), succeeded(None, "XOF", REFERENCE)),
        ((200, {"status": "SUCCESSFUL", "amount": "1e999999999"}), succeeded(None, None, REFERENCE)),
        ((200, {"status": "FAILED", "reason": "NOT_ENOUGH_FUNDS"}), "insufficient_funds"),
        ((200, {"status": "FAILED", "reason": {"code": "APPROVAL_REJECTED", "message": "…"}}), "rejected_by_payer"),
        ((200, {"status": "FAILED", "reason": "EXPIRED"}), "expired"),
        ((200, {"status": "FAILED"}), "refused"),
        ((200, {"status": "REJECTED"}), "refused"),
        ((200, {"status": "SOMETHING"}), None),
        ((200, {}), None),
        ((200, b"null"), None),
        ((200, b"\xff"), None),
        ((401, {"message": "…"}), None),
        ((404, {"code": "RESOURCE_NOT_FOUND"}), NotFound('404 {"code":"RESOURCE_NOT_FOUND"}')),
        ((500, {"code": "PAYER_NOT_FOUND"}), None),
    ],
)
async def test_status_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("mtn", said) as mtn:
        answer = await mtn.provider.status(charge(provider_reference=REFERENCE))
    if meant is None:
        assert type(answer) is Unknown
    elif isinstance(meant, str):
        assert isinstance(answer, Refused)
        assert answer.reason == meant
    else:
        assert answer == meant


NEVER_SEEN = (404, {"code": "RESOURCE_NOT_FOUND", "message": "…"})


@pytest.mark.parametrize(
    ("age", "known", "meant", "posts"),
    [
        (30 * SECOND, None, Accepted, 1),
        (3 * MINUTE, None, NotFound, 0),
        (30 * DAY, None, NotFound, 0),
        (-HOUR, None, NotFound, 0),
        (15 * MINUTE, REFERENCE, NotFound, 0),
        (30 * SECOND, REFERENCE, NotFound, 0),
    ],
)
async def test_a_404_is_repeated_while_the_customer_waits_and_concludes_nothing(
    age: int, known: str | None, meant: type, posts: int
) -> None:
    """Sent again only while no response came and the customer still waits, and not when the clock was set back."""
    async with provider_under_test("mtn", NEVER_SEEN, (202, b"")) as mtn:
        answer = await mtn.provider.status(charge(provider_reference=known, created_at=earlier(mtn.clock.now(), age)))
    assert type(answer) is meant
    resent = [one.headers["x-reference-id"] for one in mtn.received if one.line.startswith("POST")]
    assert resent == [REFERENCE] * posts


async def test_a_refusal_of_a_repeated_request_says_nothing_about_the_first() -> None:
    """The first one may still be on its way."""
    async with provider_under_test("mtn", NEVER_SEEN, (500, {"code": "PAYER_NOT_FOUND"})) as mtn:
        assert type(await mtn.provider.status(charge(created_at=mtn.clock.now()))) is Unknown
        mtn.answers[:] = [NEVER_SEEN, (400, {"code": "PAYEE_NOT_FOUND"})]
        assert type(await mtn.provider.refund_status(refund_request())) is NotFound
        mtn.answers[:] = [NEVER_SEEN, (400, {"code": "PAYEE_NOT_FOUND"})]
        assert type(await mtn.provider.refund_status(refund_request(never_arrived=True))) is Refused


async def test_a_404_about_something_else_gives_unknown() -> None:
    async with provider_under_test("mtn", (404, {"statusCode": 404, "message": "Resource not found"})) as mtn:
        answer = await mtn.provider.status(charge(created_at=earlier(mtn.clock.now(), HOUR)))
    assert type(answer) is Unknown


@pytest.mark.parametrize(
    ("via", "path", "named"),
    [
        ("refund", "/disbursement/v1_0/refund", "referenceIdToRefund"),
        ("transfer", "/disbursement/v1_0/transfer", "payee"),
    ],
)
async def test_refund_and_transfer_responses_become_results(via: str, path: str, named: str) -> None:
    async with provider_under_test("mtn", (202, b""), refund_via=via) as mtn:
        assert await mtn.provider.refund(refund_request()) == Accepted(REFUND)
        assert mtn.path() == path
        assert mtn.received[0].headers["x-reference-id"] == REFUND
        expected = REFERENCE if via == "refund" else {"partyIdType": "MSISDN", "partyId": PAYEE}
        assert mtn.sent()[named] == expected
        assert mtn.provider.can_refund("mtn", collected_here=True)
        assert mtn.provider.can_refund("mtn", collected_here=False) is (via == "transfer")
        assert not mtn.provider.can_refund("mtn_ci", collected_here=True)


async def test_a_refund_without_disbursement_credentials_is_refused() -> None:
    async with provider_under_test("mtn", (202, b""), disbursement_subscription_key="") as mtn:
        assert not mtn.provider.can_refund("mtn", collected_here=True)
        assert await mtn.provider.refund(refund_request()) == Refused("no_refund")
    assert mtn.received == []


async def test_a_token_is_kept_until_its_end_and_renewed_after_a_401() -> None:
    async with provider_under_test("mtn", (202, b"")) as mtn:
        await mtn.provider.initiate(charge())
        await mtn.provider.initiate(charge())
        assert mtn.tokens == 1
        mtn.clock.advance(3600)
        await mtn.provider.initiate(charge())
        assert mtn.tokens == 2
        mtn.answers[:] = [(401, b""), (202, b"")]
        assert await mtn.provider.initiate(charge()) == TAKEN
        assert mtn.tokens == 3
        mtn.answers[:] = [(401, b"")]
        assert isinstance(await mtn.provider.initiate(charge()), NotProcessed)
        assert mtn.tokens == 4


def test_invalid_settings_are_refused() -> None:
    from guichet.providers.mtn.provider import Mtn
    from guichet.providers.shared.client import ProviderAccount
    from tests.providers.provider_cases import PROVIDER_CASES

    good = dict(PROVIDER_CASES["mtn"].settings)
    for wrong in ({"target_env": "mtnghana"}, {"refund_via": "cheque"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Mtn(ProviderAccount("m", "mtn", "http://x", {**good, **wrong}), None, None)  # type: ignore[arg-type]


async def test_a_callback_only_names_the_payment_to_poll() -> None:
    async with provider_under_test("mtn", (202, b"")) as mtn:
        read = mtn.provider.parse_callback
        assert read(callback({"status": "SUCCESSFUL", "externalId": REFERENCE, "payer": {}})) == CallbackReference(
            REFERENCE
        )
        assert read(callback({"status": "FAILED", "externalId": REFUND, "payee": {}})) == CallbackReference(REFUND)
        for nonsense in (b"", b"[]", b"{}", b"\xff", b"null"):
            assert read(callback(nonsense)) is None


FLOAT_EMPTY = {"code": "NOT_ENOUGH_FUNDS", "message": "…"}


async def test_our_empty_float_is_not_the_payees_refusal() -> None:
    async with provider_under_test("mtn", (500, FLOAT_EMPTY)) as mtn:
        assert isinstance(await mtn.provider.refund(refund_request()), FloatEmpty)
        check(await mtn.provider.initiate(charge()), refused("insufficient_funds"))
    failed = {"status": "FAILED", "reason": FLOAT_EMPTY}
    async with provider_under_test("mtn", (200, failed)) as mtn:
        assert isinstance(await mtn.provider.refund_status(refund_request()), FloatEmpty)
        check(await mtn.provider.status(charge()), refused("insufficient_funds"))


@pytest.mark.parametrize("status", [500, 400])
async def test_a_code_that_may_mean_our_float_is_ambiguous_on_money_out_only(status: int) -> None:
    low = {"code": "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED", "message": "…"}
    async with provider_under_test("mtn", (status, low)) as mtn:
        check(await mtn.provider.refund(refund_request()), ambiguous())
        check(await mtn.provider.initiate(charge()), refused("insufficient_funds"))
    for reason, meant in ((low, "insufficient_funds"), ("INTERNAL_PROCESSING_ERROR", "operator_unavailable")):
        async with provider_under_test("mtn", (200, {"status": "FAILED", "reason": reason})) as mtn:
            check(await mtn.provider.refund_status(refund_request()), (AmbiguousRefusal, meant))
            check(await mtn.provider.status(charge()), (Refused, meant))


async def test_a_refund_is_asked_about_by_the_verb_that_sent_it() -> None:
    """`refund` and `transfer` are two namespaces: asked by the other verb, MTN would say that it never got the refund,
    and the customer would be paid twice."""
    async with provider_under_test("mtn", (202, b""), refund_via="refund") as mtn:
        stored = mtn.provider.prepare_refund(refund_request())
    not_found = (404, {"code": "RESOURCE_NOT_FOUND"})
    async with provider_under_test("mtn", not_found, (202, b""), refund_via="transfer") as mtn:
        await mtn.provider.refund_status(refund_request(provider_data=stored))
        assert [request.line.split(" ")[1] for request in mtn.received] == [
            f"/disbursement/v1_0/refund/{REFUND}",
            "/disbursement/v1_0/refund",
        ]


async def test_the_token_request_is_what_the_new_platform_wants() -> None:
    """Raw credentials, the target environment, and a User-Agent of our own (docs/providers/mtn.md)."""
    token_requests: list[ReceivedRequest] = []

    async def answer(writer: Any, request: ReceivedRequest) -> None:
        token_requests.append(request)
        body = b'{"access_token": "t", "expires_in": 3600}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    user, secret = "d2FsbGV0LXVzZXI==", "p/un+ct:ua=tion&"
    async with ScriptedServer(answer) as server:
        http_client = HttpClient(loopback=True, user_agent=USER_AGENT)
        settings = {**PROVIDER_CASES["mtn"].settings, "api_user": user, "api_key": secret}
        account = ProviderAccount("mtn_new", "mtn", server.url("127.0.0.1", ""), settings)
        try:
            await PROVIDER_TYPES["mtn"].build(account, http_client, ManualClock(NOW)).probe()
        finally:
            await http_client.aclose()
    headers = token_requests[0].headers
    assert headers["x-target-environment"] == "mtnbenin"
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode() == f"{user}:{secret}"
    assert headers["user-agent"].startswith("Guichet/")
