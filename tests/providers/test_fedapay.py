"""FedaPay: what each answer to a payin means (docs/providers/fedapay.md)."""

from typing import Any

import pytest

from guichet.clock import DAY, HOUR, MINUTE, SECOND, earlier, iso
from guichet.providers.base import Accepted, NotFound, Refused, Succeeded
from tests.providers.expectations import TAKEN, UNKNOWN, check, not_taken, refused, succeeded
from tests.providers.fedapay_answers import NOT_ALLOWED, PAGE, TAKEN_ALREADY, TOKEN, fedapay, lines, transaction
from tests.providers.provider_under_test import (
    NOW,
    REFERENCE,
    REFUND,
    Scripted,
    charge,
)


async def test_a_payment_is_a_transaction_its_token_and_the_request_for_the_pin() -> None:
    async with fedapay(transaction(), (200, {"v1/payment_intent": {"id": 1}})) as tested:
        assert await tested.provider.initiate(charge("moov")) == Accepted("412345")
    assert lines(tested) == ["POST /v1/transactions", "POST /v1/moov"]
    assert tested.tokens == 1
    created = tested.sent(0)
    assert created["merchant_reference"] == created["custom_metadata"]["reference"] == REFERENCE
    assert (created["amount"], created["currency"]) == (5000, {"iso": "XOF"})
    assert created.keys() == {"description", "amount", "currency", "merchant_reference", "custom_metadata"}
    assert tested.sent(1) == {"token": "jwt", "phone_number": {"number": "+22997000001", "country": "bj"}}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((400, {"message": "…", "errors": {"amount": ["…"]}}), refused()),
        ((401, {"message": "…"}), not_taken()),
        ((404, {"message": "…"}), not_taken()),
        ((429, {"message": "…"}), not_taken("operator_unavailable")),
        ((500, b""), not_taken("operator_unavailable")),
        ((502, b"<html>"), not_taken("operator_unavailable")),
        ((400, b"<html>"), not_taken("operator_unavailable")),
        ((200, {}), not_taken("operator_unavailable")),
    ],
)
async def test_what_is_lost_before_the_pin_is_asked_for_took_nothing(said: Scripted, meant: Any) -> None:
    async with fedapay(said) as tested:
        check(await tested.provider.initiate(charge("moov")), meant)
    assert (lines(tested), tested.tokens) == (["POST /v1/transactions"], 0)


BARE = {"id": 412345, "status": "pending", "merchant_reference": REFERENCE}


@pytest.mark.parametrize("known", [transaction(), (200, {"transaction": BARE}), (201, BARE)])
async def test_a_reference_that_exists_is_read_and_gone_on_with(known: Scripted) -> None:
    for refusal in (TAKEN_ALREADY, (400, {"message": "merchant_reference already exists"})):
        async with fedapay(refusal, known, (200, {"message": "success"})) as tested:
            assert await tested.provider.initiate(charge("moov")) == Accepted("412345")
        path = f"GET /v1/transactions/merchant/{REFERENCE}"
        assert lines(tested) == ["POST /v1/transactions", path, "POST /v1/moov"]


@pytest.mark.parametrize(
    "known", [transaction("approved"), transaction("canceled"), transaction(merchant_reference=REFUND)]
)
async def test_one_that_is_not_as_it_was_created_is_only_asked_about(known: Scripted) -> None:
    async with fedapay(TAKEN_ALREADY, known) as tested:
        assert await tested.provider.initiate(charge("moov")) == Accepted(next_poll_at=NOW)
    assert (len(tested.received), tested.tokens) == (2, 0)


