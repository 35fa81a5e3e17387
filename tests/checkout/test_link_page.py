"""The page of a payment link: what it shows, in which language, how light it is and which headers it has."""

import re

from guichet.domain.catalogue import ModeOverride
from guichet.domain.money import french
from guichet.merchants import catalogue
from tests.checkout.checkout_fixture import CATALOGUE, CheckoutFixture

LIGHT = 14 * 1024
HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)> {{7*7}} %(x)s"


async def test_the_page_shows_merchant_description_and_amount(checkout: CheckoutFixture) -> None:
    page = await checkout.get(await checkout.link(5000, "Trois pagnes wax"))
    assert page.status == 200
    for text in ("Boutique Kora", "Trois pagnes wax", french(5000_00, "XOF"), 'lang="fr"'):
        assert text in page.text


async def test_every_open_mode_is_offered_with_its_fee_and_total(checkout: CheckoutFixture) -> None:
    page = await checkout.get(await checkout.link(10_000))
    offered = [form["operator"] for form in page.forms()]
    assert sorted(offered) == sorted(mode.operator for mode in CATALOGUE.active())
    modes = await checkout.api("GET", "/payment-modes")
    for mode in modes:
        quote = await checkout.api("POST", "/payment-modes/fees", json={"amount": 10_000, "operator": mode["operator"]})
        assert french(round(quote["total_amount"] * 100), "XOF") in page.text
        assert french(round(quote["fee_amount"] * 100), "XOF") in page.text


async def test_the_page_is_small_in_every_encoding(checkout: CheckoutFixture) -> None:
    path = await checkout.link(description="é" * 255)
    for coding in ("br", "gzip"):
        page = await checkout.get(path, Accept_Encoding=coding)
        assert page.headers["Content-Encoding"] == coding
        head = sum(len(name) + len(value) + 4 for name, value in page.headers.items())
        assert page.wire_size + head < LIGHT
        # Nothing else is fetched: no stylesheet, script, font or picture from anywhere.
        assert not re.search(r'<(script|img|iframe)|rel="?stylesheet|@import|@font-face|url\(', page.text)
    plain = await checkout.get(path, Accept_Encoding="identity")
    assert "Content-Encoding" not in plain.headers


async def test_security_headers_are_set_on_every_page(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    waiting = await checkout.waiting(path)
    for answer in (
        await checkout.get(path),
        await checkout.get(waiting),
        await checkout.get("/pay/x/y"),
        await checkout.get("/pay"),
    ):
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in answer.headers
        assert not re.search(r"<script(?! src=)|\son\w+=|style=", answer.text)


async def test_markup_in_labels_and_names_is_escaped(checkout: CheckoutFixture) -> None:
    path = await checkout.link(description=HOSTILE)
    page = await checkout.get(path)
    faulty = await checkout.pay(path, phone=HOSTILE)
    for answer in (page, faulty, await checkout.get(path + "/qr")):
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        assert "{{7*7}}" in answer.text
    assert faulty.status == 422


async def test_english_is_chosen_by_header_or_by_a_lasting_switch(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    assert 'lang="en"' in (await checkout.get(path, Accept_Language="en-GB,en;q=0.9")).text
    page = await checkout.get(path + "?lang=en", Accept_Language="fr")
    assert "How would you like to pay?" in page.text
    action = re.search(r'action="([^"]+)"', page.text)
    assert action is not None
    answer = await checkout.post(action[1], page.form("mtn") | {"phone_number": "12"})
    assert 'lang="en"' in answer.text
    answer = await checkout.post(action[1], answer.form("mtn") | {"phone_number": "0197000045"})
    assert answer.headers["Location"].endswith("?lang=en")
    assert "Confirm the payment on your phone" in (await checkout.get(answer.headers["Location"])).text


async def test_the_hint_for_the_code_states_the_total(checkout: CheckoutFixture) -> None:
    page = (await checkout.get(await checkout.link(5000))).text
    for mode in CATALOGUE.active():
        section = re.search(rf'id="mode-{mode.operator.lower().replace("_", "-")}".*?</details>', page, re.DOTALL)
        assert section is not None
        assert ("Comment obtenir le code" in section[0]) == mode.requires_otp
        if mode.otp_hint:
            hint = mode.otp_hint["fr"].replace("{total}", "5150").replace("'", "&#39;")
            assert hint in section[0]
            assert ("peut avoir changé" in section[0]) == (not mode.otp_hint_verified)


async def test_amount_bounds_are_explained_before_any_input(checkout: CheckoutFixture) -> None:
    page = await checkout.get(await checkout.link(2_000_000))
    assert "ne peut pas être payé par Mobile Money" in page.text
    assert "Vous pouvez payer par carte" in page.text
    assert {form["operator"] for form in page.forms()} == {"VISA", "MASTERCARD"}
    low = await checkout.get(await checkout.link(1))
    assert french(10_00, "XOF") in low.text
    # 985 000 with 1.5 % stays below the maximum, with 2 % it does not.
    some = await checkout.get(await checkout.link(982_000))
    assert "Certains moyens Mobile Money" in some.text
    offered = {form["operator"] for form in some.forms()}
    assert "mtn" in offered
    assert "moov_bf" not in offered


async def test_closed_modes_are_not_offered(checkout: CheckoutFixture) -> None:
    closed = ModeOverride(checkout.merchant_id, "mtn", active=False, fee_percent=None, fee_fixed=None)
    await catalogue.set_override(checkout.ctx.db, closed)
    page = await checkout.get(await checkout.link())
    offered = {form["operator"] for form in page.forms()}
    assert "mtn" not in offered
    assert "moov" in offered


async def test_the_poster_shows_the_address_as_a_qr_code(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    page = await checkout.get(path + "/qr")
    assert page.status == 200
    assert checkout.url + path in page.text
    assert re.search(r"<svg[^>]*>\s*<title>Code QR", page.text)
    assert "style=" not in page.text
    assert (await checkout.get(await checkout.link(expires_at="2020-01-01T00:00:00Z") + "/qr")).status == 410
