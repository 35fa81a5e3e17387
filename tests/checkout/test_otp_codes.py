"""The button that makes the provider text a code: it never pays, keeps the input, and is limited."""

import re

import pytest

from guichet.db.engine import require
from guichet.links import repository as links
from guichet.payments.otp_codes import CodeNotSent
from guichet.providers.base import Accepted, NotProcessed, OtpRequestResult, Refused, Unknown
from guichet.server.rate_limits import OTP_CODES_PER_ADDRESS, OTP_CODES_PER_PHONE
from tests.checkout.checkout_fixture import CATALOGUE, Answer, CheckoutFixture

PHONE = "01 97 00 00 45"


async def ask(checkout: CheckoutFixture, path: str, phone: str = PHONE, operator: str = "coris", **more: str) -> Answer:
    """Opens the page, types a number and presses the button for a code."""
    form = (await checkout.get(path)).form(operator)
    return await checkout.post(path, form | {"phone_number": phone, "do": "code"} | more)


def fault(answer: Answer, field: str) -> str:
    """The error of a field, found as a screen reader finds it."""
    described = re.search(rf'id="{field}"[^>]*aria-invalid="true"[^>]*aria-describedby="([^" ]+)', answer.text)
    assert described is not None, field
    found = re.search(rf'id="{described[1]}">(.*?)</p>', answer.text, re.DOTALL)
    assert found is not None
    return found[1]


async def test_only_modes_with_texted_codes_have_the_button(checkout: CheckoutFixture) -> None:
    page = (await checkout.get(await checkout.link())).text
    assert page.count('name="do" value="code"') == sum(mode.sends_code for mode in CATALOGUE.modes) == 1
    # Enter in a field presses the first button of a form: it must be the one that pays.
    section = re.search(r'id="mode-coris".*?</details>', page, re.DOTALL)
    assert section is not None
    buttons = re.findall(r"<button[^>]*>", section[0])
    assert ["value=" in button for button in buttons] == [False, True, False]


async def test_requesting_a_code_pays_nothing(any_checkout: CheckoutFixture) -> None:
    checkout = any_checkout
    path = await checkout.link(5000, "Commande 42", type="limité", max_uses=1)
    answer = await ask(checkout, path, otp=" 12 ")
    assert answer.status == 200
    assert "Un code a été envoyé au +229" in answer.text
    [requested] = checkout.operator.codes
    assert (
        requested.payment.operator,
        requested.payment.phone_number,
        requested.amount,
        requested.payment.currency,
        requested.otp,
    ) == (
        "coris",
        "2290197000045",
        5100_00,
        "XOF",
        None,
    )
    assert not checkout.operator.charges
    assert await checkout.api("GET", "/payments") == []
    token = "".join(path.split("/")[2:])
    assert require(await links.by_token(checkout.ctx.db, token)).reserved_uses == 0
    # The same form, still open, with what was typed; the code is next.
    form = answer.form("coris")
    assert (form["phone_number"], form["otp"]) == (PHONE, "12")
    assert re.search(r'id="mode-coris" open', answer.text)
    code = re.search(r'id="otp-coris"[^>]*autofocus[^>]*aria-describedby="otp-coris-sent"', answer.text)
    assert code is not None
    assert answer.text.count("autofocus") == 1
    paid = await checkout.post(path, form | {"otp": "123456"})
    assert paid.status == 303
    assert (checkout.operator.last.otp, checkout.operator.last.payment.phone_number) == ("123456", "2290197000045")
    # The form has paid: sending it again shows the payment and texts no code.
    again = await checkout.post(path, form | {"do": "code"})
    assert again.headers["Location"] == paid.headers["Location"]
    assert len(checkout.operator.codes) == 1


async def test_the_code_button_works_in_english(checkout: CheckoutFixture) -> None:
    path = await checkout.link() + "?lang=en"
    assert "Get the code by text message" in (await checkout.get(path)).text
    assert "A code was sent to +229" in (await ask(checkout, path)).text


@pytest.mark.parametrize("phone", ["", "0197", "01 97 00 00 4x"])
async def test_a_code_request_needs_only_a_valid_phone_number(checkout: CheckoutFixture, phone: str) -> None:
    answer = await ask(checkout, await checkout.link(), phone)
    assert answer.status == 422
    assert fault(answer, "phone-number-coris")
    assert 'aria-invalid="true"' in answer.text
    assert answer.text.count('aria-invalid="true"') == 1
    assert "Aucun code n’a été envoyé" in answer.text
    assert answer.form("coris")["phone_number"] == phone
    assert not checkout.operator.codes


