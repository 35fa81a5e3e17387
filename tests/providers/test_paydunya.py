"""PayDunya: the result of each response, and the exact requests (docs/providers/paydunya.md)."""

import hashlib
from typing import Any

import pytest

from guichet.clock import SECOND
from guichet.domain.money import Hundredths
from guichet.providers.base import Accepted
from guichet.providers.capabilities import Balances, FloatBalance
from guichet.providers.provider_types import sandbox_reason
from guichet.providers.shared.client import ProviderAccount
from tests.providers.expectations import TAKEN, UNKNOWN, check, not_taken, refused, succeeded
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.provider_under_test import (
    NOW,
    REFERENCE,
    Scripted,
    charge,
    provider_under_test,
)

TOKEN = "7d0c2f1ab3"
PAGE = f"https://app.paydunya.com/checkout/invoice/{TOKEN}"
CREATED: Scripted = (200, {"response_code": "00", "response_text": PAGE, "token": TOKEN})
CHARGED: Scripted = (200, {"success": True, "message": "En cours"})
OK = "00"
DIGEST = hashlib.sha512(PROVIDER_CASES["paydunya"].settings["master_key"].encode()).hexdigest()


def confirmed(status: str = "pending", **more: Any) -> dict[str, Any]:
    body = {"response_code": OK, "status": status, "mode": "live", "custom_data": {"reference": REFERENCE}}
    return body | {"invoice": {"token": TOKEN, "total_amount": 5000}} | more


def said(code: object, text: str) -> Scripted:
    return 200, {"response_code": code, "response_text": text}


def no(message: str) -> Scripted:
    return 200, {"success": False, "message": message}


#: Each operator: a number, the path of softpay, and its fields as PayDunya's page has them.
SOFTPAY: list[tuple[str, str, str, dict[str, str]]] = [
    ("mtn", "2290197000001", "mtn-benin", {
        "mtn_benin_customer_fullname": "Awa N Diaye", "mtn_benin_email": "awa@example.com",
        "mtn_benin_phone_number": "0197000001", "mtn_benin_wallet_provider": "MTNBENIN", "payment_token": TOKEN,
    }),
    ("moov", "22995000001", "moov-benin", {
        "moov_benin_customer_fullname": "Awa N Diaye", "moov_benin_email": "awa@example.com",
        "moov_benin_phone_number": "0195000001", "payment_token": TOKEN,
    }),
    ("celtiis_bj", "2290140000001", "celtiis-cash", {
        "celtiis_cash_customer_fullname": "Awa N Diaye", "celtiis_cash_customer_email": "awa@example.com",
        "celtiis_cash_phone_number": "0140000001", "payment_token": TOKEN,
    }),
    ("moov_bf", "22670000001", "moov-burkina", {
        "moov_burkina_faso_fullName": "Awa N Diaye", "moov_burkina_faso_email": "awa@example.com",
        "moov_burkina_faso_phone_number": "70000001", "moov_burkina_faso_payment_token": TOKEN,
    }),
    ("orange_bf", "22676000001", "orange-money-burkina", {
        "name_bf": "Awa N Diaye", "email_bf": "awa@example.com", "phone_bf": "76000001", "otp_code": "123456",
        "payment_token": TOKEN,
    }),
    ("mtn_ci", "2250500000001", "mtn-ci", {
        "mtn_ci_customer_fullname": "Awa N Diaye", "mtn_ci_email": "awa@example.com",
        "mtn_ci_phone_number": "0500000001", "mtn_ci_wallet_provider": "MTNCI", "payment_token": TOKEN,
    }),
    ("moov_ci", "2250100000001", "moov-ci", {
        "moov_ci_customer_fullname": "Awa N Diaye", "moov_ci_email": "awa@example.com",
        "moov_ci_phone_number": "0100000001", "payment_token": TOKEN,
    }),
    ("wave_ci", "2250700000001", "wave-ci", {
        "wave_ci_fullName": "Awa N Diaye", "wave_ci_email": "awa@example.com", "wave_ci_phone": "0700000001",
        "wave_ci_payment_token": TOKEN,
    }),
    ("orange_ml", "22370000001", "orange-money-mali", {
        "orange_money_mali_customer_fullname": "Awa N Diaye", "orange_money_mali_email": "awa@example.com",
        "orange_money_mali_phone_number": "70000001", "orange_money_mali_customer_address": "Bamako",
        "payment_token": TOKEN,
    }),
    ("orange_sn", "221770000001", "new-orange-money-senegal", {
        "customer_name": "Awa N Diaye", "customer_email": "awa@example.com", "phone_number": "770000001",
        "invoice_token": TOKEN, "api_type": "OTPCODE", "authorization_code": "123456",
    }),
    ("free_sn", "221760000001", "free-money-senegal", {
        "customer_name": "Awa N Diaye", "customer_email": "awa@example.com", "phone_number": "760000001",
        "payment_token": TOKEN,
    }),
    ("wave_sn", "221770000001", "wave-senegal", {
        "wave_senegal_fullName": "Awa N Diaye", "wave_senegal_email": "awa@example.com",
        "wave_senegal_phone": "770000001", "wave_senegal_payment_token": TOKEN,
    }),
    ("togocom_tg", "22890000001", "t-money-togo", {
        "name_t_money": "Awa N Diaye", "email_t_money": "awa@example.com", "phone_t_money": "90000001",
        "payment_token": TOKEN,
    }),
    ("moov_tg", "22899000001", "moov-togo", {
        "moov_togo_customer_fullname": "Awa N Diaye", "moov_togo_email": "awa@example.com",
        "moov_togo_phone_number": "99000001", "moov_togo_customer_address": "Lomé", "payment_token": TOKEN,
    }),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "number", "path", "fields"), SOFTPAY, ids=[each[0] for each in SOFTPAY])
