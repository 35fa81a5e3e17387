"""Decisions D1 to D19 of docs/decisions.md, as a merchant sees them over HTTP: a test is named after each."""

import re

import pytest

from guichet.clock import SECOND, iso
from tests.contract.shapes import check_error, check_plain_numbers, order, refused_fields
from tests.contract.tables import column
from tests.service_fixture import ServiceFixture

BODY = b'{"amount":5000,"operator":"mtn","phone_number":"22997001234"%s}'
LINK = {"amount": 2500, "description": "Cotisation"}


async def test_d01_operator_and_payment_mode_id_must_name_the_same_mode(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    ids = {mode["operator"]: mode["id"] for mode in (await merchant.get("/payment-modes")).data}
    for operator in ("mtn", "MTN"):
        both = order() | {"operator": operator, "payment_mode_id": ids["mtn"]}
        assert (await merchant.post("/payments", both)).data["payment_mode"]["id"] == ids["mtn"]
        assert (await merchant.post("/payment-modes/fees", both)).status == 200
    for path in ("/payments", "/payment-modes/fees"):
        disagreeing = order(payment_mode_id=ids["moov"])
        assert refused_fields(await merchant.post(path, disagreeing)) == {"operator", "payment_mode_id"}
        assert refused_fields(await merchant.post(path, order(payment_mode_id=999))) == {"payment_mode_id"}


async def test_d02_types_are_strict_and_null_means_absent(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    for amount, accepted in ((5000, True), (5000.0, True), ("5000", False), (True, False), ([5000], False)):
        assert ((await merchant.post("/payments", order(amount=amount))).status == 201) is accepted
    number = b'{"amount":5000,"payment_mode_id":%s,"phone_number":"22997001234"}'
    for text, accepted in ((b"1", True), (b"1.0", True), (b"1e0", True), (b"1.5", False), (b'"1"', False)):
        assert ((await merchant.post("/payments", number % text)).status == 201) is accepted, text
    optional = dict.fromkeys(["currency", "description", "external_id", "metadata", "customer", "callback_url", "otp"])
    payment = (await merchant.post("/payments", order() | optional)).data
    assert [payment[name] for name in ("currency", "description", "metadata")] == ["XOF", "Paiement API", None]


@pytest.mark.parametrize(
    ("currency", "amount", "accepted"),
    [
        ("XOF", b"5000.5", False),
        ("XAF", b"5000.01", False),
        ("XOF", b"5000.00", True),
        ("XOF", b"5000.0000000000000000000000000000000001", False),
        ("EUR", b"50.25", True),
        ("USD", b"50.250", True),
        ("EUR", b"50.255", False),
        ("EUR", b"50.2500000000000000000000000000000000000001", False),
        ("EUR", b"5025e-2", True),
    ],
)
async def test_d03_decimals(sqlite_service: ServiceFixture, currency: str, amount: bytes, accepted: bool) -> None:
    merchant = await sqlite_service.merchant()
    body = b'{"amount":%s,"currency":"%s","operator":"mtn","phone_number":"22997001234"}'
    answer = await merchant.post("/payments", body % (amount, currency.encode()))
    assert (answer.status == 201) is accepted, answer.raw
    if not accepted:
        assert refused_fields(answer) == {"amount"}


@pytest.mark.parametrize(
    "amount", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1e99999999999999999999", b"9" * 5_000]
)
async def test_d03_what_is_no_finite_amount(sqlite_service: ServiceFixture, amount: bytes) -> None:
    merchant = await sqlite_service.merchant()
    for path in ("/payments", "/payment-modes/fees"):
        answer = await merchant.post(path, b'{"amount":%s,"operator":"mtn","phone_number":"22997001234"}' % amount)
        assert refused_fields(answer) == ({"amount"} if amount.strip(b"-")[:1].isdigit() else set())


async def test_d04_fees_are_half_up_to_the_hundredth(sqlite_service: ServiceFixture) -> None:
    """1.75 % of 2.00 is 0.035."""
    merchant = await sqlite_service.merchant()
    quote_ = (await merchant.post("/payment-modes/fees", {"amount": 2, "operator": "mtn"})).data
    assert (quote_["fee_amount"], quote_["total_amount"]) == (0.04, 2.04)
    payment = await merchant.pay(amount=10)
    assert (payment["fee_amount"], payment["total_amount"]) == (0.18, 10.18)


async def test_d05_whole_numbers_have_no_fraction(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    raw = (await merchant.post("/payments", order())).raw
    assert b'"amount":5000,"fee_amount":87.5,"total_amount":5087.5,' in raw
    assert b'"total_amount":10175,' in (await merchant.post("/payments", order(amount=10_000))).raw
    assert b'"amount":0.05' not in raw
    await merchant.pay("0000")
    await service.run_worker()
    assert b'"balance":5000,"balance_minor":500000,' in (await merchant.get("/balance")).raw
    for path in ("/payments", "/payment-modes", "/balance", "/refunds"):
        check_plain_numbers((await merchant.get(path)).raw)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"text"',
        b"5",
        b"null",
        b"true",
        b"{'amount':1}",
        b'{"amount":5000}{}',
        b'{"amount":5000,}',
        b"\xff\xfe{}",
        b'{"description":"\xe9"}',
        b'\xef\xbb\xbf{"amount":5000}',
        b'{"description":"\x00"}',
        b'{"a":' + b"[" * 32 + b"]" * 32 + b"}",
        b'{"a":' * 100_0 + b"1" + b"}" * 100_0,
        b'{"description":"' + b"a" * 65_536 + b'"}',
        b" " * 65_537,
        b"[" * 60_000,
    ],
    ids=lambda body: f"{len(body)}-{bytes(body[:12])!r}",
)
async def test_d06_a_body_that_is_not_an_acceptable_object(sqlite_service: ServiceFixture, body: bytes) -> None:
    merchant = await sqlite_service.merchant()
    for method, path in (("POST", "/payments"), ("POST", "/payment-modes/fees"), ("PUT", "/webhooks/endpoint")):
        if body.strip() or path != "/webhooks/endpoint":
            answer = await merchant.call(method, path, body, headers={"Content-Type": "application/json"})
            error = check_error(answer, "invalid_request")
            assert "details" not in error or not body.strip(), answer.raw


async def test_d06_bodies_at_the_very_limits_and_of_any_content_type(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    deepest = b',"metadata":' + b'{"a":' * 30 + b"[]" + b"}" * 30
    assert (await merchant.post("/payments", BODY % deepest)).status == 201
    too_deep = b',"metadata":' + b'{"a":' * 31 + b"[]" + b"}" * 31
    assert refused_fields(await merchant.post("/payments", BODY % too_deep)) == set()
    room = 65_536 - len(BODY % b',"metadata":{"a":""}')
    for extra, status in ((0, 201), (1, 422)):
        largest = BODY % (b',"metadata":{"a":"%s"}' % (b"x" * (room + extra)))
        assert (await merchant.post("/payments", largest)).status == status
    in_strings = BODY % (b',"metadata":{"a":"%s"}' % (b"[{" * 100 + b'\\"' + b"[" * 50))
    assert (await merchant.post("/payments", in_strings)).status == 201
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert (await merchant.post("/payments", BODY % b"", headers={"Content-Type": kind})).status == 201


@pytest.mark.parametrize("escape", [b"\\u0000", b"\\ud800", b"\\udfff", b"a\\ud83d", b"\\ude00\\ud83d"])
async def test_d07_nul_and_lone_surrogates_are_refused_on_their_field(
    sqlite_service: ServiceFixture, escape: bytes
) -> None:
    merchant = await sqlite_service.merchant()
    for field in ("description", "external_id", "otp", "return_url", "callback_url"):
        body = BODY % (b',"%s":"https://x.example/%s"' % (field.encode(), escape))
        assert refused_fields(await merchant.post("/payments", body)) == {field}
    for inner in (b'{"a":"%s"}', b'{"%s":1}', b'{"a":[{"b":["%s"]}]}', b'{"a":{"%s":[]}}', b'{"a":"%s","a":1}'):
        answer = await merchant.post("/payments", BODY % (b',"metadata":' + inner % escape))
        assert refused_fields(answer) == {"metadata"}, answer.raw
    customer = BODY % (b',"customer":{"firstname":"%s"}' % escape)
    assert refused_fields(await merchant.post("/payments", customer)) == {"customer.firstname"}
    ignored = BODY % (b',"unknown":{"%s":"%s"},"metadata":{"a":1}' % (escape, escape))
    assert (await merchant.post("/payments", ignored)).data["metadata"] == {"a": 1}


async def test_d07_a_pair_of_surrogates_is_one_character(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    pair = BODY % (b',"description":"%s"' % (b"\\ud83d\\ude00" * 255))
    assert (await merchant.post("/payments", pair)).data["description"] == "😀" * 255


@pytest.mark.parametrize(
    "metadata",
    [
        b'{"z":1,"a":2,"m":{"y":1,"b":2}}',
        b'{"n":[1.0,1e2,1E+2,-0,0.10,100000000000000000000000001,1e400]}',
        b'{"a":1,"a":2,"a":{"a":1,"a":1}}',
        b'{ "spaces" :\t[ 1 ,\n 2 ] }',
        b'{"\\u0041\\/":"\\u00e9\\ud83d\\ude00","\xc3\xa9":"\xf0\x9f\x98\x80"}',
        b'{"n":[1e99999999999999999999,%s,-0.%s]}' % (b"9" * 5_000, b"1" * 5_000),
        b"{}",
        b'{"":null,"t":true,"f":false}',
        b'{"metadata":{"metadata":1}}',
    ],
)
async def test_d08_metadata_comes_back_byte_for_byte(service: ServiceFixture, metadata: bytes) -> None:
    merchant = await service.merchant()
    sent = BODY % (b',"external_id":"a" , "metadata" : %s , "unknown":{"metadata":9}' % metadata)
    wanted = b'"metadata":' + metadata + b',"created_at"'
    for answer in (
        await merchant.post("/payments", sent),
        await merchant.post("/payments", BODY % b',"external_id":"a","metadata":{"other":1}'),
        await merchant.get("/payments/a"),
        await merchant.get("/payments"),
    ):
        assert wanted in answer.raw


async def test_d08_the_last_metadata_counts_and_null_is_none(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    twice = await merchant.post("/payments", BODY % b',"metadata":{"a":1},"metadata":{"b":1.0}')
    assert b'"metadata":{"b":1.0},' in twice.raw
    assert (await merchant.post("/payments", BODY % b',"metadata":{"a":1},"metadata":null')).data["metadata"] is None
    escaped = await merchant.post("/payments", BODY % b',"meta\\u0064ata":{"c":1.0}')
    assert b'"metadata":{"c":1.0},' in escaped.raw


async def test_d09_phone_numbers_are_kept_as_digits(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    for sent in ("+22997001234", "22997001234", "+12345678", "123456789012345"):
        payment = (await merchant.post("/payments", order(phone_number=sent))).data
        assert payment["customer"]["phone_number"] == sent.lstrip("+")
    wrong = (
        "++22997001234",
        "229 97001234",
        "229-97001234",
        "(229)97001234",
        "1234567",
        "1" * 16,
        "٢٢٩٩٧٠٠١٢٣٤",
        "1" * 8 + "\n",
    )
    for sent in wrong:
        assert refused_fields(await merchant.post("/payments", order(phone_number=sent))) == {"phone_number"}


@pytest.mark.parametrize(
    "external_id",
    [
        "a/b",
        "a%2Fb",
        "..",
        ".",
        "é 😀",
        "a?b#c",
        "a+b c",
        "refund",
        "\t\n",
        "' OR 1=1 --",
        "%",
        "00000000-0000-4000-8000-000000000000",
        "é" * 100,
    ],
)
async def test_d10_an_external_id_may_hold_any_characters(service: ServiceFixture, external_id: str) -> None:
    merchant = await service.merchant()
    payment = await merchant.pay("0000", external_id=external_id)
    assert payment["external_id"] == external_id
    path = f"/payments/{''.join(f'%{byte:02X}' for byte in external_id.encode())}"
    read = await merchant.get(path)
    assert read.data["reference"] == payment["reference"]
    assert (await merchant.post(f"{path}/refund")).data["payment_reference"] == payment["reference"]


async def test_d10_an_empty_one_is_refused_and_a_reference_wins(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    assert refused_fields(await merchant.post("/payments", order(external_id=""))) == {"external_id"}
    first = await merchant.pay()
    second = await merchant.pay(external_id=first["reference"])
    assert (await merchant.get(f"/payments/{first['reference']}")).data["reference"] == first["reference"]
    assert (await merchant.get(f"/payments/{second['reference']}")).data["external_id"] == first["reference"]
    for garbage in ("%FF", "%C3%28", "%00", "a%00b", "%ED%A0%80"):
        check_error(await merchant.get(f"/payments/{garbage}"), "not_found")


async def test_d11_a_replay_is_validated_then_answers_what_exists(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    card = (await merchant.post("/payments", order("VISA", external_id="card"))).data
    again = await merchant.post("/payments", order("mtn", external_id="card", amount=7000))
    assert again.status == 201
    assert again.data == card | {"payment_url": None}
    for faulty in (order(external_id="card", amount=0), order("coris", external_id="card", otp=...)):
        check_error(await merchant.post("/payments", faulty), "invalid_request")
    refused = order(phone_number="22997000001", external_id="failed")
    check_error(await merchant.post("/payments", refused), "payment_failed")
    replayed = await merchant.post("/payments", refused)
    assert (replayed.status, replayed.data["status"]) == (201, "failed")
    assert (await merchant.get("/payments")).body["meta"]["total"] == 2


async def test_d12_a_page_past_the_end_is_empty_and_true(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    await merchant.pay()
    answer = await merchant.get("/payments?page=7")
    assert (answer.data, answer.body["meta"]["total"], answer.body["meta"]["last_page"]) == ([], 1, 1)
    for query in ("/payments?per_page=101", "/payments?from=x", "/balance?currency=x", "/payment-modes?type=x"):
        assert refused_fields(await merchant.get(query))


async def test_d13_bounds_are_inclusive_and_offsets_are_understood(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    born = service.clock.now() // SECOND * SECOND + SECOND
    service.clock.advance((born - service.clock.now()) / SECOND)
    await merchant.pay()

    async def found(query: str) -> bool:
        return bool((await merchant.get(f"/payments?{query}")).data)

    exact, before, after = iso(born), iso(born - 1), iso(born + 1)
    assert await found(f"from={exact}&to={exact}")
    assert not await found(f"from={after}")
    assert not await found(f"to={before}")
    naive, in_lagos = exact[:-1], iso(born + 3600 * SECOND)[:-1] + "+01:00"
    for text in (
        naive,
        in_lagos,
        in_lagos.replace("+", "%2B"),
        in_lagos.replace("+", " ").replace(" ", "%20"),
        exact.lower(),
    ):
        assert await found(f"from={text}&to={text}"), text
    assert not await found(f"from={iso(born)[:-1]}-01:00")
    day, next_day = exact[:10], iso(born + 86_400 * SECOND)[:10]
    assert await found(f"from={day}")
    assert not await found(f"to={day}")
    assert await found(f"to={next_day}&from={day}")


async def test_d14_addresses(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    good = {
        "return_url": ("http://shop.example/x", "https://shop.example:8443?a=b", "https://é.example/ü"),
        "callback_url": ("https://shop.example/h", "http://localhost:9/h", "http://127.0.0.1:9/h"),
    }
    bad = (
        "javascript:alert(1)",
        "https://shop example",
        "shop.example",
        "https://shop.example:99999",
        "https://[::1",
        "\x01https://shop.example",
        " https://shop.example",
        "https://shop.example\\@evil.example",
        "https://shop.example/\n",
    )
    for field, values in good.items():
        for value in values:
            assert (await merchant.post("/payments", order(**{field: value}))).status == 201, value
        for value in bad:
            assert refused_fields(await merchant.post("/payments", order(**{field: value}))) == {field}, value
    for value in ("http://shop.example/h", "http://10.0.0.1/h"):
        assert refused_fields(await merchant.post("/payments", order(callback_url=value))) == {"callback_url"}


async def test_d15_the_order_of_checks(service: ServiceFixture) -> None:
    """Each request has every fault from its stage on: the stage that answers is the first."""
    merchant, inactive = await service.merchant(), (await service.merchant(status="pending")).live
    nothing = {"Authorization": "Bearer nothing"}
    check_error(await service.call("DELETE", "/v1/nothing", headers=nothing), "not_found")
    check_error(await service.call("DELETE", "/v1/payments", b"{", headers=nothing), "method_not_allowed")
    check_error(await service.call("POST", "/v1/payments", b"{", headers=nothing), "unauthorized")
    check_error(await inactive.post("/payments", b"{"), "merchant_inactive")
    assert refused_fields(await merchant.post("/payments", b'{"operator":"none","amount":')) == set()
    await merchant.pay("0000", external_id="a")
    both = order(external_id="a", amount=999_999) | {"operator": "none"}
    assert refused_fields(await merchant.post("/payments", both)) == {"operator"}
    assert refused_fields(await merchant.post("/payments", order(external_id="a", amount=999_999))) == {"amount"}
    assert (await merchant.post("/payments", order(external_id="a", phone_number="22997000001"))).status == 201
    assert (await merchant.call("DELETE", "/payments/a")).headers["Allow"] == "GET"


async def test_d16_mobile_money_in_every_currency(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    for currency in column("currencies", "Currency"):
        payment = (await merchant.post("/payments", order(currency=currency, amount=10))).data
        assert (payment["currency"], payment["total_amount"]) == (currency, 10.18)
        check_error(await merchant.post("/payments", order(currency=currency, amount=9)), "invalid_request")


async def test_d17_links_do_not_exist_for_a_test_key(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    link = (await merchant.live.post("/payment-links", LINK)).data
    for body in (LINK, {}, b"{"):
        assert "details" not in check_error(await merchant.post("/payment-links", body), "invalid_request")
    assert (await merchant.get("/payment-links")).body["meta"]["total"] == 0
    check_error(await merchant.get(f"/payment-links/{link['id']}"), "not_found")


async def test_d18_the_accent_of_limited_links(service: ServiceFixture) -> None:
    merchant = (await service.merchant()).live
    for written in ('"limit\u00e9"'.encode(), b'"limit\\u00e9"'):
        body = b'{"amount":1,"description":"x","max_uses":1,"type":%s}' % written
        answer = await merchant.post("/payment-links", body)
        assert '"type":"limit\u00e9"'.encode() in answer.raw
    for spelling in ("limite", "LIMIT\u00c9", "limite\u0301", "limit\u00e8", "limit\u00e9 ", "limited"):
        refused = await merchant.post("/payment-links", LINK | {"type": spelling, "max_uses": 1})
        assert refused_fields(refused) == {"type"}


async def test_d19_the_currency_and_the_dates_of_a_link(service: ServiceFixture) -> None:
    euro, franc = (await service.merchant(currency="EUR")).live, (await service.merchant()).live
    assert (await euro.post("/payment-links", LINK | {"amount": 12.5})).data["amount"] == 12.5
    assert refused_fields(await franc.post("/payment-links", LINK | {"amount": 12.5})) == {"amount"}
    past = {"starts_at": "2020-01-01", "expires_at": "2020-01-02"}
    assert (await franc.post("/payment-links", LINK | past)).status == 201
    for expires_at in ("2020-01-01", "2019-12-31T23:59:59Z", "2020-01-01T00:30:00+01:00"):
        answer = await franc.post("/payment-links", LINK | past | {"expires_at": expires_at})
        assert refused_fields(answer) == {"expires_at"}
    assert (await franc.post("/payment-links", LINK | {"expires_at": "2020-01-01"})).data["starts_at"] is None


def test_names_of_tests_are_names_of_decisions() -> None:
    names = [name for name in globals() if name.startswith("test_d")]
    assert {int(re.findall(r"\d+", name)[0]) for name in names} == set(range(1, 20))
