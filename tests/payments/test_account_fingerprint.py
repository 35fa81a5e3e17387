"""A payment is asked about only on the account that it was sent to: elsewhere "not found" proves nothing."""

from collections.abc import Mapping
from typing import Any

import pytest

from guichet.http_client import HttpClient
from guichet.providers.base import FloatEmpty, NotProcessed, Refused
from guichet.providers.provider_types import PROVIDER_TYPES
from guichet.providers.shared.client import ProviderAccount
from guichet.providers.shared.fingerprints import only_key_differs
from tests.fakes.clock import ManualClock
from tests.fakes.scripted_provider import done, refused, taken
from tests.payments.conftest import LivePayments, stored
from tests.payments.test_refunds import paid, refund_of
from tests.providers.provider_cases import PROVIDER_CASES

SETTINGS = {"target_env": "mtnbenin", "subscription_key": "s", "api_user": "user-1", "api_key": "secret-1"}


def fingerprint(base_url: str = "https://proxy.momoapi.mtn.com", **changes: str) -> str:
    return of("mtn", base_url, {**SETTINGS, **changes})


def of(provider: str, base_url: str, settings: Mapping[str, str]) -> str:
    account = ProviderAccount(provider, provider, base_url, settings)
    return str(PROVIDER_TYPES[provider].build(account, HttpClient(), ManualClock()).fingerprint)


def test_a_fingerprint_follows_the_account_and_not_its_secrets() -> None:
    assert fingerprint() == fingerprint(api_key="renewed")
    others = [
        fingerprint("https://momoapi.momo.africa"),
        fingerprint(api_user="user-2"),
        fingerprint(disbursement_api_user="user-2"),
        fingerprint(target_env="sandbox"),
    ]
    assert len({fingerprint(), *others}) == 5


def test_where_no_setting_names_the_account_its_key_does() -> None:
    one, other = (of("pawapay", "https://api.pawapay.io", {"token": each}) for each in ("a", "b"))
    assert one != other
    assert only_key_differs(one, other)
    assert not only_key_differs(one, of("pawapay", "https://elsewhere.example", {"token": "a"}))
    assert not only_key_differs(fingerprint(), fingerprint(api_user="user-2"))


@pytest.mark.parametrize("name", PROVIDER_TYPES)
def test_every_users_setting_of_a_provider_is_in_the_fingerprint(name: str) -> None:
    """What the settings of all providers call a user, a shop, a merchant or a point of sale; without one, the key."""
    declared, settings = PROVIDER_TYPES[name], PROVIDER_CASES[name].settings
    base_url = "https://a.example/api" if name == "paydunya" else "https://a.example"
    before = of(name, base_url, settings)
    of_account = [
        each
        for each in (*declared.required, *declared.optional)
        if each.endswith(("_user", "client_id", "shop", "merchant_code", "code_pv", "_msisdn"))
    ]
    for each in of_account:
        assert of(name, base_url, {**settings, each: "y"}) != before, each
    assert bool(of_account) != (before.count(":") == 2), "an account is named by its settings or by its key"


async def test_a_payment_of_another_account_stays_pending_without_a_question(live: LivePayments) -> None:
    """Before, the new account's "not found" failed a payment that the customer had made."""
    live.first.fingerprint = "old"
    payment = await live.merchant.pay()
    live.first.fingerprint = "new"
    live.first.script("status", refused)
    await live.service.run_worker(3600)
    assert await live.state(payment["reference"]) == "pending"
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "pending"
    assert live.first.references_of("status") == []

    live.first.fingerprint = "old"
    live.first.script("status", done)
    await live.service.run_worker(3600)
    assert await live.state(payment["reference"]) == "succeeded"


async def test_the_next_accounts_fingerprint_is_kept_when_the_first_took_nothing(live: LivePayments) -> None:
    live.first.fingerprint, live.second.fingerprint = "one", "two"
    live.first.script("initiate", NotProcessed())
    live.second.script("initiate", taken)
    assert (await stored(live, await live.merchant.pay())).account_fingerprint == "two"


async def test_a_refund_of_another_account_is_neither_asked_about_nor_failed(live: LivePayments) -> None:
    live.first.fingerprint = "old"
    live.first.script("refund", taken)
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    live.first.fingerprint = "new"
    live.first.script("refund_status", Refused("operator_unavailable"), FloatEmpty())
    await live.service.run_worker(60)
    assert await _status(live, refund) == "pending"
    assert live.first.references_of("refund_status") == []


async def test_a_new_refund_is_not_asked_of_an_account_that_does_not_know_the_payment(live: LivePayments) -> None:
    """It would be refused, and the merchant would get the money back: another account pays the customer instead."""
    live.first.fingerprint = "old"
    payment = await paid(live)
    live.first.fingerprint = "new"
    live.first.script("refund", Refused("payer_not_found"))
    live.second.script("refund", done)
    refund = await refund_of(live, payment)
    await live.service.run_worker()
    assert await _status(live, refund) == "succeeded"
    assert (live.first.references_of("refund"), len(live.second.references_of("refund"))) == ([], 1)


async def test_a_new_refund_waits_where_no_other_account_can_pay(live: LivePayments) -> None:
    live.second.fingerprint = "old"
    live.second.script("status", done)
    payment = await live.merchant.pay(operator="moov", phone_number="2290161001234")
    await live.service.run_worker(5)
    live.second.fingerprint = "new"
    refund = await refund_of(live, payment)
    await live.service.run_worker()
    assert (await _status(live, refund), live.second.references_of("refund")) == ("pending", [])
    live.second.fingerprint = "old"
    live.second.script("refund", done)
    await live.service.run_worker(60)
    assert await _status(live, refund) == "succeeded"


async def _status(live: LivePayments, refund: Any) -> str:
    return str((await live.merchant.get(f"/refunds/{refund['reference']}")).data["status"])
