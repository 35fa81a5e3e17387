"""FedaPay: the result of each response (docs/providers/fedapay.md)."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest

from guichet.clock import DAY, HOUR, MINUTE, SECOND, earlier, iso
from guichet.providers.base import Accepted, Callback, CallbackReference, NotFound, Refused, Succeeded, Unknown
from guichet.providers.capabilities import Balances, History, StatesIdentity
from guichet.providers.fedapay import TYPE
from guichet.providers.shared.signatures import hmac_sha256_hex
from guichet_simulator.app import SECRETS
from tests.providers.expectations import FLOAT_EMPTY, TAKEN, UNKNOWN, ambiguous, check, not_taken, refused, succeeded
from tests.providers.provider_under_test import (
    NOW,
    PAYEE,
    REFERENCE,
    REFUND,
    ProviderUnderTest,
    Scripted,
    callback,
    charge,
    provider_under_test,
    reversal,
)

TOKEN = {"token": "jwt", "url": "https://process.fedapay.com/jwt"}
NOT_ALLOWED = {"message": "Opération non autorisée", "errors": {}}
TAKEN_ALREADY = (422, {"message": "…", "errors": {"merchant_reference": ["has already been taken"]}})
PAGE = "https://process.fedapay.com/jwt"


def transaction(status: str = "pending", **changes: Any) -> Scripted:
    found = {"id": 412345, "status": status, "amount": 5000, "currency_id": 1, "mode": "moov", "metadata": {}}
    found |= {"merchant_reference": REFERENCE, "custom_metadata": {"reference": REFERENCE}, "last_error_code": None}
    return 200, {"v1/transaction": found | changes}


def payout(status: str = "pending", **changes: Any) -> Scripted:
    found = {"id": 77, "status": status, "amount": 5000, "currency_id": 1, "merchant_reference": REFUND}
    return 200, {"v1/payout": found | {"last_error_code": None} | changes}


def fedapay(
    *answers: Scripted, token: object = TOKEN, **settings: str
) -> AbstractAsyncContextManager[ProviderUnderTest]:
    return provider_under_test("fedapay", *answers, token=token, **settings)


def lines(tested: ProviderUnderTest) -> list[str]:
    return [request.line.partition(" HTTP")[0].partition("?")[0] for request in tested.received]


# The initiation


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


@pytest.mark.parametrize("known", [transaction(), (200, {"transaction": {"id": 412345}}), (201, {"id": 412345})])
async def test_a_reference_that_exists_is_read_and_gone_on_with(known: Scripted) -> None:
    for refusal in (TAKEN_ALREADY, (400, {"message": "merchant_reference already exists"})):
        async with fedapay(refusal, known, (200, {"message": "success"})) as tested:
            assert await tested.provider.initiate(charge("moov")) == Accepted("412345")
        path = f"GET /v1/transactions/merchant/{REFERENCE}"
        assert lines(tested) == ["POST /v1/transactions", path, "POST /v1/moov"]


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


# The state


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


# Payouts


async def test_a_refund_is_a_payout_that_is_created_and_then_started() -> None:
    async with fedapay(payout(), (200, {"v1/payouts": [{"id": 77}]})) as tested:
        result = await tested.provider.refund(reversal("moov"))
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
        check(await tested.provider.refund(reversal("moov")), meant)
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
        check(await tested.provider.refund(reversal("moov")), meant)
    assert lines(tested) == ["POST /v1/payouts", "PUT /v1/payouts/start"]


async def test_a_refused_start_is_a_refusal_only_if_nothing_was_started() -> None:
    wrong = (400, {"message": "Numéro invalide"})
    for state, meant in (("pending", refused()), ("started", TAKEN), ("sent", succeeded(5000_00, "XOF"))):
        async with fedapay(payout(), wrong, payout(state)) as tested:
            check(await tested.provider.refund(reversal("moov")), meant)
    async with fedapay(payout(), wrong, (404, {"message": "…"})) as tested:
        check(await tested.provider.refund(reversal("moov")), UNKNOWN)


async def test_a_payout_that_exists_is_started_only_if_nobody_did() -> None:
    for state, started in (("pending", True), ("started", False), ("processing", False)):
        async with fedapay(TAKEN_ALREADY, payout(state), (200, {"v1/payouts": []})) as tested:
            check(await tested.provider.refund(reversal("moov")), TAKEN)
        assert ("PUT /v1/payouts/start" in lines(tested)) is started
    async with fedapay(TAKEN_ALREADY, payout("sent")) as tested:
        check(await tested.provider.refund(reversal("moov")), succeeded(5000_00, "XOF"))


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
        check(await tested.provider.refund_status(reversal("moov", provider_reference="77")), meant)
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
            result = await tested.provider.refund_status(reversal("moov", **changes))
        assert isinstance(result, Accepted)
        assert (result.provider_data == {"started_at": str(NOW)}) is again
        assert ("PUT /v1/payouts/start" in lines(tested)) is again
    for said, meant in (((400, {"message": "Solde insuffisant"}), FLOAT_EMPTY), ((429, {}), TAKEN)):
        async with fedapay(payout(), said) as tested:
            check(await tested.provider.refund_status(reversal("moov", **known)), meant)


async def test_a_payout_that_is_not_found_is_made_again_once_it_is_proven() -> None:
    missing = (404, {"message": "…"})
    async with fedapay(missing) as tested:
        assert isinstance(await tested.provider.refund_status(reversal("moov")), NotFound)
        never = reversal("moov", never_arrived=True, ask_only=True)
        assert isinstance(await tested.provider.refund_status(never), NotFound)
    assert set(lines(tested)) == {f"GET /v1/payouts/merchant/{REFUND}"}
    async with fedapay(missing, payout(), (200, {"v1/payouts": []})) as tested:
        check(await tested.provider.refund_status(reversal("moov", never_arrived=True)), TAKEN)
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
        assert mode or await tested.provider.refund(reversal(operator)) == Refused("no_refund")
    async with fedapay(payout(), (200, {}), mtn_payout_mode="mtn") as tested:
        await tested.provider.refund(reversal("mtn"))
        assert tested.sent(0)["mode"] == "mtn"


# Callbacks


def event(name: str = "transaction.approved", **changes: Any) -> dict[str, Any]:
    entity = {"id": 412345, "merchant_reference": REFERENCE, "status": "approved"}
    return {"name": name, "object_id": 412345, "entity": entity, "account": {"id": 1}, **changes}


def signed(body: object, *, age: int = 0, secret: str = SECRETS["fedapay"], more: str = "") -> Callback:
    raw, seconds = msgspec.json.encode(body), NOW // SECOND - age
    digest = hmac_sha256_hex(secret, f"{seconds}.".encode() + raw)
    return callback(raw, {"X-FEDAPAY-SIGNATURE": f"t={seconds}{more},s={digest}"})


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (event(), CallbackReference(REFERENCE, "412345")),
        ({**event(), "name": None, "type": "transaction.canceled"}, CallbackReference(REFERENCE, "412345")),
        (event(entity=msgspec.json.encode(event()["entity"]).decode()), CallbackReference(REFERENCE, "412345")),
        (event(entity={"id": 1, "custom_metadata": {"reference": REFERENCE}}), CallbackReference(REFERENCE, "1")),
        (event("payout.sent"), CallbackReference(REFERENCE, None)),
        (event(entity={"id": 412345}), CallbackReference()),
        (event("customer.created"), CallbackReference()),
        (event(entity="no object"), CallbackReference()),
    ],
)
async def test_an_event_names_our_reference_and_its_id_beside_it(said: object, named: CallbackReference) -> None:
    async with fedapay((200, {})) as tested:
        assert tested.provider.parse_callback(signed(said)) == named


async def test_only_a_signed_event_of_now_is_read() -> None:
    async with fedapay((200, {})) as tested:
        read = tested.provider.parse_callback
        assert read(signed(event(), more=",s=00")) == CallbackReference(REFERENCE, "412345")
        assert read(signed(event(), age=300)) is not None
        assert read(signed(event(), age=301)) is None
        assert read(signed(event(), secret="wh_live_other")) is None
        assert read(callback(event())) is None
        header = signed(event()).headers["X-FEDAPAY-SIGNATURE"]
        assert read(callback(event(), {"X-FEDAPAY-SIGNATURE": header.replace("s=", "v1=")})) is None
    async with fedapay((200, {}), webhook_secret="") as tested:
        assert tested.provider.parse_callback(callback(event())) == CallbackReference(REFERENCE, "412345")


# History, checks, identity


def listed(number: int, days: int, **changes: Any) -> dict[str, Any]:
    row = {"id": number, "reference": f"trx_{number}", "merchant_reference": f"ours-{number}", "status": "approved"}
    row |= {"amount": 500, "fees": 9, "currency_id": 1, "created_at": iso(earlier(NOW, days * DAY))}
    return row | changes


def pages(kind: str, *found: list[dict[str, Any]], total: int | None = None) -> list[Scripted]:
    count = sum(map(len, found)) if total is None else total
    following = [*range(2, len(found) + 1), None]
    return [
        (200, {f"v1/{kind}s": rows, "meta": {"next_page": after, "total_count": count}})
        for rows, after in zip(found, following, strict=True)
    ]


async def history(*answers: Scripted) -> Any:
    async with fedapay(*answers) as tested:
        assert isinstance(tested.provider, History)
        found = await tested.provider.history(earlier(NOW, DAY), NOW, "https://pay.example.com")
        return found, lines(tested)


async def test_the_history_is_read_page_by_page() -> None:
    rows = [[listed(3, 0), listed(2, 1, status="declined")], [listed(1, 9)]]
    paid = [[listed(3, 0, status="sent"), listed(2, 0, status="pending")]]
    found, asked = await history(*pages("transaction", *rows), *pages("payout", *paid))
    assert asked == ["GET /v1/transactions/search"] * 2 + ["GET /v1/payouts/search"]
    assert [(each.kind, each.references[0], each.status, each.fee) for each in found] == [
        ("payment", "ours-3", "succeeded", 9_00),
        ("payment", "ours-2", "failed", 9_00),
        ("refund", "ours-3", "succeeded", 9_00),
        ("refund", "ours-2", "pending", 9_00),
    ]
    assert (found[0].amount, found[0].currency, found[0].references) == (500_00, "XOF", ("ours-3", "3", "trx_3"))


async def test_it_ends_early_only_if_rows_come_newest_first() -> None:
    first, rest = [listed(9, 0), listed(8, 5)], [[listed(7, 6)], [listed(6, 7)], [listed(5, 8)]]
    none = pages("payout", [])
    _, asked = await history(*pages("transaction", first, *rest)[:2], *none)
    assert len(asked) == 3
    _, asked = await history(*pages("transaction", [listed(1, 9)], [listed(2, 8)], [listed(3, 0)]), *none)
    assert len(asked) == 4


@pytest.mark.parametrize(
    "answers",
    [
        pages("transaction", [listed(1, 0)], total=2),
        pages("transaction", [listed(1, 0)], [])[:1] + pages("transaction", [], [])[:1],
        [(200, {"v1/transactions": [{"status": "approved"}], "meta": {}})],
        [(200, {"v1/transactions": []})],
        [(200, {})],
        [(500, b"")],
    ],
)
async def test_a_list_that_may_be_incomplete_is_unknown(answers: list[Scripted]) -> None:
    assert isinstance((await history(*answers))[0], Unknown)


async def test_the_account_is_the_one_that_transactions_name() -> None:
    rows = pages("transaction", [listed(1, 0, account_id=1234)])
    for answer, meant in ((rows[0], "1234"), (pages("transaction", [])[0], Unknown), ((401, {}), Unknown)):
        async with fedapay(answer) as tested:
            assert isinstance(tested.provider, StatesIdentity)
            identity = await tested.provider.account_identity()
            assert identity == meant or type(identity) is meant


@pytest.mark.parametrize(
    ("settings", "is_sandbox"),
    [
        ({"secret_key": "sk_live_1"}, False),
        ({"secret_key": "sk_sandbox_1"}, True),
        ({"secret_key": "sk_live_1", "webhook_secret": "wh_sandbox_1"}, True),
    ],
)
def test_keys_show_their_sandbox(settings: Mapping[str, str], is_sandbox: bool) -> None:
    assert (TYPE.sandbox(settings) is not None) is is_sandbox
