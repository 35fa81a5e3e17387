"""FeexPay v2: the result of each response (docs/providers/feexpay.md)."""

import asyncio
from typing import Any

import pytest

from guichet.clock import HOUR, earlier, iso
from guichet.domain.failures import RefusalReason
from guichet.providers.base import Accepted, CallbackReference, Refused
from guichet.providers.capabilities import Balances, SendsOtpCodes
from guichet.providers.shared.answers import ProviderAnswer
from tests.fakes.passing_time import pass_seconds
from tests.providers.expectations import FLOAT_EMPTY, TAKEN, UNKNOWN, ambiguous, check, not_taken, refused, succeeded
from tests.providers.provider_under_test import (
    NOW,
    REFERENCE,
    REFUND,
    Scripted,
    callback,
    charge,
    provider_under_test,
    refund_request,
)


def error(status: int, code: str, message: str = "…") -> Scripted:
    return status, {"statusCode": status, "message": message, "code": code}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"reference": "r-1", "status": "PENDING"}), Accepted("r-1")),
        ((201, {"transref": "r-2", "status": "PENDING"}), Accepted("r-2")),
        ((200, {"order_id": "r-3", "payment_url": "https://p/1"}), Accepted("r-3", "https://p/1")),
        ((200, {"reference": "r-1", "status": "SUCCESSFUL"}), Accepted("r-1", next_poll_at=NOW)),
        ((200, {"reference": "r-1", "status": "FAILED"}), Accepted("r-1", next_poll_at=NOW)),
        ((200, {"message": "OTP envoye"}), UNKNOWN),
        ((400, {"statusCode": 400, "message": ["amount must be an integer"]}), refused()),
        (error(400, "ERR_INVALID_PHONE_NUMBER"), refused("payer_not_found")),
        (error(400, "ERR_DUPLICATE_TRANSACTION"), UNKNOWN),
        (error(400, "", "OTP incorrect"), refused("bad_otp")),
        (error(405, "", "mauvais reseau"), refused("payer_not_found")),
        (error(401, "UNAUTHORIZED"), not_taken()),
        (error(403, "IP_NOT_ALLOWED"), not_taken()),
        (error(404, "", "moov channel not configured"), not_taken()),
        (error(429, "RATE_LIMIT_EXCEEDED"), not_taken("operator_unavailable")),
        (error(500, "ERR_TRANSACTION_FAILED"), UNKNOWN),
        (error(502, ""), UNKNOWN),
        (error(503, "NETWORK_UNAVAILABLE"), UNKNOWN),
    ],
)
async def test_initiation_responses_become_results(said: Scripted, meant: Any) -> None:
    """A final status in the response is not trusted: it is polled at once."""
    async with provider_under_test("feexpay", said) as feexpay:
        check(await feexpay.provider.initiate(charge("moov")), meant)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"amount": 99_00}, "limit_reached"),
        ({"currency": "EUR"}, "currency_not_accepted"),
        ({"operator": "mtn_cg"}, "currency_not_accepted"),
    ],
)
async def test_an_unsupported_payment_is_refused_without_a_request(
    changes: dict[str, Any], reason: RefusalReason
) -> None:
    async with provider_under_test("feexpay", (200, {"reference": "r"})) as feexpay:
        check(await feexpay.provider.initiate(charge(**changes)), not_taken(reason))
    assert feexpay.received == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"status": "PENDING", "message": "OTP envoye"}), Accepted()),
        ((201, {"reference": "r-1", "status": "PENDING"}), Accepted()),
        ((200, {"status": "FAILED", "reason": "PAYER_NOT_FOUND"}), refused("payer_not_found")),
        ((200, b"<html>"), UNKNOWN),
        (error(400, "ERR_INVALID_PHONE_NUMBER"), refused("payer_not_found")),
        (error(400, "ERR_DUPLICATE_TRANSACTION"), UNKNOWN),
        (error(401, "UNAUTHORIZED"), not_taken()),
        (error(404, "", "coris channel not configured"), not_taken()),
        (error(503, "NETWORK_UNAVAILABLE"), UNKNOWN),
    ],
)
async def test_an_otp_request_is_a_payin_without_a_code(said: Scripted, meant: Any) -> None:
    async with provider_under_test("feexpay", said) as feexpay:
        assert isinstance(feexpay.provider, SendsOtpCodes)
        check(await feexpay.provider.send_code(charge("coris", otp="123456")), meant)
    assert feexpay.path() == "/api/transactions/public/requesttopay/coris"
    assert "otp" not in feexpay.sent()


