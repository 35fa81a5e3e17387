"""FedaPay: what each answer to a payout means (docs/providers/fedapay.md, "Refunds")."""

from typing import Any

import pytest

from guichet.clock import MINUTE, SECOND, earlier
from guichet.providers.base import Accepted, NotFound, Refused
from guichet.providers.capabilities import Balances
from tests.providers.expectations import FLOAT_EMPTY, TAKEN, UNKNOWN, ambiguous, check, not_taken, refused, succeeded
from tests.providers.fedapay_answers import NOT_ALLOWED, TAKEN_ALREADY, fedapay, lines, payout
from tests.providers.provider_under_test import (
    NOW,
    PAYEE,
    REFERENCE,
    REFUND,
    Scripted,
    refund_request,
)


async def test_a_refund_is_a_payout_that_is_created_and_then_started() -> None:
    async with fedapay(payout(), (200, {"v1/payouts": [{"id": 77}]})) as tested:
        result = await tested.provider.refund(refund_request("moov"))
    assert result == Accepted("77", provider_data={"started_at": str(NOW)})
    assert lines(tested) == ["POST /v1/payouts", "PUT /v1/payouts/start"]
    created = tested.sent(0)
    assert (created["amount"], created["mode"], created["merchant_reference"]) == (5000, "moov", REFUND)
    assert created["customer"]["phone_number"] == {"number": f"+{PAYEE}", "country": "bj"}
    assert "email" not in created["customer"]
    assert tested.sent(1) == {"payouts": [{"id": 77}]}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((400, {"message": "Solde insuffisant"}), FLOAT_EMPTY),
        ((403, {"message": "Solde insuffisant"}), FLOAT_EMPTY),
        ((403, NOT_ALLOWED), not_taken()),
        ((400, NOT_ALLOWED), not_taken()),
        ((404, {"message": "…"}), not_taken()),
        ((401, {"message": "…"}), not_taken()),
        ((429, {"message": "…"}), not_taken("operator_unavailable")),
        ((400, {"message": "Limite de 3 dépôts par jour"}), not_taken("limit_reached")),
        ((400, {"message": "Numéro invalide"}), refused()),
        ((400, b"<html>"), UNKNOWN),
        ((500, b""), UNKNOWN),
        ((200, {}), UNKNOWN),
    ],
)
async def test_a_payout_that_is_not_created_moves_nothing(said: Scripted, meant: Any) -> None:
    async with fedapay(said) as tested:
        check(await tested.provider.refund(refund_request("moov")), meant)
    assert lines(tested) == ["POST /v1/payouts"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((500, b""), TAKEN),
        ((200, b"<html>"), TAKEN),
        ((400, {"message": "Solde insuffisant"}), FLOAT_EMPTY),
        ((403, NOT_ALLOWED), not_taken()),
    ],
)
async def test_the_answer_to_a_start_becomes_a_result(said: Scripted, meant: Any) -> None:
    async with fedapay(payout(), said) as tested:
        check(await tested.provider.refund(refund_request("moov")), meant)
    assert lines(tested) == ["POST /v1/payouts", "PUT /v1/payouts/start"]


async def test_a_refused_start_is_a_refusal_only_if_nothing_was_started() -> None:
    wrong = (400, {"message": "Numéro invalide"})
    for state, meant in (("pending", refused()), ("started", TAKEN), ("sent", succeeded(5000_00, "XOF"))):
        async with fedapay(payout(), wrong, payout(state)) as tested:
            check(await tested.provider.refund(refund_request("moov")), meant)
    async with fedapay(payout(), wrong, (404, {"message": "…"})) as tested:
        check(await tested.provider.refund(refund_request("moov")), UNKNOWN)


