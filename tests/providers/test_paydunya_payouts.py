"""PayDunya's payouts: announced, submitted once, asked about (docs/providers/paydunya.md, "Refunds")."""

from typing import Any

import pytest

from guichet.clock import MINUTE, SECOND, later
from guichet.providers.base import Accepted, NotFound, NotProcessed, RefundRequest
from tests.providers.expectations import FLOAT_EMPTY, TAKEN, UNKNOWN, ambiguous, check, not_taken, refused, succeeded
from tests.providers.provider_under_test import (
    NOW,
    REFERENCE,
    REFUND,
    ProviderUnderTest,
    Scripted,
    provider_under_test,
    refund_request,
)

OK = "00"


def said(code: object, text: str) -> Scripted:
    return 200, {"response_code": code, "response_text": text}


ANNOUNCED: Scripted = (200, {"response_code": OK, "disburse_token": "pay1234567"})
TOKEN = Accepted("pay1234567", next_poll_at=later(NOW, 5 * SECOND), provider_data={"announced_at": str(NOW)})
SUBMITTED: Scripted = (200, {"response_code": OK, "response_text": "Transaction completed successfully"})


def state_of(status: str, **more: Any) -> Scripted:
    return 200, {"response_code": OK, "status": status, "token": "pay1234567", "amount": "5000.00", **more}


def payout(operator: str = "orange_bf", **changes: Any) -> RefundRequest:
    return refund_request(operator, **{"provider_reference": "pay1234567", **changes})


def submissions(paydunya: ProviderUnderTest) -> int:
    return len([each for each in paydunya.received if "submit-invoice" in each.line])


async def test_an_announced_payout_moves_nothing_and_has_a_token() -> None:
    async with provider_under_test("paydunya", ANNOUNCED) as paydunya:
        assert await paydunya.provider.refund(refund_request("moov_bf", payee_number="22670000009")) == TOKEN
    assert [each.line.split(" ")[1] for each in paydunya.received] == ["/v2/disburse/get-invoice"]
    assert paydunya.sent() == {
        "account_alias": "70000009",
        "amount": 5000,
        "withdraw_mode": "moov-burkina-faso",
        "callback_url": f"https://pay.example.com/providers/x/callback/{REFERENCE}",
    }


@pytest.mark.parametrize(
    ("scripted", "meant"),
    [
        ((401, {"response_code": "1001", "response_text": "Initiation not authorize"}), not_taken()),
        (said("1001", "withdraw_mode not supported"), not_taken()),
        (said("4002", "You don't have enough funds. Consider crediting"), FLOAT_EMPTY),
        (said(["4002"], "You don't have enough funds."), FLOAT_EMPTY),
        (said("4002", "the callback is not accessible"), not_taken()),
        (said("4002", "?"), not_taken("operator_unavailable")),
        (said("5000", "Service en maintenance"), not_taken("operator_unavailable")),
        (said("4004", "Le compte n'existe pas"), refused("payer_not_found")),
        (said("4005", "Solde insuffisant"), ambiguous()),
        ((500, {}), not_taken("operator_unavailable")),
        ((200, b"<html>"), not_taken("operator_unavailable")),
    ],
)  # fmt: skip
async def test_what_is_lost_before_the_submission_may_be_announced_again(scripted: Scripted, meant: Any) -> None:
    async with provider_under_test("paydunya", scripted) as paydunya:
        check(await paydunya.provider.refund(refund_request("orange_bf")), meant)


async def test_a_payout_is_submitted_once_its_token_is_stored() -> None:
    async with provider_under_test("paydunya", state_of("created"), SUBMITTED) as paydunya:
        answer = await paydunya.provider.refund_status(payout())
        assert answer == Accepted("pay1234567", provider_data={"submitted_at": str(NOW)})
    assert paydunya.sent() == {"disburse_invoice": "pay1234567", "disburse_id": REFUND}


@pytest.mark.parametrize("lost", [(500, {}), (200, b"<html>"), said("5000", "?")])
async def test_a_lost_submission_is_asked_about_and_never_made_under_another_token(lost: Scripted) -> None:
    async with provider_under_test("paydunya", state_of("created"), lost) as paydunya:
        answer = await paydunya.provider.refund_status(payout())
        assert isinstance(answer, Accepted)
        sent = payout(provider_data=answer.provider_data)
        paydunya.answers[:] = [state_of("created")]
        for _ in range(3):
            paydunya.clock.advance(100)
            check(await paydunya.provider.refund_status(sent), TAKEN)
        assert submissions(paydunya) == 1
        paydunya.answers[:] = [state_of("success", disburse_id=REFUND)]
        check(await paydunya.provider.refund_status(sent), succeeded(5000_00, "XOF"))


