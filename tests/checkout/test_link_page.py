"""The page of a payment link: what it shows, what it refuses, and that it never charges twice."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from guichet.domain.catalogue import ModeOverride
from guichet.domain.money import french
from guichet.domain.posting_rules import WalletStatus
from guichet.ledger import wallets
from guichet.merchants import catalogue
from guichet.merchants import repository as merchants
from tests.checkout.checkout_fixture import CATALOGUE, CheckoutFixture

LIGHT = 14 * 1024
HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)> {{7*7}} %(x)s"


def _in(**delta: float) -> str:
    return (datetime.now(UTC) + timedelta(**delta)).isoformat()


async def test_it_says_who_what_and_how_much(checkout: CheckoutFixture) -> None:
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


async def test_the_page_is_light_whatever_the_browser_accepts(checkout: CheckoutFixture) -> None:
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


async def test_headers_keep_the_address_secret_and_the_page_alone(checkout: CheckoutFixture) -> None:
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


async def test_hostile_labels_and_names_are_text(checkout: CheckoutFixture) -> None:
    path = await checkout.link(description=HOSTILE)
    page = await checkout.get(path)
    faulty = await checkout.pay(path, phone=HOSTILE)
    for answer in (page, faulty, await checkout.get(path + "/qr")):
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        assert "{{7*7}}" in answer.text
    assert faulty.status == 422


async def test_english_by_header_and_by_switch_that_sticks(checkout: CheckoutFixture) -> None:
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


async def test_faults_stand_beside_their_field_and_keep_what_was_typed(checkout: CheckoutFixture) -> None:
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
async def test_phone_numbers(checkout: CheckoutFixture, phone: str, accepted: str | None) -> None:
    answer = await checkout.pay(await checkout.link(), phone=phone)
    assert answer.status == (303 if accepted else 422)
    assert [charge.phone_number for charge in checkout.operator.charges.values()] == ([accepted] if accepted else [])


async def test_a_card_asks_for_a_name_and_an_address(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    form = (await checkout.get(path)).form("VISA")
    assert {"firstname", "lastname", "email"} <= form.keys()
    assert "phone_number" not in form
    answer = await checkout.post(path, form | {"firstname": "Awa", "lastname": "", "email": "awa@"})
    assert answer.status == 422
    assert answer.text.count('aria-invalid="true"') == 2
    answer = await checkout.post(path, form | {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"})
    page = await checkout.get(answer.headers["Location"])
    assert f"http://operator.test/confirm/{checkout.operator.last.reference}" in page.text


async def test_how_to_get_the_code_is_told_with_the_total(checkout: CheckoutFixture) -> None:
    page = (await checkout.get(await checkout.link(5000))).text
    for mode in CATALOGUE.active():
        section = re.search(rf'id="mode-{mode.operator.lower().replace("_", "-")}".*?</details>', page, re.DOTALL)
        assert section is not None
        assert ("Comment obtenir le code" in section[0]) == mode.requires_otp
        if mode.otp_hint:
            hint = mode.otp_hint["fr"].replace("{total}", "5150").replace("'", "&#39;")
            assert hint in section[0]
            assert ("peut avoir changé" in section[0]) == (not mode.otp_hint_verified)


async def test_bounds_are_explained_before_anything_is_typed(checkout: CheckoutFixture) -> None:
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


async def test_a_form_for_a_shut_or_unknown_mode_charges_nobody(checkout: CheckoutFixture) -> None:
    path = await checkout.link(2_000_000)
    form = (await checkout.get(path)).form("VISA")
    for operator in ("mtn", "nobody", ""):
        answer = await checkout.post(path, form | {"operator": operator, "phone_number": "0197000045"})
        assert answer.status == 422
        assert "Choisissez-en un autre" in answer.text
    assert not checkout.operator.charges


async def test_modes_closed_by_the_service_are_not_offered(checkout: CheckoutFixture) -> None:
    closed = ModeOverride(checkout.merchant_id, "mtn", active=False, fee_percent=None, fee_fixed=None)
    await catalogue.set_override(checkout.ctx.db, closed)
    page = await checkout.get(await checkout.link())
    offered = {form["operator"] for form in page.forms()}
    assert "mtn" not in offered
    assert "moov" in offered


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"starts_at": "2099-01-01T00:00:00Z"}, 403, "pas encore ouvert"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, 410, "a expiré"),
    ],
)
async def test_outside_its_window(checkout: CheckoutFixture, fields: dict[str, Any], status: int, words: str) -> None:
    open_path = await checkout.link()
    form = (await checkout.get(open_path)).form("mtn") | {"phone_number": "0197000045"}
    path = await checkout.link(**fields)
    for answer in (await checkout.get(path), await checkout.post(path, form)):
        assert answer.status == status
        assert words in answer.text
    assert not checkout.operator.charges


async def test_a_window_that_is_open(checkout: CheckoutFixture) -> None:
    assert (await checkout.get(await checkout.link(starts_at=_in(minutes=-1), expires_at=_in(minutes=5)))).status == 200


async def test_a_suspended_merchant_and_a_frozen_wallet(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    form = (await checkout.get(path)).form("mtn") | {"phone_number": "0197000045"}
    await _set_wallet(checkout, "Gelé")
    for answer in (await checkout.get(path), await checkout.post(path, form)):
        assert answer.status == 409
        assert "en pause" in answer.text
    await _set_wallet(checkout, "Actif")
    await merchants.set_status(checkout.ctx.db, checkout.merchant_id, "suspended")
    for answer in (await checkout.get(path), await checkout.post(path, form)):
        assert answer.status == 403
        assert "ne peut pas encaisser" in answer.text
    assert not checkout.operator.charges
    await merchants.set_status(checkout.ctx.db, checkout.merchant_id, "active")
    assert (await checkout.post(path, form)).status == 303


async def test_unknown_tokens_and_verbs(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    waiting = await checkout.waiting(path)
    other = await checkout.link()
    token = waiting.rpartition("/")[2]
    swapped, fragments = path.swapcase(), "".join(path.split("/")[2:])
    for unknown in (
        "/pay/" + "A" * 22 + "/" + "B" * 22,
        "/pay",
        "/pay/",
        "/pay/x",
        path + "/x",
        path[:-1],
        path + "/qr/x",
        path.replace("/pay/", "/pay//"),
        f"{other}/{token}",
        f"{other}/{token}/status",
        "/pay/%00/%ff",
        f"/checkout/{token}",
        "/checkout/x",
        "/pay/assets/pages.css",
        "/pay/" + "/".join(reversed(path.split("/")[2:])),
        "/pay" + swapped[4:],
        f"/pay/{fragments[:21]}/{fragments[21:]}",
    ):
        answer = await checkout.get(unknown)
        assert answer.status == 404, unknown
        assert "existe pas" in answer.text
    for method, known in (("PUT", path), ("DELETE", path), ("POST", waiting), ("POST", path + "/qr")):
        answer = await checkout.send(method, known)
        assert answer.status == 405
        assert "GET" in answer.headers["Allow"]
        assert answer.headers["Content-Type"].startswith("text/html")


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


async def test_a_form_of_another_link_or_an_old_one_is_shown_once_more(checkout: CheckoutFixture) -> None:
    path, other = await checkout.link(), await checkout.link(7000)
    form = (await checkout.get(other)).form("mtn") | {"phone_number": "0197000045"}
    for token in (form["token"], "", "forged", "A" * 22 + ".1." + "B" * 22):
        answer = await checkout.post(path, form | {"token": token})
        assert answer.status == 422
        assert "ouverte depuis longtemps" in answer.text
        assert not checkout.operator.charges
    confirmed = await checkout.post(path, answer.form("mtn"))
    assert confirmed.status == 303
    assert checkout.operator.last.phone_number == "2290197000045"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"},
    ],
)
async def test_another_site_cannot_send_the_form(checkout: CheckoutFixture, headers: dict[str, str]) -> None:
    path = await checkout.link()
    form = (await checkout.get(path)).form("mtn") | {"phone_number": "0197000045"}
    answer = await checkout.post(path, form, **headers)
    assert answer.status == 403
    assert "autre site" in answer.text
    assert not checkout.operator.charges
    own = {"Origin": checkout.url, "Sec_Fetch_Site": "same-origin"}
    assert (await checkout.post(path, form, **own)).status == 303


async def test_a_body_that_is_no_form(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    for data in (b"x" * 20_000, b"&".join(b"a=1" for _ in range(50))):
        answer = await checkout.send("POST", path, data=data)
        assert answer.status == 422
    for data in (b"", b"\xff\xfe=\xff", b'{"operator": "mtn"}'):
        answer = await checkout.send("POST", path, data=data)
        assert answer.status == 422
        assert "Boutique Kora" in answer.text


async def test_a_refusal_at_initiation_is_told_and_can_be_retried(checkout: CheckoutFixture) -> None:
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


async def test_the_poster_shows_the_address_as_a_code(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    page = await checkout.get(path + "/qr")
    assert page.status == 200
    assert checkout.url + path in page.text
    assert re.search(r"<svg[^>]*>\s*<title>Code QR", page.text)
    assert "style=" not in page.text
    assert (await checkout.get(await checkout.link(expires_at="2020-01-01T00:00:00Z") + "/qr")).status == 410


async def _set_wallet(checkout: CheckoutFixture, status: WalletStatus) -> None:
    async with checkout.ctx.db.transaction() as tx:
        await wallets.set_wallet_status(tx, checkout.merchant_id, "live", "XOF", status, checkout.ctx.clock.now())
