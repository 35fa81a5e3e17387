"""The form of a payment link: what customers type, which forms are refused, and that one form pays once."""

import re

import pytest

from tests.checkout.checkout_fixture import CheckoutFixture


async def test_errors_are_shown_beside_their_field_and_keep_the_input(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    answer = await checkout.pay(path, "coris", phone="01 97", otp="")
    assert answer.status == 422
    assert not checkout.operator.charges
    form = answer.form("coris")
    assert form["phone_number"] == "01 97"
    for field, words in (("phone-number-coris", "pas complet"), ("otp-coris", "Écrivez le code")):
        described = re.search(rf'id="{field}"[^>]*aria-invalid="true"[^>]*aria-describedby="([^" ]+)', answer.text)
        assert described is not None
        fault = re.search(rf'id="{described[1]}">(.*?)</p>', answer.text, re.DOTALL)
        assert fault is not None
        assert words in fault[1]
    assert re.search(r'id="mode-coris" open', answer.text)
    assert answer.text.count("autofocus") == 1
    # The same form, corrected, pays.
    paid = await checkout.post(path, form | {"phone_number": "01 97 00 00 45", "otp": "123456"})
    assert paid.status == 303
    assert checkout.operator.last.otp == "123456"


@pytest.mark.parametrize(
    ("phone", "accepted"),
    [
        ("01 97 00 00 45", "2290197000045"),
        ("+229 01 97 00 00 45", "2290197000045"),
        ("002290197000045", "2290197000045"),
        ("2290197000045", "2290197000045"),
        ("97000045", "22997000045"),
        ("", None),
        ("0197", None),
        ("01 97 00 00 4x", None),
        ("01 97 00 00 45 01 97 00", None),
        ("0197000045\x00", None),
        ("٠١٩٧٠٠٠٠٤٥", None),
    ],
)
async def test_a_phone_number_is_normalised_or_refused(
    checkout: CheckoutFixture, phone: str, accepted: str | None
) -> None:
    answer = await checkout.pay(await checkout.link(), phone=phone)
    assert answer.status == (303 if accepted else 422)
    assert [charge.payment.phone_number for charge in checkout.operator.charges.values()] == (
        [accepted] if accepted else []
    )


async def test_a_card_payment_requires_a_name_and_an_email(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    form = (await checkout.get(path)).form("VISA")
    assert {"firstname", "lastname", "email"} <= form.keys()
    assert "phone_number" not in form
    answer = await checkout.post(path, form | {"firstname": "Awa", "lastname": "", "email": "awa@"})
    assert answer.status == 422
    assert answer.text.count('aria-invalid="true"') == 2
    answer = await checkout.post(path, form | {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"})
    page = await checkout.get(answer.headers["Location"])
    assert f"http://operator.test/confirm/{checkout.operator.last.payment.reference}" in page.text


async def test_a_form_for_a_closed_or_unknown_mode_charges_nothing(checkout: CheckoutFixture) -> None:
    path = await checkout.link(2_000_000)
    form = (await checkout.get(path)).form("VISA")
    for operator in ("mtn", "nobody", ""):
        answer = await checkout.post(path, form | {"operator": operator, "phone_number": "0197000045"})
        assert answer.status == 422
        assert "Choisissez-en un autre" in answer.text
    assert not checkout.operator.charges


async def test_the_same_form_pays_once(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    form = (await checkout.get(path)).form("mtn") | {"phone_number": "0197000045"}
    first = await checkout.post(path, form)
    again = await checkout.post(path, form | {"operator": "moov", "phone_number": "0195000000"})
    assert first.headers["Location"] == again.headers["Location"]
    assert len(checkout.operator.charges) == 1
    # Coming back to the page is another form, and another payment, knowingly.
    assert (await checkout.pay(path)).headers["Location"] != first.headers["Location"]
    assert len(await checkout.api("GET", "/payments")) == 2


async def test_a_form_of_another_link_or_an_old_one_is_shown_again(checkout: CheckoutFixture) -> None:
    path, other = await checkout.link(), await checkout.link(7000)
    form = (await checkout.get(other)).form("mtn") | {"phone_number": "0197000045"}
    for token in (form["token"], "", "forged", "A" * 22 + ".1." + "B" * 22):
        answer = await checkout.post(path, form | {"token": token})
        assert answer.status == 422
        assert "ouverte depuis longtemps" in answer.text
        assert not checkout.operator.charges
    confirmed = await checkout.post(path, answer.form("mtn"))
    assert confirmed.status == 303
    assert checkout.operator.last.payment.phone_number == "2290197000045"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"},
    ],
)
async def test_a_form_from_another_site_is_refused(checkout: CheckoutFixture, headers: dict[str, str]) -> None:
    path = await checkout.link()
    form = (await checkout.get(path)).form("mtn") | {"phone_number": "0197000045"}
    answer = await checkout.post(path, form, **headers)
    assert answer.status == 403
    assert "autre site" in answer.text
    assert not checkout.operator.charges
    own = {"Origin": checkout.url, "Sec_Fetch_Site": "same-origin"}
    assert (await checkout.post(path, form, **own)).status == 303


async def test_a_body_that_is_not_a_form_is_refused(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    for data in (b"x" * 20_000, b"&".join(b"a=1" for _ in range(50))):
        answer = await checkout.send("POST", path, data=data)
        assert answer.status == 422
    for data in (b"", b"\xff\xfe=\xff", b'{"operator": "mtn"}'):
        answer = await checkout.send("POST", path, data=data)
        assert answer.status == 422
        assert "Boutique Kora" in answer.text


async def test_a_refusal_at_initiation_is_shown_and_can_be_retried(checkout: CheckoutFixture) -> None:
    path = await checkout.link(type="limité", max_uses=1)
    page = await checkout.get((await checkout.pay(path, phone="0197000001")).headers["Location"])
    assert page.status == 200
    assert "Votre solde ne suffit pas" in page.text
    assert "Rien n’a été débité" in page.text
    retry = re.search(r'href="([^"]+)">Réessayer', page.text)
    assert retry is not None
    again = await checkout.get(retry[1].replace("&amp;", "&"))
    assert again.status == 200
    assert re.search(r'id="mode-mtn" open', again.text)