async def test_a_payout_that_stays_created_for_minutes_is_submitted_again_under_its_token() -> None:
    sent = payout(provider_data={"submitted_at": str(NOW)})
    async with provider_under_test("paydunya", state_of("created"), SUBMITTED) as paydunya:
        paydunya.clock.advance(600)
        answer = await paydunya.provider.refund_status(sent)
        again_at = later(NOW, 10 * MINUTE)
        assert answer == Accepted("pay1234567", provider_data={"submitted_at": str(again_at)})
        assert paydunya.sent() == {"disburse_invoice": "pay1234567", "disburse_id": REFUND}
        # What refuses the second submission says nothing about the first.
        for text in ("You don't have enough funds.", "Le compte n'existe pas", "disburse_id already used"):
            paydunya.answers[:] = [state_of("created"), (200, {"response_code": "4002", "response_text": text})]
            check(await paydunya.provider.refund_status(sent), TAKEN)


@pytest.mark.parametrize(("seconds", "submitted"), [(5, True), (29, True), (30, False), (599, False), (600, True)])
async def test_a_process_that_ended_may_have_submitted_what_was_announced(seconds: int, submitted: bool) -> None:
    """Before its lease ended, nobody else asked; after it, PayDunya is given ten minutes to know of a submission."""
    async with provider_under_test("paydunya", state_of("created"), SUBMITTED) as paydunya:
        paydunya.clock.advance(seconds)
        answer = await paydunya.provider.refund_status(payout(provider_data=TOKEN.provider_data))
        assert isinstance(answer, Accepted)
        assert submissions(paydunya) == submitted


@pytest.mark.parametrize(
    ("scripted", "meant"),
    [
        (said("4002", "You don't have enough funds."), FLOAT_EMPTY),
        (said("4004", "Le compte n'existe pas"), refused("payer_not_found")),
        (said("5000", "disburse_id already used"), TAKEN),
        (said("5000", "Service en maintenance"), TAKEN),
        ((401, {}), UNKNOWN),
        ((429, {}), UNKNOWN),
    ],
)
async def test_the_first_submission_may_be_refused(scripted: Scripted, meant: Any) -> None:
    async with provider_under_test("paydunya", state_of("created"), scripted) as paydunya:
        check(await paydunya.provider.refund_status(payout()), meant)


@pytest.mark.parametrize(
    ("scripted", "meant"),
    [
        (state_of("success"), succeeded(5000_00, "XOF")),
        (state_of("success", amount="4999.00"), succeeded(4999_00, "XOF")),
        (state_of("success", disburse_id="another"), UNKNOWN),
        (state_of("success", token="another"), UNKNOWN),
        (state_of("failed"), refused()),
        (state_of("failed", description="Solde insuffisant"), ambiguous()),
        (state_of("pending"), TAKEN),
        (state_of("unheard-of"), TAKEN),
        ((200, {"response_code": "4004"}), UNKNOWN),
        ((500, {"response_code": OK, "status": "failed"}), UNKNOWN),
    ],
)
async def test_the_state_of_a_payout_becomes_a_result(scripted: Scripted, meant: Any) -> None:
    async with provider_under_test("paydunya", scripted) as paydunya:
        check(await paydunya.provider.refund_status(payout()), meant)
        assert len(paydunya.received) == 1


async def test_without_a_token_nothing_was_submitted() -> None:
    """The process died before the answer to the announcement was stored."""
    async with provider_under_test("paydunya", ANNOUNCED) as paydunya:
        assert await paydunya.provider.refund_status(payout(provider_reference=None)) == TOKEN
        paydunya.answers[:] = [(500, {})]
        check(await paydunya.provider.refund_status(payout(provider_reference=None)), UNKNOWN)
        asked = await paydunya.provider.refund_status(payout(provider_reference=None, ask_only=True))
        assert isinstance(asked, NotFound)


async def test_a_payout_that_is_only_asked_about_is_not_submitted() -> None:
    async with provider_under_test("paydunya", state_of("created")) as paydunya:
        check(await paydunya.provider.refund_status(payout(ask_only=True)), TAKEN)
        assert submissions(paydunya) == 0


async def test_there_is_no_payout_to_cards_nor_to_another_country() -> None:
    async with provider_under_test("paydunya", ANNOUNCED) as paydunya:
        assert not paydunya.provider.can_refund("VISA", collected_here=True)
        assert not paydunya.provider.can_refund("coris", collected_here=False)
        assert paydunya.provider.can_refund("moov_bf", collected_here=False)
        foreign = await paydunya.provider.refund(refund_request("togocom_tg"))
        assert isinstance(foreign, NotProcessed)
        assert paydunya.received == []