@pytest.mark.parametrize(
    ("said", "field", "words"),
    [
        (Refused("payer_not_found"), "phone-number-coris", "pas de compte actif chez Coris Money"),
        (Refused("refused", "raw words"), "otp-coris", "pas voulu envoyer de code"),
        (Refused("bad_otp"), "otp-coris", "pas voulu envoyer de code"),
        (NotProcessed("operator_unavailable"), "otp-coris", "ne répond pas pour le moment"),
        (NotProcessed("configuration"), "otp-coris", "problème de notre côté"),
        (Refused("not_connected"), "otp-coris", "pas encore disponible"),
        (Unknown("timeout"), "otp-coris", "Attendez une minute"),
    ],
)
async def test_a_code_that_was_not_sent_is_explained_beside_its_field(
    checkout: CheckoutFixture, said: OtpRequestResult, field: str, words: str
) -> None:
    checkout.operator.code_answer = said
    answer = await ask(checkout, await checkout.link())
    assert answer.status == 422
    assert words in fault(answer, field)
    assert answer.form("coris")["phone_number"] == PHONE
    assert ("Aucun code n’a été envoyé" in answer.text) != isinstance(said, Unknown)
    assert "raw words" not in answer.text
    # The same form then gets one.
    checkout.operator.code_answer = Accepted()
    path = str(re.search(r'action="([^"?]+)', answer.text)[1])  # type: ignore[index]
    assert (await checkout.post(path, answer.form("coris") | {"do": "code"})).status == 200


async def test_the_code_button_is_ignored_for_modes_without_texted_codes(checkout: CheckoutFixture) -> None:
    answer = await ask(checkout, await checkout.link(), operator="mtn")
    assert answer.status == 303
    assert not checkout.operator.codes


async def test_a_forged_old_or_foreign_form_sends_no_code(checkout: CheckoutFixture) -> None:
    path, other = await checkout.link(), await checkout.link(7000)
    form = (await checkout.get(other)).form("coris") | {"phone_number": PHONE, "do": "code"}
    for token in (form["token"], "", "forged", "A" * 22 + ".1." + "B" * 22):
        assert not checkout.operator.codes
        answer = await checkout.post(path, form | {"token": token})
        assert answer.status == 422
        assert "ouverte depuis longtemps" in answer.text
    # Shown once more as our own, it works.
    assert (await checkout.post(path, answer.form("coris") | {"do": "code"})).status == 200
    assert len(checkout.operator.codes) == 1
    assert (await checkout.post(other, form, Sec_Fetch_Site="cross-site")).status == 403
    checkout.pass_time(13 * 3600)
    assert "ouverte depuis longtemps" in (await checkout.post(other, form)).text
    assert len(checkout.operator.codes) == 1


@pytest.mark.parametrize("amount", [2_000_000, 1])
async def test_an_amount_out_of_bounds_sends_no_code(checkout: CheckoutFixture, amount: int) -> None:
    path = await checkout.link(amount)
    form = (await checkout.get(path)).form("VISA")
    answer = await checkout.post(path, form | {"operator": "coris", "phone_number": PHONE, "do": "code"})
    assert answer.status == 422
    assert "plus disponible" in answer.text
    assert not checkout.operator.codes


async def test_a_closed_link_sends_no_code(checkout: CheckoutFixture) -> None:
    path = await checkout.link(expires_at="2020-01-01T00:00:00Z")
    form = (await checkout.get(await checkout.link())).form("coris") | {"phone_number": PHONE, "do": "code"}
    assert (await checkout.post(path, form)).status == 410
    assert not checkout.operator.codes


async def test_codes_to_one_phone_number_are_limited(checkout: CheckoutFixture) -> None:
    """However its number is typed, and whichever link is used."""
    typed = ["01 97 00 00 45", "+229 01 97 00 00 45", "0197000045", "002290197000045", "2290197000045"]
    answers = [await ask(checkout, await checkout.link(), phone) for phone in typed]
    assert [answer.status for answer in answers] == [200] * OTP_CODES_PER_PHONE.requests + [429] * 2
    refused = answers[-1]
    assert "Plusieurs codes ont déjà été demandés" in fault(refused, "otp-coris")
    assert 540 < int(refused.headers["Retry-After"]) <= 600
    assert len(checkout.operator.codes) == OTP_CODES_PER_PHONE.requests
    # What was received can still be used; another number still gets its own.
    assert (await ask(checkout, await checkout.link(), "01 97 00 00 46")).status == 200
    path = str(re.search(r'action="([^"?]+)', refused.text)[1])  # type: ignore[index]
    assert (await checkout.post(path, refused.form("coris") | {"otp": "123456"})).status == 303


async def test_codes_to_many_phone_numbers_are_limited(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    statuses = [
        (await ask(checkout, path, f"01 97 00 00 {n}")).status
        for n in range(10, 10 + OTP_CODES_PER_ADDRESS.requests + 2)
    ]
    assert statuses == [200] * OTP_CODES_PER_ADDRESS.requests + [429] * 2
    assert len(checkout.operator.codes) == OTP_CODES_PER_ADDRESS.requests


def test_an_unsent_code_is_a_french_payment_failed_error() -> None:
    assert CodeNotSent("payer_not_found").message.startswith("Ce numéro")
    assert CodeNotSent(None).message.startswith("Nous ne savons pas")
    assert CodeNotSent(None).code == "payment_failed"