async def test_a_charge_has_exactly_the_fields_of_its_network(
    operator: str, number: str, path: str, fields: dict[str, str]
) -> None:
    otp = "123456" if operator in ("orange_bf", "orange_sn") else None
    async with provider_under_test("paydunya", CREATED, CHARGED) as paydunya:
        answer = await paydunya.provider.initiate(charge(operator, phone_number=number, otp=otp))
    assert isinstance(answer, Accepted)
    assert answer.provider_reference == TOKEN
    assert (paydunya.path(), paydunya.sent()) == (f"/v1/softpay/{path}", fields)
    headers = paydunya.received[-1].headers
    assert headers["paydunya-private-key"] == "live_private_simulator"
    assert (headers["paydunya-master-key"], headers["paydunya-token"]) == ("master-simulator", "token-simulator")


async def test_the_invoice_has_our_reference_and_our_addresses() -> None:
    async with provider_under_test("paydunya", CREATED, CHARGED) as paydunya:
        await paydunya.provider.initiate(charge("mtn", return_url="https://shop.example/back"))
    assert paydunya.path(0) == "/v1/checkout-invoice/create"
    assert paydunya.sent(0) == {
        "invoice": {"total_amount": 5000, "description": "Panier n 12 l ete"},
        "store": {"name": "Guichet"},
        "custom_data": {"reference": REFERENCE},
        "actions": {
            "callback_url": f"https://pay.example.com/providers/x/callback/{REFERENCE}",
            "return_url": "https://shop.example/back",
            "cancel_url": "https://shop.example/back",
        },
    }


async def test_the_number_of_celtiis_has_the_name_that_the_settings_say() -> None:
    async with provider_under_test("paydunya", CREATED, CHARGED, celtiis_phone_field="phone_number") as paydunya:
        await paydunya.provider.initiate(charge("celtiis_bj", email=None, firstname=None, lastname=None))
    body = paydunya.sent()
    assert (body["phone_number"], "celtiis_cash_phone_number" in body) == ("0197000001", False)
    assert body["celtiis_cash_customer_email"] == "paiements@example.com"
    assert body["celtiis_cash_customer_fullname"] == "Client"


