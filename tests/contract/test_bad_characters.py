"""NUL, control characters and halves of surrogate pairs, wherever a request may hold them: never a 500 (D7)."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from yarl import URL

from guichet.api.endpoint_table import ENDPOINTS
from guichet.settings import Settings
from tests.checkout.checkout_fixture import CheckoutFixture, open_checkout
from tests.payments.conftest import (
    LivePayments,
    live,  # noqa: F401 - the fixture
)
from tests.service_fixture import ServiceFixture

#: Percent-encoded texts that one database or the other refuses, and texts as long as an identifier.
HOSTILE = ["%00", "a%00b", "%ED%A0%80", "%FF", "%1B%5B2J", "%00" * 36, "0" * 35 + "%00", "9" * 40, "%F0%9F%98%80", "-1"]
QUERIES = (
    "status",
    "external_id",
    "from",
    "to",
    "page",
    "per_page",
    "currency",
    "type",
    "amount",
    "country",
    "operator",
    "phone_number",
    "payment_link",
    "payment_reference",
    "event",
    "after",
)
#: JSON strings.
TEXTS = [r'"a\u0000b"', r'"\ud800"', r'"\udc00a"', r'"\u001b[2J"', '"a\x00b"', '"\x1b"', r'"\u0085"']


def paths() -> Iterator[tuple[str, str]]:
    for endpoint in ENDPOINTS:
        yield endpoint.method, endpoint.path


async def test_paths_and_queries_are_never_a_500(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for method, path in paths():
        for text in HOSTILE:
            if "{" in path:
                beginning, _, rest = path.partition("{")
                for caller in (merchant, merchant.live):
                    answer = await caller.call(method, beginning + text + rest.partition("}")[2])
                    assert answer.status in (404, 422), (method, path, text, answer.raw)
            elif method == "GET":
                for name in QUERIES:
                    answer = await merchant.live.get(f"{path}?{name}={text}")
                    assert answer.status in (200, 422), (method, path, name, text, answer.raw)


@pytest.mark.both_databases
async def test_a_nul_in_a_filter_finds_nothing(service: ServiceFixture) -> None:
    """PostgreSQL stores none, and refuses it in JSON, too."""
    merchant = await service.merchant()
    for path in (path for method, path in paths() if method == "GET" and "{" not in path):
        for name in QUERIES:
            answer = await merchant.live.get(f"{path}?{name}=a%00b")
            assert answer.status in (200, 422), (path, name, answer.raw)


BODIES: dict[tuple[str, str], dict[str, str]] = {
    ("POST", "/payments"): {
        "amount": "5000",
        "operator": '"mtn"',
        "phone_number": '"2290197000000"',
        "external_id": '"x"',
        "description": '"x"',
        "return_url": '"https://shop.example/x"',
        "callback_url": '"https://shop.example/x"',
        "otp": '"123456"',
        "currency": '"XOF"',
        "metadata": '{"a": "x"}',
        "customer": '{"firstname": "x"}',
    },
    ("POST", "/payment-links"): {
        "amount": "5000",
        "type": '"permanent"',
        "description": '"x"',
        "expires_at": "null",
        "external_id": '"x"',
        "metadata": '{"a": "x"}',
        "return_url": '"https://shop.example/x"',
    },
    ("PUT", "/webhooks/endpoint"): {"url": '"https://shop.example/x"'},
}


INSIDE = {
    "metadata": ('{"a": {}}', '{{}: "x"}', '{"a": [{"b": {}}]}'),
    "customer": ('{"firstname": {}}', '{"email": {}}'),
}


def spoiled(fields: dict[str, str], bad: str) -> Iterator[tuple[str, bytes]]:
    """(what is bad, body): each text replaced by a bad one, alone or in an object."""
    for name in fields:
        for text in INSIDE.get(name, ("{}",)):
            hostile = text.replace("{}", bad)
            body = {**fields, name: hostile}
            yield name, ("{" + ", ".join(f'"{key}": {each}' for key, each in body.items()) + "}").encode("utf-8")


async def test_bodies_are_never_a_500(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for (method, path), fields in BODIES.items():
        caller = merchant.live if "links" in path else merchant
        for bad in TEXTS:
            for name, body in spoiled(fields, bad):
                answer = await caller.call(method, path, body)
                assert answer.status in (200, 201, 422), (path, name, bad, answer.raw)
                if r"\u0000" in bad or r"\ud" in bad:
                    assert answer.status == 422, (path, name, bad, answer.raw)
    paid = await merchant.pay("0000")
    for bad in TEXTS:
        answer = await merchant.post(f"/payments/{paid['reference']}/refund", f'{{"reason": {bad}}}'.encode())
        assert answer.status in (201, 409, 422), (bad, answer.raw)


@pytest.mark.parametrize(
    "body", [b'{"reference": %s, "provider_reference": %s}' % (text.encode(), text.encode()) for text in TEXTS]
)
async def test_callbacks_are_answered_whatever_they_hold(live: LivePayments, body: bytes) -> None:  # noqa: F811
    for path in ("/providers/first/callback", "/providers/%00/callback", "/providers/first/callback/%00"):
        answer = await live.service.call("POST", path, body)
        assert answer.status == 200, (path, answer.raw)


async def test_hosted_pages_are_never_a_500(settings: Settings) -> None:
    async with open_checkout(settings) as checkout:
        link = await checkout.link()
        for text in HOSTILE:
            for path in (
                f"/pay/{text}/{text}",
                f"{link}/{text}",
                f"{link}/{text}/status",
                f"/checkout/{text}",
                f"/pay/assets/{text}",
            ):
                assert (await _get(checkout, path)) == 404, path
            assert (await _get(checkout, f"{link}?mode={text}&lang={text}")) == 200
        for bad in ("a\0b", "\ud800", "\x1b[2J"):
            form = (await checkout.get(link)).form("mtn")
            for name in (*form, "phone_number"):
                fields = {**form, "phone_number": "01 97 00 00 45", name: bad}
                status = await _post(checkout, link, fields)
                assert 300 <= status < 500, (name, bad)


async def _get(checkout: CheckoutFixture, path: str) -> int:
    async with checkout.http.get(URL(checkout.url + path, encoded=True), allow_redirects=False) as answer:
        return answer.status


async def _post(checkout: CheckoutFixture, path: str, fields: dict[str, Any]) -> int:
    body = "&".join(
        f"{name}={quote_from_bytes(value.encode('utf-8', 'surrogatepass'))}" for name, value in fields.items()
    )
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    async with checkout.http.post(checkout.url + path, data=body, headers=headers, allow_redirects=False) as answer:
        return answer.status