@pytest.mark.parametrize(
    ("operator", "changes", "reason"),
    [
        ("mtn", {}, "configuration"),
        ("orange_bf", {}, "configuration"),
        ("coris", {"amount": 99_00}, "limit_reached"),
        ("coris", {"currency": "EUR"}, "currency_not_accepted"),
    ],
)
async def test_an_otp_request_that_would_debit_is_not_sent(
    operator: str, changes: dict[str, Any], reason: RefusalReason
) -> None:
    async with provider_under_test("feexpay", (200, {"reference": "r"})) as feexpay:
        assert isinstance(feexpay.provider, SendsOtpCodes)
        check(await feexpay.provider.send_code(charge(operator, **changes)), not_taken(reason))
    assert feexpay.received == []


async def test_a_payment_without_its_code_is_refused() -> None:
    async with provider_under_test("feexpay", (200, {"status": "PENDING"})) as feexpay:
        check(await feexpay.provider.initiate(charge("coris")), Refused("bad_otp", ProviderAnswer.NO_CODE_GIVEN()))
    assert feexpay.received == []


async def test_an_answer_that_comes_after_the_customer_typed_the_pin_is_waited_for() -> None:
    """Some networks take a minute and more, and the answer alone names the transaction."""
    async with provider_under_test("feexpay", (200, {"reference": "r-1", "status": "PENDING"})) as feexpay:
        feexpay.may_answer.clear()
        initiation = asyncio.create_task(feexpay.provider.initiate(charge("moov")))
        while not feexpay.received:
            await asyncio.sleep(0.01)
        assert feexpay.provider.initiation_timeout == 75
        await pass_seconds(74)
        feexpay.may_answer.set()
        assert await initiation == Accepted("r-1")


async def test_initiation_request_has_the_documented_fields() -> None:
    async with provider_under_test("feexpay", (200, {"reference": "r"})) as feexpay:
        await feexpay.provider.initiate(charge("free_sn", return_url="https://shop.example/back"))
    body = feexpay.sent()
    assert feexpay.path() == "/api/transactions/public/requesttopay/free_sn"
    assert (body["amount"], body["callback_info"], body["last_name"]) == (5000, REFERENCE, "N Diaye")
    assert body["return_url"] == body["cancel_url"] == "https://shop.example/back"
    assert "otp" not in body


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"status": "SUCCESSFUL", "amount": 5000}), succeeded(5000_00, "XOF")),
        ((200, {"status": "SUCCESS", "amount": "5000"}), succeeded(5000_00, "XOF")),
        ((200, {"status": "SUCCESSFUL"}), succeeded(None, "XOF")),
        ((200, {"status": "FAILED", "reason": "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED"}),
         refused("insufficient_funds")),
        ((200, {"status": "FAILED", "reason": "PAYER_NOT_FOUND"}), refused("payer_not_found")),
        ((200, {"status": "CANCELLED"}), refused()),
        ((200, {"status": "IN PENDING STATE"}), TAKEN),
        ((200, {"status": "ANYTHING"}), TAKEN),
        ((404, {"statusCode": 404, "code": "NOT_FOUND"}), UNKNOWN),
        ((401, {"code": "UNAUTHORIZED"}), UNKNOWN),
    ],
)  # fmt: skip
async def test_status_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("feexpay", said) as feexpay:
        check(await feexpay.provider.status(charge("moov", provider_reference="r-1")), meant)


def history(*ours: str | None) -> Scripted:
    return 200, {"success": True, "data": [{"reference": f"r-{n}", "callback_info": o} for n, o in enumerate(ours)]}