async def test_a_payout_that_exists_is_started_only_if_nobody_did() -> None:
    for state, started in (("pending", True), ("started", False), ("processing", False)):
        async with fedapay(TAKEN_ALREADY, payout(state), (200, {"v1/payouts": []})) as tested:
            check(await tested.provider.refund(refund_request("moov")), TAKEN)
        assert ("PUT /v1/payouts/start" in lines(tested)) is started
    async with fedapay(TAKEN_ALREADY, payout("sent")) as tested:
        check(await tested.provider.refund(refund_request("moov")), succeeded(5000_00, "XOF"))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (payout("sent"), succeeded(5000_00, "XOF")),
        (payout("started"), TAKEN),
        (payout("processing"), TAKEN),
        (payout("scheduled"), TAKEN),
        (payout("something new"), TAKEN),
        (payout("failed"), refused()),
        (payout("failed", last_error_code="API_ERROR"), refused()),
        (payout("failed", last_error_code="INSUFFICIENT_FUND_ERROR"), ambiguous()),
        (payout("sent", merchant_reference=REFERENCE), UNKNOWN),
        ((404, {"message": "…"}), UNKNOWN),
        ((500, b""), UNKNOWN),
    ],
)
async def test_states_of_payouts_become_results(said: Scripted, meant: Any) -> None:
    async with fedapay(said) as tested:
        check(await tested.provider.refund_status(refund_request("moov", provider_reference="77")), meant)
    assert lines(tested) == ["GET /v1/payouts/77"]


async def test_a_payout_whose_start_was_lost_is_started_again_after_three_minutes() -> None:
    """And not sooner after that start: whether two pay twice is not known."""
    known: dict[str, Any] = {"provider_reference": "77", "sent_at": earlier(NOW, 3 * MINUTE)}
    cases: tuple[tuple[dict[str, Any], bool], ...] = (
        (known, True),
        (known | {"sent_at": earlier(NOW, 179 * SECOND)}, False),
        (known | {"provider_data": {"started_at": str(earlier(NOW, MINUTE))}}, False),
        (known | {"provider_data": {"started_at": str(earlier(NOW, 3 * MINUTE))}}, True),
        (known | {"ask_only": True}, False),
    )
    for changes, again in cases:
        async with fedapay(payout(), (200, {"v1/payouts": []})) as tested:
            result = await tested.provider.refund_status(refund_request("moov", **changes))
        assert isinstance(result, Accepted)
        assert (result.provider_data == {"started_at": str(NOW)}) is again
        assert ("PUT /v1/payouts/start" in lines(tested)) is again
    for said, meant in (((400, {"message": "Solde insuffisant"}), FLOAT_EMPTY), ((429, {}), TAKEN)):
        async with fedapay(payout(), said) as tested:
            check(await tested.provider.refund_status(refund_request("moov", **known)), meant)


async def test_a_payout_that_is_not_found_is_made_again_once_it_is_proven() -> None:
    missing = (404, {"message": "…"})
    async with fedapay(missing) as tested:
        assert isinstance(await tested.provider.refund_status(refund_request("moov")), NotFound)
        never = refund_request("moov", never_arrived=True, ask_only=True)
        assert isinstance(await tested.provider.refund_status(never), NotFound)
    assert set(lines(tested)) == {f"GET /v1/payouts/merchant/{REFUND}"}
    async with fedapay(missing, payout(), (200, {"v1/payouts": []})) as tested:
        check(await tested.provider.refund_status(refund_request("moov", never_arrived=True)), TAKEN)
    assert lines(tested)[1:] == ["POST /v1/payouts", "PUT /v1/payouts/start"]


@pytest.mark.parametrize(
    ("operator", "mode"),
    [("mtn", "mtn_open"), ("orange_bf", "orange-bf"), ("free_sn", ""), ("coris", ""), ("orange_ml", ""), ("VISA", "")],
)
async def test_payouts_have_modes_of_their_own(operator: str, mode: str) -> None:
    async with fedapay(payout(), (200, {})) as tested:
        assert isinstance(tested.provider, Balances)
        assert tested.provider.payout_wallet(operator) == mode
        assert tested.provider.can_refund(operator, collected_here=True) is bool(mode)
        assert mode or await tested.provider.refund(refund_request(operator)) == Refused("no_refund")
    async with fedapay(payout(), (200, {}), mtn_payout_mode="mtn") as tested:
        await tested.provider.refund(refund_request("mtn"))
        assert tested.sent(0)["mode"] == "mtn"
