"""What all providers share: texts, return addresses, unreadable responses, secrets that never show."""

from typing import Any

import pytest

from guichet.providers.base import Unknown
from guichet.providers.shared.fields import plain_text, return_url
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.provider_under_test import callback, charge, provider_under_test, refund_request

#: Bodies of a 200 that state nothing: no call may conclude anything from them.
UNREADABLE = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b'"text"',
    b"\xff\xfe",
    b"<html>",
    b"[" * 60_000,
    b'{"status":',
    b'{"amount": 1e99999999999999999999}',
    b"x" * 70_000,
]


@pytest.mark.parametrize(
    ("text", "plain"),
    [("Café « du Port » n° 3", "Cafe du Port n 3"), ("", "Paiement"), ("!!!", "Paiement"), ("اشتر", "Paiement")],
)
def test_text_for_a_provider_is_reduced_to_plain_characters(text: str, plain: str) -> None:
    assert plain_text(text, 30) == plain


def test_text_for_a_provider_is_cut_to_its_length() -> None:
    assert plain_text("abc defgh", 4) == "abc"


def test_the_return_url_is_the_merchants_the_accounts_or_ours() -> None:
    ours = "https://pay.example.com/"
    assert return_url(charge(return_url="https://shop.example/x"), "https://else.example") == "https://shop.example/x"
    assert return_url(charge(), "https://else.example") == "https://else.example"
    assert return_url(charge(), None) == ours
    assert return_url(charge(return_url="https://shop.example/" + "x" * 200), None, 120) == ours
    assert return_url(charge(notify_url=None), None) is None


VERBS = ("initiate", "status", "refund", "refund_status")
#: What takes a call that moves nothing before the one that moves money, and the paths of the latter.
TWO_CALLS = {
    ("stripe", "refund"),
    ("sonatel", "refund"),
    ("paydunya", "initiate"),
    ("paydunya", "refund"),
    ("fedapay", "initiate"),
}
MOVING = ("refunds", "cashins", "softpay", "submit-invoice", "POST /v1/moov")


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda body: repr(body[:12]))
@pytest.mark.parametrize("provider_name", list(PROVIDER_CASES))
async def test_an_unreadable_200_gives_unknown(provider_name: str, body: bytes) -> None:
    """Except for Wave's refund, whose response is its HTTP status alone."""
    provider_case = PROVIDER_CASES[provider_name]
    known = {"provider_reference": "theirs", "provider_data": {"pay_token": "p"}, "otp": "123456"}
    known["phone_number"] = f"{provider_case.dial}97000001"
    async with provider_under_test(provider_name, (200, body)) as under_test:
        for verb in VERBS:
            if verb.startswith("refund") and (not provider_case.refunds or provider_name == "wave"):
                continue
            subject: Any = charge(provider_case.operator, **known)
            if verb.startswith("refund"):
                subject = refund_request(provider_case.operator, taken=known, provider_reference="theirs")
            answer = await getattr(under_test.provider, verb)(subject)
            if (provider_name, verb) in TWO_CALLS:
                # The first of two calls could not be read: the one that moves money was never sent.
                assert not [one for one in under_test.received if any(path in one.line for path in MOVING)]
                continue
            assert type(answer) is Unknown, verb
        under_test.provider.parse_callback(callback(body))


@pytest.mark.parametrize("status", [301, 400, 418, 500, 502, 504])
@pytest.mark.parametrize("provider_name", list(PROVIDER_CASES))
async def test_an_http_error_without_a_readable_body_never_fails_a_payment(provider_name: str, status: int) -> None:
    provider_case = PROVIDER_CASES[provider_name]
    async with provider_under_test(provider_name, (status, b"<html>proxy</html>")) as under_test:
        for known in ({"provider_reference": "theirs", "provider_data": {"pay_token": "p"}}, {}):
            answer = await under_test.provider.status(charge(provider_case.operator, otp="123456", **known))
            assert type(answer) is Unknown


@pytest.mark.parametrize("provider_name", list(PROVIDER_CASES))
async def test_secrets_never_appear_in_results_or_repr(provider_name: str) -> None:
    """The repr of a provider and its results never show a credential, whatever the provider's server echoes."""
    provider_case = PROVIDER_CASES[provider_name]
    secrets = [value for name, value in provider_case.settings.items() if _is_secret(name)]
    async with provider_under_test(provider_name, (401, {"message": "no"})) as under_test:
        answers = [
            await under_test.provider.initiate(charge(provider_case.operator, otp="987654")),
            await under_test.provider.probe(),
        ]
    shown = repr(answers) + repr(under_test.provider)
    assert [secret for secret in [*secrets, "987654"] if len(secret) > 3 and secret in shown] == []


def _is_secret(name: str) -> bool:
    return any(part in name for part in ("key", "secret", "token", "pin", "client_id"))