async def test_a_lost_response_is_recovered_from_the_history() -> None:
    done = (200, {"status": "SUCCESSFUL", "amount": 5000})
    async with provider_under_test("feexpay", history(None, "other", REFERENCE), done) as feexpay:
        check(await feexpay.provider.status(charge("moov")), succeeded(5000_00, "XOF"))
        assert feexpay.path() == "/api/transactions/public/single/status/r-2"
        searched = feexpay.sent(0)
    assert searched["type"] == "PAYIN"
    assert searched["start_date"] < iso(NOW)[:10] < searched["end_date"]


@pytest.mark.parametrize("said", [history(), history("other"), (500, {}), (200, {}), (401, {})])
async def test_a_payment_missing_from_the_history_stays_unknown(said: Scripted) -> None:
    async with provider_under_test("feexpay", said) as feexpay:
        check(await feexpay.provider.status(charge("moov")), UNKNOWN)


async def test_a_history_of_five_hundred_rows_is_read_completely() -> None:
    """Five hundred rows are far above the usual size limit of a response."""
    rows = [{"reference": f"r-{n}", "callback_info": str(n), "description": "x" * 300} for n in range(499)]
    whole = (200, {"data": [*rows, {"reference": "ours", "callback_info": REFERENCE}]})
    async with provider_under_test("feexpay", whole, (200, {"status": "PENDING"})) as feexpay:
        check(await feexpay.provider.status(charge("moov")), Accepted("ours"))


FULL: Scripted = (200, {"data": [{"reference": f"r-{n}", "callback_info": str(n)} for n in range(500)]})
PENDING: Scripted = (200, {"status": "PENDING"})


@pytest.mark.parametrize(
    ("operator", "network"), [("togocom_tg", "TOGOCOM TG"), ("mtn", "MTN"), ("wave_bf", None), ("VISA", None)]
)
async def test_a_lost_payment_is_searched_among_those_of_its_network(operator: str, network: str | None) -> None:
    """A day lists at most 500 transactions. Some networks have no documented name."""
    async with provider_under_test("feexpay", history(REFERENCE), PENDING) as feexpay:
        check(await feexpay.provider.status(charge(operator)), Accepted("r-0"))
        assert feexpay.sent(0).get("reseau") == network


async def test_a_network_s_day_that_is_too_full_is_searched_by_status() -> None:
    period, day, of_status = FULL, FULL, FULL
    async with provider_under_test("feexpay", period, day, of_status, history(REFERENCE), PENDING) as feexpay:
        check(await feexpay.provider.status(charge("moov")), Accepted("r-0"))
        asked = [feexpay.sent(number) for number in range(4)]
    assert [each["status"] for each in asked] == ["ALL", "ALL", "SUCCESSFUL", "FAILED"]
    assert {(each["type"], each["reseau"]) for each in asked} == {("PAYIN", "MOOV")}


async def test_a_payment_that_even_the_full_lists_of_a_day_lack_stays_unknown() -> None:
    async with provider_under_test("feexpay", FULL, FULL, FULL, history()) as feexpay:
        check(await feexpay.provider.status(charge("mtn_cg", currency="XAF")), UNKNOWN)


@pytest.mark.parametrize(
    ("operator", "path", "network"),
    [
        ("mtn", "transfer/global", "MTN"),
        ("moov", "transfer/global", "MOOV"),
        ("celtiis_bj", "celtiis_bj", "CELTIIS BJ"),
        ("togocom_tg", "togo", "TOGOCOM TG"),
        ("wave_sn", "wave_sn", None),
    ],
)
async def test_a_refund_is_a_payout(operator: str, path: str, network: str | None) -> None:
    async with provider_under_test("feexpay", (200, {"reference": "p-1", "status": "PENDING"})) as feexpay:
        check(await feexpay.provider.refund(refund_request(operator)), Accepted("p-1"))
    assert feexpay.path() == f"/api/payouts/public/{path}"
    assert feexpay.sent().get("network") == network
    assert feexpay.sent()["callback_info"] == REFUND


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (error(400, "ERR_INSUFFICIENT_BALANCE"), FLOAT_EMPTY),
        (error(400, "ERR_TRANSACTION_FAILED", "Insufficient funds"), ambiguous()),
        (error(400, "", "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED"), ambiguous()),
        (error(400, "", "NOT_ENOUGH_FUNDS"), ambiguous()),
        (error(400, "", "Solde insuffisant"), ambiguous("refused")),
        (error(400, "ERR_TRANSACTION_FAILED"), refused()),
        (error(400, "ERR_INVALID_PHONE_NUMBER"), refused("payer_not_found")),
        (error(403, "ERR_PAYOUT_NOT_ENABLED"), refused("no_refund")),
        (error(403, "IP_NOT_ALLOWED"), not_taken()),
        (error(500, ""), UNKNOWN),
    ],
)
async def test_a_refused_payout_is_a_refused_refund(said: Scripted, meant: Any) -> None:
    async with provider_under_test("feexpay", said) as feexpay:
        check(await feexpay.provider.refund(refund_request("moov")), meant)


