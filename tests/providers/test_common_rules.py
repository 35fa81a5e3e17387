"""What all providers share: texts, return addresses, unreadable responses, secrets that never show."""

from typing import Any

import pytest

from guichet.providers.base import Unknown
from guichet.providers.fields import plain_text, return_url
from tests.providers.conformance import PROVIDER_CASES
from tests.providers.provider_under_test import callback, charge, provider_under_test, reversal

#: Two hundred times no answer: whatever the verb, nothing can be concluded from it.
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


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda body: repr(body[:12]))
@pytest.mark.parametrize("family", list(PROVIDER_CASES))
async def test_an_unreadable_200_gives_unknown(family: str, body: bytes) -> None:
    """Wave's refund aside: there the status is the whole answer."""
    provider_case = PROVIDER_CASES[family]
    known = {"provider_reference": "theirs", "provider_data": {"pay_token": "p"}, "otp": "123456"}
    async with provider_under_test(family, (200, body)) as asked:
        for verb in VERBS:
            if verb.startswith("refund") and (not provider_case.refunds or family == "wave"):
                continue
            subject: Any = charge(provider_case.operator, **known)
            if verb.startswith("refund"):
                subject = reversal(provider_case.operator, taken=known, provider_reference="theirs")
            answer = await getattr(asked.provider, verb)(subject)
            if verb == "refund" and family in ("stripe", "sonatel"):
                # The refund itself was never sent: what it needs to know first could not be read.
                assert not [one for one in asked.received if "refunds" in one.line or "cashins" in one.line]
                continue
            assert type(answer) is Unknown, verb
        asked.provider.parse_callback(callback(body))


@pytest.mark.parametrize("status", [301, 400, 418, 500, 502, 504])
@pytest.mark.parametrize("family", list(PROVIDER_CASES))
async def test_an_http_error_without_a_readable_body_never_fails_a_payment(family: str, status: int) -> None:
    provider_case = PROVIDER_CASES[family]
    async with provider_under_test(family, (status, b"<html>proxy</html>")) as asked:
        for known in ({"provider_reference": "theirs", "provider_data": {"pay_token": "p"}}, {}):
            answer = await asked.provider.status(charge(provider_case.operator, otp="123456", **known))
            assert type(answer) is Unknown


@pytest.mark.parametrize("family", list(PROVIDER_CASES))
async def test_secrets_never_appear_in_results_or_repr(family: str) -> None:
    """What connectors print and what they report never shows a credential, whatever the operator echoes."""
    provider_case = PROVIDER_CASES[family]
    secrets = [value for name, value in provider_case.settings.items() if _is_secret(name)]
    async with provider_under_test(family, (401, {"message": "no"})) as asked:
        answers = [
            await asked.provider.initiate(charge(provider_case.operator, otp="987654")),
            await asked.provider.probe(),
        ]
    shown = repr(answers) + repr(asked.provider)
    assert [secret for secret in [*secrets, "987654"] if len(secret) > 3 and secret in shown] == []


def _is_secret(name: str) -> bool:
    return any(part in name for part in ("key", "secret", "token", "pin", "client_id"))
