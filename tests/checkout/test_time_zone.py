"""Every date that a customer reads is in one time zone, that of the merchants."""

import re
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from guichet.back_office.merchants import set_time_zone
from guichet.domain.audit_log import Actor
from guichet.settings import Settings
from tests.checkout.checkout_fixture import Answer, CheckoutFixture, open_checkout


def _zones(page: Answer) -> set[str]:
    return set(re.findall(r"\d{2}:\d{2} \((GMT[^)]*)\)", page.text))


async def _receipt(checkout: CheckoutFixture, operator: str, phone: str) -> Answer:
    path = await checkout.waiting(await checkout.link(), operator=operator, phone=phone)
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await checkout.work()
    return await checkout.get(path)


@pytest.mark.parametrize(("zone", "shown"), [(None, "GMT+1"), ("Africa/Dakar", "GMT")])
async def test_card_page_receipts_and_links_use_the_zone_of_the_merchants(
    settings: Settings, zone: str | None, shown: str
) -> None:
    """Cotonou's unless the staff chose another, whatever the country of the customer's operator."""
    chosen = settings if zone is None else replace(settings, time_zone=ZoneInfo(zone))
    async with open_checkout(chosen) as checkout:
        card = await checkout.card()
        pages = [
            await checkout.get(card),
            await _receipt(checkout, "mtn", "01 97 00 00 45"),
            await _receipt(checkout, "mtn_ci", "05 04 03 02 01"),
            await checkout.get(await checkout.link(expires_at="2099-01-01T00:00:00Z")),
            await checkout.get(await checkout.link(starts_at="2099-01-01T00:00:00Z")),
        ]
        await checkout.post(card, {"outcome": "succeeded"})
        pages.append(await checkout.get(card))

    assert [_zones(page) for page in pages] == [{shown}] * len(pages)


async def test_a_merchant_may_have_a_zone_of_its_own(any_checkout: CheckoutFixture) -> None:
    ctx, merchant_id = any_checkout.ctx, any_checkout.merchant_id
    await set_time_zone(ctx.db, ctx.clock, merchant_id, "Africa/Dakar", Actor("Awa", "awa"))
    pages = [
        await any_checkout.get(await any_checkout.card()),
        await _receipt(any_checkout, "mtn", "01 97 00 00 45"),
        await any_checkout.get(await any_checkout.link(starts_at="2099-01-01T00:00:00Z")),
    ]

    assert [_zones(page) for page in pages] == [{"GMT"}] * len(pages)


async def test_a_link_of_a_day_in_cotonou_ends_with_that_day(any_checkout: CheckoutFixture) -> None:
    page = await any_checkout.get(await any_checkout.link(expires_at="2098-12-31T22:59:00Z"))

    assert "31 décembre 2098 à 23:59 (GMT+1)" in page.text