@pytest.mark.parametrize(
    ("reason", "meant"),
    [
        ("LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED", ambiguous()),
        ("INTERNAL_PROCESSING_ERROR", ambiguous("refused")),
        ("ERR_INSUFFICIENT_BALANCE", ambiguous()),
        ("PAYER_NOT_FOUND", refused("payer_not_found")),
    ],
)
async def test_a_payout_that_failed_may_mean_our_balance(reason: str, meant: Any) -> None:
    async with provider_under_test("feexpay", (200, {"status": "FAILED", "reason": reason})) as feexpay:
        check(await feexpay.provider.refund_status(refund_request("moov", provider_reference="p-1")), meant)
        assert isinstance(feexpay.provider, Balances)
        assert feexpay.provider.payout_wallet("togocom_tg") == "TOGOCOM TG"


def rows(*states: str) -> Scripted:
    """A history whose rows all have our reference."""
    listed = [{"reference": f"r-{n}", "callback_info": REFERENCE, "status": each} for n, each in enumerate(states)]
    return 200, {"data": listed}


SUCCEEDED = {"status": "SUCCESSFUL", "amount": 5000}


@pytest.mark.parametrize(
    ("listed", "states", "meant"),
    [
        (["SUCCESSFUL", "FAILED"], [SUCCEEDED], succeeded(5000_00, "XOF")),
        (["FAILED", "SUCCESSFUL"], [SUCCEEDED], succeeded(5000_00, "XOF")),
        (["FAILED", "PENDING"], [{"status": "PENDING"}, {"status": "FAILED"}], Accepted("r-1")),
        (["PENDING", "PENDING"], [{"status": "FAILED"}, SUCCEEDED], succeeded(5000_00, "XOF")),
        (["FAILED", "FAILED"], [{"status": "FAILED"}, {"status": "FAILED"}], refused()),
    ],
)
async def test_of_two_rows_under_one_reference_the_most_conclusive_counts(
    listed: list[str], states: list[dict[str, Any]], meant: Any
) -> None:
    answers: list[Scripted] = [(200, state) for state in states]
    async with provider_under_test("feexpay", rows(*listed), *answers) as feexpay:
        check(await feexpay.provider.status(charge("moov")), meant)


async def test_a_failed_row_does_not_hide_the_one_that_succeeded() -> None:
    """Its reference is known, from the initiation or from a callback; the history has the other one."""
    failed: Scripted = (200, {"status": "FAILED", "callback_info": REFERENCE})
    both = rows("FAILED", "SUCCESSFUL")
    for known in ({"provider_reference": "r-0"}, {"callback_reference": "r-0"}):
        async with provider_under_test("feexpay", failed, both, (200, SUCCEEDED)) as feexpay:
            check(await feexpay.provider.status(charge("moov", **known)), succeeded(5000_00, "XOF"))
            assert feexpay.path() == "/api/transactions/public/single/status/r-1"
    async with provider_under_test("feexpay", failed, (500, {})) as feexpay:
        check(await feexpay.provider.status(charge("moov", provider_reference="r-0")), refused())