@pytest.mark.parametrize(
    ("operator", "channel", "number"),
    [("orange_ci", "orange-money-ci", "2250700000001"), ("VISA", "card", None), ("MASTERCARD", "card", None)],
)
async def test_what_has_no_charge_is_paid_on_the_page_of_the_invoice(
    operator: str, channel: str, number: str | None
) -> None:
    async with provider_under_test("paydunya", CREATED) as paydunya:
        answer = await paydunya.provider.initiate(charge(operator, phone_number=number))
    assert answer == Accepted(TOKEN, PAGE)
    assert len(paydunya.received) == 1
    assert paydunya.sent()["invoice"]["channels"] == [channel]


@pytest.mark.parametrize(
    ("operator", "settings", "page"),
    [
        ("wave_sn", {}, "https://pay.wave.com/c/1"),
        ("orange_sn", {}, "https://pay.wave.com/c/1"),
        ("orange_sn", {"orange_sn_page": "maxit_url"}, "https://maxit.example/1"),
        ("free_sn", {}, None),
    ],
)
async def test_a_redirecting_network_gives_a_page(operator: str, settings: dict[str, str], page: str | None) -> None:
    others = {"om_url": "https://om.example/1", "maxit_url": "https://maxit.example/1"}
    charged = (200, {"success": True, "url": "https://pay.wave.com/c/1", "other_url": others})
    async with provider_under_test("paydunya", CREATED, charged, **settings) as paydunya:
        answer = await paydunya.provider.initiate(charge(operator, phone_number="221770000001"))
    assert answer == Accepted(TOKEN, page)


@pytest.mark.parametrize(
    ("scripted", "meant"),
    [
        (said("1001", "Invalid Masterkey Specified"), not_taken()),
        (said(1001, "LIVE Private Key and Token combination is invalid"), not_taken()),
        (said("1001", "Vous devez valider vos informations de KYC"), not_taken()),
        (said("4003", "Minimum checkout amount is 200"), not_taken("limit_reached")),
        (said("9999", "?"), not_taken("operator_unavailable")),
        ((200, {"response_code": OK, "response_text": PAGE, "token": "x/y"}), not_taken("operator_unavailable")),
        ((200, {"response_code": OK, "response_text": PAGE, "token": f"test_{TOKEN}"}), not_taken()),
        ((500, b"<html>"), not_taken("operator_unavailable")),
        ((200, b"<html>"), not_taken("operator_unavailable")),
        ((401, {}), not_taken()),
        ((429, {}), not_taken("operator_unavailable")),
    ],
)  # fmt: skip
async def test_without_an_invoice_nothing_was_taken(scripted: Scripted, meant: Any) -> None:
    async with provider_under_test("paydunya", scripted) as paydunya:
        check(await paydunya.provider.initiate(charge("mtn")), meant)
        assert len(paydunya.received) == 1


@pytest.mark.parametrize(
    ("scripted", "meant"),
    [
        (CHARGED, TAKEN),
        (no("Le compte n'existe pas"), refused("payer_not_found")),
        (no("Le compte n’existe pas"), refused("payer_not_found")),
        (no("Désolé, vous devez fournir un numéro MTN Bénin valide."), refused("payer_not_found")),
        (no("informations saisies incorrectes"), not_taken()),
        (no("invoice inexistant"), not_taken()),
        (said("1001", "The payin is not enabled"), not_taken()),
        (no("Vous avez dépassé le délai de validation de la transaction."), TAKEN),
        (no("Une erreur est survenue, merci d'essayer à nouveau."), TAKEN),
        ((404, b"<html>"), not_taken()),
        ((401, {"message": "?"}), not_taken()),
        ((429, {"message": "?"}), not_taken("operator_unavailable")),
        ((500, {"success": False, "message": "Le compte n'existe pas"}), TAKEN),
        ((502, b"<html>"), TAKEN),
        ((200, b"<html>"), TAKEN),
        ((200, {}), TAKEN),
    ],
)
async def test_the_answer_to_a_charge_becomes_a_result(scripted: Scripted, meant: Any) -> None:
    """Whatever is unclear leaves the payment pending, with the invoice that tells its state."""
    async with provider_under_test("paydunya", CREATED, scripted) as paydunya:
        answer = await paydunya.provider.initiate(charge("mtn"))
        check(answer, meant)
        assert not isinstance(answer, Accepted) or answer.provider_reference == TOKEN
        assert len(paydunya.received) == 2


