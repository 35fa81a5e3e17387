"""The number that paid: what each provider's status states, and who then gets a payout (docs/providers/README.md)."""

from typing import Any

import pytest

from guichet.incidents import repository as incidents
from guichet.providers.base import Succeeded
from guichet.providers.shared.fields import full_number
from guichet.settings import Settings
from tests.invariants import check_books
from tests.payments.confirming import confirmed
from tests.providers.provider_under_test import (
    PAYEE,
    PAYEES,
    REFERENCE,
    charge,
    provider_under_test,
    refund_request,
)
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers
from tests.providers.test_routes import FEEXPAY, account, pay, route, shown

ASKED = charge().payment.phone_number
MTN_PAID = {"status": "SUCCESSFUL", "amount": "5000", "currency": "XOF", "externalId": REFERENCE}
FEEXPAY_PAID = {"status": "SUCCESSFUL", "amount": 5000, "callback_info": REFERENCE, "reference": "fp-1"}
WAVE_PAID = {"id": "cos-1", "amount": "5000", "currency": "XOF", "client_reference": REFERENCE}
WAVE_PAID |= {"checkout_status": "complete", "payment_status": "succeeded"}
SONATEL_PAID = {"transactionId": "MP1", "reference": REFERENCE, "status": "SUCCESS", "type": "MERCHANT_PAYMENT"}
SONATEL_PAID |= {"amount": {"value": 5000, "unit": "XOF"}}  # type: ignore[dict-item]
PAGE = "https://provider.example/pay/1"


def pawapay(payer: object) -> dict[str, Any]:
    data = {"depositId": REFERENCE, "status": "COMPLETED", "amount": "5000.00", "currency": "XOF", "payer": payer}
    return {"status": "FOUND", "data": data}


def mobile(number: object) -> dict[str, Any]:
    return {"type": "MMO", "accountDetails": {"phoneNumber": number, "provider": "MTN_MOMO_BEN"}}


@pytest.mark.parametrize(
    ("provider_type", "operator", "said", "payer"),
    [
        ("mtn", "mtn", {**MTN_PAID, "payer": {"partyIdType": "MSISDN", "partyId": PAYEE}}, PAYEE),
        ("mtn", "mtn", {**MTN_PAID, "payer": {"partyIdType": "MSISDN", "partyId": "229970****9"}}, None),
        ("mtn", "mtn", {**MTN_PAID, "payer": PAYEE}, None),
        ("mtn", "mtn", MTN_PAID, None),
        ("pawapay", "mtn", pawapay(mobile(PAYEE)), PAYEE),
        ("pawapay", "mtn", pawapay(mobile(None)), None),
        ("pawapay", "mtn", pawapay({"type": "MMO", "accountDetails": "x"}), None),
        ("pawapay", "mtn", pawapay("x"), None),
        ("feexpay", "moov", {**FEEXPAY_PAID, "phoneNumber": int(PAYEE)}, PAYEE),
        ("feexpay", "moov", {**FEEXPAY_PAID, "phoneNumber": "XXXXXX0009"}, None),
        ("feexpay", "moov", {**FEEXPAY_PAID, "phoneNumber": ""}, None),
        ("wave", "wave_sn", {**WAVE_PAID, "restrict_payer_mobile": f"+{PAYEE}"}, PAYEE),
        ("wave", "wave_sn", WAVE_PAID, None),
        ("sonatel", "orange_sn", [{**SONATEL_PAID, "customer": {"id": "771234567"}}], "221771234567"),
        ("sonatel", "orange_sn", [{**SONATEL_PAID, "customer": {"id": "77*****67"}}], None),
        ("sonatel", "orange_sn", [SONATEL_PAID], None),
    ],
)  # fmt: skip
async def test_the_number_that_a_status_states_is_read(
    provider_type: str, operator: str, said: object, payer: str | None
) -> None:
    async with provider_under_test(provider_type, (200, said)) as one:
        status = await one.provider.status(charge(operator, provider_reference="fp-1"))
    assert isinstance(status, Succeeded), status
    assert status.payer_number == payer


@pytest.mark.parametrize(
    ("provider_type", "said"),
    [
        ("feexpay", lambda number: {**FEEXPAY_PAID, "phoneNumber": number}),
        ("pawapay", lambda number: pawapay(mobile(number))),
    ],
)
async def test_our_own_number_repeated_says_nothing_about_who_paid_on_a_page(provider_type: str, said: Any) -> None:
    renumbered = "2290197000001"
    cases = ((PAGE, ASKED, None), (PAGE, renumbered, None), (PAGE, PAYEE, PAYEE), (None, ASKED, ASKED))
    for page, stated, payer in cases:
        async with provider_under_test(provider_type, (200, said(stated))) as one:
            status = await one.provider.status(charge(provider_reference="fp-1", redirect_url=page))
        assert isinstance(status, Succeeded)
        assert status.payer_number == payer