async def test_a_row_that_is_pending_for_long_does_not_hide_the_one_that_ended() -> None:
    """Within the hour nothing more is asked; a row that failed says nothing about the one that is pending."""
    pending: Scripted = (200, {"status": "PENDING", "callback_info": REFERENCE})
    known = {"provider_reference": "r-0", "created_at": earlier(NOW, HOUR)}
    async with provider_under_test("feexpay", pending, rows("PENDING", "SUCCESSFUL"), (200, SUCCEEDED)) as feexpay:
        check(await feexpay.provider.status(charge("moov", **known)), succeeded(5000_00, "XOF"))
    failed: Scripted = (200, {"status": "FAILED", "callback_info": REFERENCE})
    async with provider_under_test("feexpay", pending, rows("FAILED"), failed) as feexpay:
        check(await feexpay.provider.status(charge("moov", **known)), Accepted("r-0"))
    async with provider_under_test("feexpay", pending, (500, {})) as feexpay:
        check(await feexpay.provider.status(charge("moov", **known)), Accepted("r-0"))
    async with provider_under_test("feexpay", pending, rows("SUCCESSFUL"), (200, SUCCEEDED)) as feexpay:
        young = {**known, "created_at": earlier(NOW, HOUR - 1)}
        check(await feexpay.provider.status(charge("moov", **young)), Accepted("r-0"))


async def test_of_two_payouts_under_one_reference_the_most_conclusive_counts() -> None:
    listed = [{"reference": "p-1", "callback_info": REFUND, "status": "SUCCESSFUL"},
              {"reference": "p-2", "callback_info": REFUND, "status": "FAILED"}]  # fmt: skip
    async with provider_under_test("feexpay", (200, {"data": listed}), (200, SUCCEEDED)) as feexpay:
        check(await feexpay.provider.refund_status(refund_request("moov")), succeeded(5000_00, "XOF"))
        assert feexpay.path() == "/api/payouts/status/public/p-1"


async def test_refunds_are_possible_only_where_a_payout_exists() -> None:
    async with provider_under_test("feexpay", (200, {})) as feexpay:
        able = {code: feexpay.provider.can_refund(code, collected_here=False) for code in ("moov", "coris", "VISA")}
    assert able == {"moov": True, "coris": False, "VISA": False}


async def test_a_callback_only_names_the_payment_to_poll() -> None:
    async with provider_under_test("feexpay", (200, {})) as feexpay:
        read = feexpay.provider.parse_callback
        assert read(callback({"reference": "r", "callback_info": REFERENCE, "type": "Paiement"})) == CallbackReference(
            REFERENCE, "r"
        )
        assert read(callback({"order_id": "r", "type": "Payout"})) == CallbackReference(None, "r")
        assert read(callback({"status": "SUCCESSFUL"})) is None


async def test_the_reference_in_a_callback_recovers_a_lost_response() -> None:
    """The response with FeexPay's reference was lost, and the history does not list the payment yet."""
    paid = {"status": "SUCCESSFUL", "amount": 5000, "callback_info": REFERENCE}
    async with provider_under_test("feexpay", (200, paid)) as feexpay:
        check(await feexpay.provider.status(charge(callback_reference="tx/1")), succeeded(5000_00, "XOF"))
        assert feexpay.path() == "/api/transactions/public/single/status/tx%2F1"


async def test_a_callback_cannot_point_at_somebody_elses_payment() -> None:
    """Callbacks are not signed: a stranger could name a payment that another customer made."""
    for stated in ({"callback_info": REFUND}, {}, {"callback_info": None}):
        elses = {"status": "SUCCESSFUL", "amount": 5000, **stated}
        async with provider_under_test("feexpay", (200, elses), (200, {"data": []})) as feexpay:
            check(await feexpay.provider.status(charge(callback_reference="tx-2")), UNKNOWN)


async def test_a_state_about_another_reference_is_not_believed() -> None:
    elses = {"status": "SUCCESSFUL", "amount": 5000, "callback_info": REFUND}
    async with provider_under_test("feexpay", (200, elses)) as feexpay:
        check(await feexpay.provider.status(charge(provider_reference="tx-3")), UNKNOWN)