async def test_a_token_that_is_not_given_is_asked_for_once_more() -> None:
    async with fedapay(transaction(), token={"message": "…"}) as tested:
        check(await tested.provider.initiate(charge("moov")), not_taken("operator_unavailable"))
    assert (lines(tested), tested.tokens) == (["POST /v1/transactions"], 2)
    async with fedapay(transaction(), (200, {}), token={"v1/token": TOKEN}) as tested:
        assert await tested.provider.initiate(charge("moov")) == Accepted("412345")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"v1/payment_intent": {"status": "approved"}}), Accepted("412345")),
        ((200, b"<html>"), Accepted("412345")),
        ((500, b""), Accepted("412345")),
        ((400, b"<html>"), Accepted("412345")),
        ((301, {}), Accepted("412345")),
        ((400, NOT_ALLOWED), not_taken()),
        ((404, {"message": "…"}), not_taken()),
        ((401, {"message": "…"}), not_taken()),
        ((429, {"message": "…"}), not_taken("operator_unavailable")),
        ((400, {"message": "Numéro invalide"}), refused()),
    ],
)
async def test_a_lost_request_for_the_pin_leaves_a_transaction_to_ask_about(said: Scripted, meant: Any) -> None:
    async with fedapay(transaction(), said) as tested:
        check(await tested.provider.initiate(charge("moov")), meant)
    assert lines(tested) == ["POST /v1/transactions", "POST /v1/moov"]


async def test_a_network_of_the_page_sends_the_customer_there() -> None:
    async with fedapay(transaction(), page_operators="coris VISA") as tested:
        sent = charge("coris", return_url="https://shop.example/back")
        assert await tested.provider.initiate(sent) == Accepted("412345", PAGE)
        assert tested.sent()["callback_url"] == "https://shop.example/back"
    assert lines(tested) == ["POST /v1/transactions"]
    async with fedapay(transaction(), token={"token": "jwt"}, page_operators="coris") as tested:
        check(await tested.provider.initiate(charge("coris")), not_taken("operator_unavailable"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"amount": 99_00}, "limit_reached"),
        ({"currency": "XAF"}, "currency_not_accepted"),
        ({"operator": "coris"}, "configuration"),
        ({"operator": "mobicash_ml"}, "configuration"),
    ],
)
async def test_what_the_account_does_not_take_is_not_sent(changes: dict[str, Any], reason: Any) -> None:
    async with fedapay(transaction()) as tested:
        check(await tested.provider.initiate(charge(**{"operator": "moov", **changes})), not_taken(reason))
    assert tested.received == []


async def test_the_form_of_the_number_and_the_modes_are_settings() -> None:
    async with fedapay(transaction(), (200, {}), phone_format="national", sandbox_mode="momo_test") as tested:
        await tested.provider.initiate(charge("moov"))
    assert (tested.path(), tested.sent()["phone_number"]["number"]) == ("/v1/momo_test", "97000001")


@pytest.mark.parametrize(
    "settings", [{"page_operators": "mtn wave"}, {"mtn_payout_mode": "mtn_ci"}, {"phone_format": "short"}]
)
async def test_settings_that_name_something_else_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        async with fedapay(**settings):
            pass


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (transaction("approved"), succeeded(5000_00, "XOF")),
        (transaction("approved", last_error_code="API_ERROR"), succeeded(5000_00, "XOF")),
        (transaction("transferred", amount_debited=5100), succeeded(5000_00, "XOF")),
        (transaction("refunded"), succeeded(5000_00, "XOF")),
        (transaction("approved_partially_refunded"), succeeded(5000_00, "XOF")),
        (transaction("approved", amount=4999), succeeded(4999_00, "XOF")),
        (transaction("approved", currency_id=2), succeeded(5000_00, "GNF")),
        (transaction("approved", currency_id=9), succeeded(5000_00, None)),
        (transaction("approved", currency_id=9, currency={"iso": "xof"}), succeeded(5000_00, "XOF")),
        (transaction("approved", merchant_reference=REFUND), UNKNOWN),
        (transaction("approved", merchant_reference=None), succeeded(5000_00, "XOF")),
        (transaction("approved", merchant_reference=None, custom_metadata=None), UNKNOWN),
        (transaction("pending", last_error_code="API_ERROR"), TAKEN),
        (transaction("something new"), TAKEN),
        (transaction("expired"), refused("expired")),
        ((404, {"message": "…"}), UNKNOWN),
        ((200, {}), UNKNOWN),
        ((401, {"message": "…"}), UNKNOWN),
    ],
)
async def test_states_become_results(said: Scripted, meant: Any) -> None:
    async with fedapay(said) as tested:
        check(await tested.provider.status(charge("moov", provider_reference="412345")), meant)
    assert tested.path() == "/v1/transactions/412345?include=currency"


