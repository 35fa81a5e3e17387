"""Refunds that a program proposes: one a payment, which moves nothing, until a person decides (docs/contract.md,
"Proposed refunds")."""

import asyncio
from typing import Any

import pytest

from guichet.domain.key_access import scope_bits
from guichet.domain.refund_proposals import LASTS
from tests.contract.shapes import check_error
from tests.contract.test_key_scopes import key_with
from tests.service_fixture import MerchantClient, ServiceFixture

DAYS = 24 * 3600


@pytest.fixture
async def merchant(service: ServiceFixture) -> MerchantClient:
    return await service.merchant()


async def paid(merchant: MerchantClient, **fields: Any) -> str:
    """The address of the refunds of a payment that succeeded."""
    payment = await merchant.pay("0000", **fields)
    await merchant.service.run_worker()
    return f"/payments/{payment['reference']}/refund"


@pytest.mark.both_databases
async def test_a_payment_has_one_proposal_that_moves_nothing(service: ServiceFixture, merchant: MerchantClient) -> None:
    at = await paid(merchant, external_id="a/1")
    check_error(await merchant.get(f"{at}-proposal"), "not_found")
    before = (await merchant.get("/balance")).data
    answers = await asyncio.gather(*(merchant.post(f"{at}-proposal", {"reason": "Abîmé"}) for _ in range(5)))
    assert {answer.status for answer in answers} == {201}
    proposal = answers[0].data
    assert (proposal["status"], proposal["refund_reference"], proposal["amount"]) == ("open", None, 5087.5)
    assert [answer.data for answer in answers] == [proposal] * 5
    assert (await merchant.post(f"{at}-proposal", {"reason": "Autre"})).data == proposal
    assert (await merchant.get("/payments/a%2F1/refund-proposal")).data == proposal
    assert (await merchant.get("/refunds")).data == []
    assert (await merchant.get("/balance")).data == before
    refund = (await merchant.post(at)).data
    confirmed = proposal | {"status": "confirmed", "refund_reference": refund["reference"]}
    service.clock.advance(8 * DAYS)
    assert (await merchant.get(f"{at}-proposal")).data == confirmed
    assert (await merchant.post(f"{at}-proposal")).data == confirmed


@pytest.mark.both_databases
async def test_a_proposal_lapses_and_another_one_takes_its_place(
    service: ServiceFixture, merchant: MerchantClient
) -> None:
    at = await paid(merchant)
    first = (await merchant.post(f"{at}-proposal", {"reason": "Abîmé"})).data
    service.clock.advance(LASTS / 1_000_000)
    expired = first | {"status": "expired"}
    assert (await merchant.get(f"{at}-proposal")).data == expired
    second = (await merchant.post(f"{at}-proposal")).data
    assert (second["status"], second["reason"]) == ("open", None)
    service.clock.advance(LASTS / 1_000_000)
    refund = (await merchant.post(at)).data
    assert (await merchant.get(f"{at}-proposal")).data == second | {"status": "expired"}, "it was not confirmed"
    error = check_error(await merchant.post(f"{at}-proposal"), "conflict")
    assert (error["reason"], error["reference"]) == ("already_refunded", refund["reference"])


@pytest.mark.both_databases
async def test_a_proposal_and_a_refund_at_the_same_time(merchant: MerchantClient) -> None:
    """Whichever comes first, none stays open for a payment that is refunded."""
    for _ in range(5):
        at = await paid(merchant)
        proposed, refunded = await asyncio.gather(merchant.post(f"{at}-proposal"), merchant.post(at))
        assert refunded.status == 201
        if proposed.status == 201:
            assert (await merchant.get(f"{at}-proposal")).data["status"] == "confirmed"
        else:
            assert check_error(proposed, "conflict")["reason"] == "already_refunded"
            check_error(await merchant.get(f"{at}-proposal"), "not_found")


async def test_what_cannot_be_refunded_cannot_be_proposed(merchant: MerchantClient) -> None:
    waiting = await merchant.pay("0002")
    path = f"/payments/{waiting['reference']}/refund-proposal"
    assert check_error(await merchant.post(path), "conflict")["reason"] == "not_refundable"
    at = await paid(merchant)
    assert "amount" in check_error(await merchant.post(f"{at}-proposal", {"amount": 100}), "invalid_request")["details"]
    check_error(await merchant.post("/payments/nothing/refund-proposal"), "not_found")
    check_error(await merchant.live.get(f"{at}-proposal"), "not_found")


async def test_an_idempotency_key_names_one_proposal(merchant: MerchantClient) -> None:
    first, second = await paid(merchant), await paid(merchant)
    key = {"Idempotency-Key": "p-1"}
    made = await merchant.post(f"{first}-proposal", headers=key)
    assert (await merchant.post(f"{first}-proposal", headers=key)).data == made.data
    other = await merchant.post(f"{second}-proposal", headers=key)
    assert check_error(other, "conflict")["reason"] == "idempotency_key_reused"


async def test_a_key_that_may_propose_may_not_refund(service: ServiceFixture, merchant: MerchantClient) -> None:
    at = await paid(merchant)
    program = await key_with(service, merchant, scopes=scope_bits(["refunds:propose"]))
    reader = await key_with(service, merchant, scopes=scope_bits(["payments:read"]))
    check_error(await program.post(at), "insufficient_scope")
    check_error(await reader.post(f"{at}-proposal"), "insufficient_scope")
    proposal = (await program.post(f"{at}-proposal")).data
    assert (await reader.get(f"{at}-proposal")).data == proposal