@pytest.mark.parametrize(
    ("stated", "country_code", "number"),
    [
        ("+229 01 97 00 12 34", "", "2290197001234"),
        ("00229-97-00-12-34", "", "22997001234"),
        (22997001234, "", "22997001234"),
        ("771234567", "221", "221771234567"),
        ("221771234567", "221", "221771234567"),
        ("97001234", "", None),
        ("0197001234", "", None),
        ("7712", "221", None),
        ("2290197******", "", None),
        ("…1234", "", None),
        (True, "", None),
        (None, "221", None),
        ({"id": "22997001234"}, "", None),
        ("2" * 16, "", None),
    ],
)
def test_a_masked_or_incomplete_number_is_none(stated: object, country_code: str, number: str | None) -> None:
    assert full_number(stated, country_code) == number


@pytest.mark.parametrize(
    ("provider_type", "operator", "settings", "read"),
    [
        ("feexpay", "moov", {}, lambda body: body["phoneNumber"]),
        ("mtn", "mtn", {"refund_via": "transfer"}, lambda body: body["payee"]["partyId"]),
        ("pawapay", "mtn", {}, lambda body: body["recipient"]["accountDetails"]["phoneNumber"]),
        ("wave", "wave_sn", {}, lambda body: body["mobile"].removeprefix("+")),
        ("fedapay", "moov", {}, lambda body: body["customer"]["phone_number"]["number"].removeprefix("+")),
    ],
)
async def test_every_payout_goes_to_the_payee(
    provider_type: str, operator: str, settings: dict[str, str], read: Any
) -> None:
    async with provider_under_test(provider_type, (200, {}), **settings) as one:
        assert one.provider.pays_out(operator, collected_here=False)
        await one.provider.refund(refund_request(operator, collected_here=False))
        assert read(one.sent()) == PAYEES.get(operator, PAYEE)


@pytest.mark.parametrize(
    ("provider_type", "operator", "settings", "pays_out"),
    [
        ("mtn", "mtn", {}, False),
        ("mtn", "mtn", {"refund_via": "transfer"}, True),
        ("pawapay", "mtn", {}, False),
        ("wave", "wave_sn", {}, False),
        ("stripe", "VISA", {}, False),
        ("feexpay", "moov", {}, True),
        ("sonatel", "orange_sn", {}, True),
        ("fedapay", "moov", {}, True),
    ],
)
async def test_a_provider_says_whether_the_refund_of_its_own_debit_is_a_payout(
    provider_type: str, operator: str, settings: dict[str, str], pays_out: bool
) -> None:
    async with provider_under_test(provider_type, (200, {}), **settings) as one:
        assert one.provider.pays_out(operator, collected_here=True) is pays_out


async def _paid_on_a_page(simulated: SimulatedProviders, payer: str | None) -> Any:
    """The refund of a FeexPay payment on a page; `payer` pays with another number than the requested one."""
    answer = await pay(simulated, "orange_ci", "2250777129999")
    assert answer.data["redirect_url"]
    [debit] = await simulated.held()
    decision = {"decision": "approve"} | ({"payer": payer} if payer else {})
    await simulated.control("POST", f"/transactions/{debit['id']}/decide", json=decision)
    for _ in range(3):
        await simulated.turn(5)
    assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"
    refund = (await simulated.merchant.live.post(f"/payments/{answer.data['reference']}/refund")).data
    for _ in range(3):
        await simulated.turn(5)
    return (await simulated.merchant.live.get(f"/refunds/{refund['reference']}")).data


async def _credits(simulated: SimulatedProviders) -> list[tuple[str, str]]:
    return [(tx["phone"], tx["state"]) for tx in await simulated.held() if tx["kind"] == "credit"]


async def test_whoever_paid_on_the_page_gets_the_refund(settings: Settings) -> None:
    """Before, the number in the merchant's request got it: a stranger's money."""
    async with open_simulated_providers(settings, route("orange_ci", account("fp", "feexpay", FEEXPAY))) as simulated:
        refund = await _paid_on_a_page(simulated, "2250777120042")
        assert refund["status"] == "succeeded"
        assert await _credits(simulated) == [("2250777120042", "succeeded")]
        await check_books(simulated.service.ctx.db)


async def test_a_refund_waits_when_nobody_knows_who_paid_on_the_page(settings: Settings) -> None:
    async with open_simulated_providers(settings, route("orange_ci", account("fp", "feexpay", FEEXPAY))) as simulated:
        refund = await _paid_on_a_page(simulated, None)
        assert (refund["status"], await _credits(simulated)) == ("pending", [])
        ctx = simulated.service.ctx
        assert [each.kind for each in await incidents.still_open(ctx.db)] == ["payee_unconfirmed"]
        await confirmed(ctx, refund["reference"], "+2250777120042")
        for _ in range(3):
            await simulated.turn(5)
        assert await _credits(simulated) == [("2250777120042", "succeeded")]
        assert (await shown(simulated, refund["payment_reference"]))["status"] == "refunded"
        await check_books(ctx.db)