@pytest.mark.parametrize(
    ("state", "meant"),
    [
        ((200, confirmed("pending")), refused("insufficient_funds")),
        ((200, confirmed("cancelled")), refused("insufficient_funds")),
        ((200, confirmed("completed")), TAKEN),
        ((200, confirmed("unheard-of")), TAKEN),
        ((200, {"response_code": "1002"}), TAKEN),
        ((500, {}), TAKEN),
    ],
)
async def test_an_unlisted_refusal_counts_only_if_the_invoice_is_not_paid(state: Scripted, meant: Any) -> None:
    async with provider_under_test("paydunya", CREATED, no("Solde insuffisant"), state) as paydunya:
        check(await paydunya.provider.initiate(charge("mtn")), meant)
        assert paydunya.received[-1].line.startswith(f"GET /v1/checkout-invoice/confirm/{TOKEN} ")


async def test_a_wrong_code_is_refused_and_a_right_one_is_asked_about_at_once() -> None:
    debit = charge("orange_bf", phone_number="22676000001", otp="000000")
    async with provider_under_test("paydunya", CREATED, (422, {"message": "Invalid or expired OTP code!"})) as paydunya:
        check(await paydunya.provider.initiate(debit), refused("bad_otp"))
        paydunya.answers[:] = [CREATED, CHARGED]
        assert await paydunya.provider.initiate(debit) == Accepted(TOKEN, next_poll_at=NOW)


@pytest.mark.parametrize(
    ("operator", "changes", "reason"),
    [
        ("coris", {}, "configuration"),
        ("mtn", {"currency": "XAF"}, "currency_not_accepted"),
        ("mtn", {"amount": Hundredths(199_00)}, "limit_reached"),
        ("togocom_tg", {}, "payer_not_found"),
    ],
)
async def test_what_paydunya_does_not_take_is_not_sent(operator: str, changes: dict[str, Any], reason: Any) -> None:
    async with provider_under_test("paydunya", CREATED) as paydunya:
        check(await paydunya.provider.initiate(charge(operator, **changes)), not_taken(reason))
        assert paydunya.received == []


def amounts(total: int, without_fees: int) -> dict[str, int]:
    return {"total_amount": total, "total_amount_without_fees": without_fees}


ASKED = charge("mtn", provider_reference=TOKEN)


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        (confirmed("completed"), succeeded(5000_00, "XOF")),
        (confirmed("completed", invoice={"total_amount": "5000"}), succeeded(5000_00, "XOF")),
        (confirmed("completed", custom_data=[]), succeeded(5000_00, "XOF")),
        # The payer bore the fees.
        (confirmed("completed", invoice=amounts(5100, 5000)), succeeded(5000_00, "XOF")),
        (confirmed("completed", invoice=amounts(4900, 5000)), succeeded(4900_00, "XOF")),
        (confirmed("completed", invoice={}), succeeded(None, "XOF")),
        (confirmed("", invoice={"status": "completed", "total_amount": 5000}), succeeded(5000_00, "XOF")),
        (confirmed("pending"), TAKEN),
        (confirmed("unheard-of"), TAKEN),
        (confirmed("cancelled"), refused("expired")),
        (confirmed("failed"), refused()),
        (confirmed("failed", errors={"message": "Solde insuffisant"}), refused("insufficient_funds")),
        (confirmed("completed", mode="test"), UNKNOWN),
        (confirmed("completed", custom_data={"reference": "another"}), UNKNOWN),
        ({"response_code": "1002", "response_text": "Invoice Not Found"}, UNKNOWN),
        ({"response_code": "1001", "status": "failed"}, UNKNOWN),
    ],
)  # fmt: skip
async def test_the_state_of_the_invoice_becomes_a_result(body: dict[str, Any], meant: Any) -> None:
    async with provider_under_test("paydunya", (200, body)) as paydunya:
        check(await paydunya.provider.status(ASKED), meant)


