"""Decisions D6 to D8 of docs/decisions.md, over HTTP: JSON bodies, text and metadata. A test is named after each."""

import pytest

from tests.contract.shapes import check_error, refused_fields
from tests.service_fixture import ServiceFixture

BODY = b'{"amount":5000,"operator":"mtn","phone_number":"22997001234"%s}'


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
async def test_d06_an_unacceptable_body_is_refused(shared_service: ServiceFixture, body: bytes) -> None:
    merchant = await shared_service.merchant()
    for method, path in (("POST", "/payments"), ("POST", "/payment-modes/fees"), ("PUT", "/webhooks/endpoint")):
        if body.strip() or path != "/webhooks/endpoint":
            answer = await merchant.call(method, path, body, headers={"Content-Type": "application/json"})
            error = check_error(answer, "invalid_request")
            assert "details" not in error or not body.strip(), answer.raw


async def test_d06_bodies_at_the_very_limits_and_of_any_content_type(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
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
    shared_service: ServiceFixture, escape: bytes
) -> None:
    merchant = await shared_service.merchant()
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


async def test_d07_a_pair_of_surrogates_is_one_character(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
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
async def test_d08_metadata_comes_back_byte_for_byte(shared_service: ServiceFixture, metadata: bytes) -> None:
    merchant = await shared_service.merchant()
    sent = BODY % (b',"external_id":"a" , "metadata" : %s , "unknown":{"metadata":9}' % metadata)
    wanted = b'"metadata":' + metadata + b',"created_at"'
    for answer in (
        await merchant.post("/payments", sent),
        await merchant.post("/payments", BODY % b',"external_id":"a","metadata":{"other":1}'),
        await merchant.get("/payments/a"),
        await merchant.get("/payments"),
    ):
        assert wanted in answer.raw


async def test_d08_the_last_metadata_counts_and_null_is_none(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    twice = await merchant.post("/payments", BODY % b',"metadata":{"a":1},"metadata":{"b":1.0}')
    assert b'"metadata":{"b":1.0},' in twice.raw
    assert (await merchant.post("/payments", BODY % b',"metadata":{"a":1},"metadata":null')).data["metadata"] is None
    escaped = await merchant.post("/payments", BODY % b',"meta\\u0064ata":{"c":1.0}')
    assert b'"metadata":{"c":1.0},' in escaped.raw