def canceled(seconds: int, **changes: Any) -> Scripted:
    return transaction("canceled", canceled_at=iso(earlier(NOW, seconds * SECOND)), **changes)


async def test_a_refusal_is_believed_after_a_minute_and_is_no_final_answer() -> None:
    """A canceled transaction was approved twelve seconds later."""
    known = charge("moov", provider_reference="412345", created_at=earlier(NOW, 5 * MINUTE))
    async with fedapay(canceled(59), canceled(60, last_error_code="INSUFFICIENT_FUND_ERROR")) as tested:
        assert isinstance(await tested.provider.status(known), Accepted)
        refusal = await tested.provider.status(known)
        assert isinstance(refusal, Refused)
        assert (refusal.reason, refusal.stated) == ("insufficient_funds", False)
    async with fedapay(transaction("declined")) as tested:
        check(await tested.provider.status(known), refused("rejected_by_payer"))


async def test_after_its_failure_it_is_pending_until_nothing_can_pay_it() -> None:
    """So it is asked about daily, and not taken for the provider's own refusal."""
    for days, meant in ((1, TAKEN), (2, TAKEN), (3, refused())):
        late = charge("moov", provider_reference="1", created_at=earlier(NOW, days * DAY), ask_only=True)
        async with fedapay(canceled(days * 86_400)) as tested:
            check(result := await tested.provider.status(late), meant)
            assert not isinstance(result, Refused) or result.stated


async def test_on_the_page_a_refusal_waits_for_its_end() -> None:
    for hours, meant in ((2, TAKEN), (24, TAKEN), (25, refused())):
        created = earlier(NOW, hours * HOUR)
        shown = charge("coris", provider_reference="1", redirect_url=PAGE, created_at=created)
        async with fedapay(canceled(3600), page_operators="coris") as tested:
            check(await tested.provider.status(shown), meant)


async def test_who_paid_on_the_page_counts_if_it_was_over_our_network() -> None:
    shown = charge("moov_ci", provider_reference="1", redirect_url=PAGE)
    payer = {"paid_customer": {"phone": "+2250777120042"}}
    for mode, metadata, number in (
        ("moov_ci", payer, "2250777120042"),
        ("wave_ci", payer, None),
        ("moov_ci", {}, None),
        ("moov_ci", {"paid_customer": {"phone": "97000001"}}, None),
    ):
        async with fedapay(transaction("approved", mode=mode, metadata=metadata), page_operators="moov_ci") as tested:
            result = await tested.provider.status(shown)
            assert isinstance(result, Succeeded)
            assert result.payer_number == number


async def test_without_an_id_our_reference_finds_it() -> None:
    async with fedapay(transaction("approved")) as tested:
        check(await tested.provider.status(charge("moov")), succeeded(5000_00, "XOF"))
    assert tested.path() == f"/v1/transactions/merchant/{REFERENCE}?include=currency"
    async with fedapay((404, {"message": "…"})) as tested:
        assert isinstance(await tested.provider.status(charge("moov")), NotFound)
    async with fedapay((404, b"<html>")) as tested:
        check(await tested.provider.status(charge("moov")), UNKNOWN)


async def test_an_id_that_only_a_callback_named_counts_if_it_is_about_our_reference() -> None:
    named = charge("moov", callback_reference="412345")
    async with fedapay((404, {"message": "…"}), transaction("approved")) as tested:
        check(await tested.provider.status(named), succeeded(5000_00, "XOF"))
    async with fedapay((404, {"message": "…"}), transaction("approved", merchant_reference=REFUND)) as tested:
        check(await tested.provider.status(named), UNKNOWN)