async def test_an_invoice_that_a_callback_named_must_have_our_reference() -> None:
    """The answer to the initiation was lost, and with it the token."""
    lost = charge("mtn", callback_reference=TOKEN)
    async with provider_under_test("paydunya", (200, confirmed("completed"))) as paydunya:
        check(await paydunya.provider.status(lost), succeeded(5000_00, "XOF"))
        paydunya.answers[:] = [(200, confirmed("pending"))]
        assert await paydunya.provider.status(lost) == Accepted(TOKEN)
        others: tuple[object, ...] = ([], {}, {"reference": "another"})
        for custom_data in others:
            paydunya.answers[:] = [(200, confirmed("completed", custom_data=custom_data))]
            check(await paydunya.provider.status(lost), UNKNOWN)
        asked = len(paydunya.received)
        for named in ("x", "../../etc", None):
            check(await paydunya.provider.status(charge("mtn", callback_reference=named)), UNKNOWN)
        assert len(paydunya.received) == asked


# The account

SETTINGS = PROVIDER_CASES["paydunya"].settings


def test_a_test_key_marks_the_sandbox() -> None:
    def account(key: str, path: str) -> ProviderAccount:
        return ProviderAccount("p", "paydunya", f"https://app.paydunya.com/{path}", {**SETTINGS, "private_key": key})

    assert sandbox_reason(account("test_private_x", "sandbox-api")) is not None
    assert sandbox_reason(account("live_private_x", "api")) is None


@pytest.mark.parametrize(
    "settings",
    [{"private_key": "test_private_x"}, {"orange_sn_page": "om_url"}, {"balances": "maybe"}],
)
async def test_settings_that_contradict_each_other_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"base_url|orange_sn_page|balances"):
        async with provider_under_test("paydunya", CREATED, **settings):
            pass


async def test_balances_are_read_by_country_unless_they_are_switched_off() -> None:
    stated = {"success": True, "Balance SN": "12 345 XOF", "Balance BJ": "0 XOF", "Balance CI": "-5.50 XOF"}
    async with provider_under_test("paydunya", (200, stated)) as paydunya:
        assert isinstance(paydunya.provider, Balances)
        assert await paydunya.provider.balances() == [
            FloatBalance("SN", Hundredths(12_345_00), "XOF"),
            FloatBalance("BJ", Hundredths(0), "XOF"),
            FloatBalance("CI", Hundredths(-5_50), "XOF"),
        ]
        assert paydunya.provider.payout_wallet("moov_tg") == "TG"
        for unreadable in ({"Balance SN": "much"}, {"success": True}, {"Balance SN": "1 XOF", "Balance BJ": 5}):
            paydunya.answers[:] = [(200, unreadable)]
            check(await paydunya.provider.balances(), UNKNOWN)
    async with provider_under_test("paydunya", (200, stated), balances="no") as paydunya:
        assert not isinstance(paydunya.provider, Balances)


async def test_the_time_for_a_charge_ends_before_that_of_the_initiation() -> None:
    """A token that is known must be stored, however long the network waits for the customer."""
    async with provider_under_test("paydunya", CREATED) as paydunya:
        assert paydunya.provider.initiation_timeout * SECOND > (15 + 75 + 10) * SECOND
