"""The overview: figures in the merchant's time zone, what needs attention, and who sees what."""

import gzip
import random
import re
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import insert, update

from guichet.clock import DAY, HOUR, MINUTE, SECOND, later, read_date
from guichet.console.overview.figures import Days, change_text, chart, rate_text, share_text, time_text
from guichet.db.lists.rollup import roll_up_list_counts
from guichet.db.tables import api_keys, merchants, payments, refunds, wallet_entries, wallets, webhook_deliveries
from guichet.domain.merchants import Merchant
from guichet.domain.roles import MERCHANT_ROLES
from guichet.history.figures import DAYS, Figures, hour_from
from tests.console.conftest import ConsoleFixture
from tests.console.pages import Page
from tests.db.rows import DELIVERY, ENTRY, PAYMENT, REFUND

OWNER = "awa@example.com"


class _Maker:
    """Writes payments of a merchant in the live environment."""

    def __init__(self, console: ConsoleFixture, merchant: Merchant) -> None:
        self.console, self.merchant, self.number = console, merchant, 0

    async def payment(self, status: str, amount: int, age: int, **fields: Any) -> None:
        """`amount` in francs, `age` in microseconds; a success after ten seconds."""
        self.number += 1
        at = self.console.service.clock.now() - age
        row = {
            **PAYMENT,
            "merchant_id": self.merchant.id,
            "env": "live",
            "reference": f"00000000-0000-4000-8000-{self.number:012d}",
            "status": status,
            "amount": amount * 100,
            "total_amount": amount * 100 + 5,
            "created_at": at,
            "updated_at": at + 10 * SECOND,
            "next_poll_at": 1 if status == "pending" else None,
        }
        await self.console.service.ctx.db.write(insert(payments).values(**{**row, **fields}))


def _plain(page: Page) -> str:
    """What is read: the texts of the page, with ordinary spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text).replace("\u202f", " ").replace("\xa0", " "))


def _tile(page: Page, name: str) -> str:
    """The text of the card or the figure with this heading."""
    cards = re.findall(r"<section[^>]*>(?:<header>)?<h2>(.*?)</h2>(.*?)</section>", page.text, re.DOTALL)
    [found] = [body for heading, body in cards if heading == name]
    return _plain(Page(200, "", found, {}))


async def test_what_came_in_today_in_a_week_and_in_a_month(console: ConsoleFixture) -> None:
    """The clock of the tests stands still; figures are right before and after they are rolled up."""
    since_midnight = (console.service.clock.now() + HOUR) % DAY
    merchant = await console.merchant()
    make = _Maker(console, merchant)
    await console.service.ctx.db.write(update(merchants).values(time_zone="Africa/Porto-Novo"))
    await make.payment("succeeded", 5000, 0)
    await make.payment("failed", 700, 0)
    await make.payment("pending", 900, 0)
    await make.payment("succeeded", 2000, since_midnight + MINUTE, operator="moov")
    await make.payment("refunded", 1000, 6 * DAY, operator="wave_ci")
    await make.payment("succeeded", 40_000, 29 * DAY, operator="gone")
    await make.payment("succeeded", 9_000_000, since_midnight + 29 * DAY + 1)
    await make.payment("succeeded", 8_000_000, 0, env="test")
    await make.payment("succeeded", 77, 0, currency="EUR")
    owner = await console.joined(OWNER, merchant)
    for _ in range(2):
        page = await owner.get(f"/console/{merchant.id}/live?days=30")
        assert page.status == 200
        assert "5 000 F CFA" in (today := _tile(page, "Aujourd’hui"))
        assert "1 réussi " in today
        week = _tile(page, "7 jours")
        assert ("8 000 F CFA" in week, "3 réussis , 75 %" in week) == (True, True)
        month = _tile(page, "30 jours")
        assert ("48 000 F CFA" in month, "−99,5 %" in month) == (True, True), "nine million were taken before"
        table = _tile(page, "Encaissé par jour")
        assert "Aujourd’hui 5 000 F CFA 1 1 50 % 10 s" in table
        assert "7 jours 1 000 F CFA remboursés depuis 8 000 F CFA 3 1 75 % 10 s" in table
        operators = _tile(page, "Par opérateur · 30 jours")
        assert operators.index("gone") < operators.index("MTN MoMo Bénin") < operators.index("Moov")
        countries = _tile(page, "Par pays · 30 jours")
        assert "Bénin 7 000 F CFA" in countries
        assert "Sans pays 40 000 F CFA" in countries
        assert "gone" not in _tile(await owner.get(f"/console/{merchant.id}/live"), "Par opérateur · 7 jours")
        assert "77,00 EUR" in _tile(await owner.get(f"/console/{merchant.id}/live?currency=EUR&days=x"), "Aujourd’hui")
        assert "8 000 000 F CFA" in _tile(await owner.get(f"/console/{merchant.id}/test"), "Aujourd’hui")
        while await roll_up_list_counts(console.service.ctx.db, 100):
            """Until nothing is left to add up."""


@pytest.mark.both_databases
async def test_what_needs_attention_is_named(console: ConsoleFixture) -> None:
    merchant = await console.merchant()
    db, now = console.service.ctx.db, console.service.clock.now()
    make = _Maker(console, merchant)
    owner = await console.joined(OWNER, merchant)
    here = f"/console/{merchant.id}/live"
    key = {"merchant_id": merchant.id, "env": "live", "created_at": 1}
    await db.write(insert(api_keys).values(**key, hash="a", preview="sk_live_far…", expires_at=later(now, 60 * DAY)))
    await make.payment("pending", 100, 59 * MINUTE)
    delivery = {**DELIVERY, "merchant_id": merchant.id, "env": "live", "created_at": now - 25 * HOUR}
    await db.write(
        insert(webhook_deliveries).values(
            **{**delivery, "reference": PAYMENT["reference"], "status": "failed", "next_attempt_at": None}
        )
    )
    assert 'class="note' not in (await owner.get(here)).text
    await make.payment("pending", 100, 61 * MINUTE)
    await db.write(insert(api_keys).values(**key, hash="b", preview="sk_live_soon…", expires_at=later(now, DAY)))
    await db.write(insert(api_keys).values(**key, hash="c", preview="sk_live_over…", expires_at=now - DAY))
    await db.write(
        insert(api_keys).values(**key, hash="d", preview="sk_live_gone…", expires_at=now - DAY, revoked_at=now - DAY)
    )
    given_up: dict[str, Any] = {"status": "failed", "next_attempt_at": None, "created_at": now - 23 * HOUR}
    for number, changed in enumerate((given_up, {"attempts": 2})):
        reference = f"00000000-0000-4000-8000-{number:012d}"
        await db.write(insert(webhook_deliveries).values(**{**delivery, "reference": reference, **changed}))
    await db.write(update(wallets).where(wallets.c.env == "live").values(status="Gelé"))
    read = _plain(await owner.get(here))
    for sentence in (
        "6 points à vérifier",
        "Le solde est bloqué",
        "Webhooks abandonnés depuis hier, faute de réponse de votre serveur : 1.",
        "Webhooks refusés par votre serveur, qui seront envoyés de nouveau : 1.",
        "La clé sk_live_over… a expiré",
        "La clé sk_live_soon… expire",
        "Paiements en attente depuis plus d’une heure : 1.",
    ):
        assert sentence in read
    assert "sk_live_gone…" not in read
    assert "sk_live_far…" not in read
    assert 'class="note' not in (await owner.get(f"/console/{merchant.id}/test")).text


@pytest.mark.parametrize("role", MERCHANT_ROLES)
async def test_who_sees_money_and_keys(sqlite_console: ConsoleFixture, role: str) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    db, now = console.service.ctx.db, console.service.clock.now()
    key = {"merchant_id": merchant.id, "env": "live", "created_at": 1, "hash": "h", "preview": "sk_live_x…"}
    await db.write(insert(api_keys).values(**key, expires_at=now))
    browser = await console.joined("x@example.com", merchant, role)
    page = await browser.get("/console")
    assert (page.status, page.path) == (
        200,
        f"/console/{merchant.id}/live" + ("/cash-desk" if role == "cashier" else ""),
    )
    read = _plain(page)
    assert ("Solde" in read) is (role in ("owner", "finance", "reader"))
    assert ("sk_live_x…" in read) is (role in ("owner", "developer"))
    assert (await browser.get(f"/console/{merchant.id + 1}/live")).status == 403


@pytest.mark.both_databases
async def test_what_is_held_is_shown(console: ConsoleFixture) -> None:
    """The wallet's part of a refund under way, not its fee; a suspended credit; nothing of the other environment."""
    merchant = await console.merchant()
    make, db = _Maker(console, merchant), console.service.ctx.db
    for number, env in enumerate(("live", "live", "test"), 1):
        await make.payment("succeeded", 5000, 0, env=env)
        row = {**REFUND, "merchant_id": merchant.id, "env": env, "payment_id": number, "held": number != 2}
        await db.write(insert(refunds).values({**row, "reference": f"00000000-0000-4000-8000-{number:012d}"}))
    entry = {**ENTRY, "merchant_id": merchant.id, "env": "live"}
    await db.write(insert(wallet_entries).values({**entry, "amount": 700_00, "suspended": True}))
    await db.write(insert(wallet_entries).values({**entry, "amount": 30_00, "suspended": False}))
    owner = await console.joined(OWNER, merchant)
    assert "30 F CFA 5 700 F CFA retenus" in _balance(await owner.get(f"/console/{merchant.id}/live"))
    told = _plain(await owner.get(f"/console/{merchant.id}/live/balance"))
    assert "5 700 F CFA retenus (remboursements en cours : 1 ; encaissements bloqués : 700 F CFA)" in told
    await db.write(update(refunds).values(status="succeeded", processed_at=1, next_poll_at=None))
    assert "30 F CFA 700 F CFA retenus" in _balance(await owner.get(f"/console/{merchant.id}/live"))


def _balance(page: Page) -> str:
    return _tile(page, "Solde")


async def test_a_full_month_of_many_operators_fits_the_budget(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant = await console.merchant("Boutique Kora et Fils de Porto-Novo")
    modes = (await console.service.ctx.catalogues.of(None)).modes
    chance = random.Random(3)
    make = _Maker(console, merchant)
    async with console.service.ctx.db.transaction() as tx:
        rows = [
            {
                **{name: value for name, value in PAYMENT.items() if name not in ("next_poll_at", "reference")},
                "merchant_id": merchant.id,
                "env": "live",
                "status": chance.choice(["succeeded", "failed"]),
                "amount": (amount := chance.randrange(1, 10**9)),
                "total_amount": amount + 5,
                "operator": mode.operator,
                "created_at": console.service.clock.now() - day * DAY,
                "updated_at": console.service.clock.now() - day * DAY + chance.randrange(300 * SECOND),
                "reference": f"00000000-0000-4000-8000-{1000 + 1000 * day + mode.id:012d}",
            }
            for day in range(DAYS)
            for mode in modes
        ]
        for row in rows:
            await tx.write(insert(payments).values(row))
    for _ in range(5):
        await make.payment("pending", 100, DAY)
    owner = await console.joined(OWNER, merchant)
    page = await owner.get(f"/console/{merchant.id}/live?days=30")
    assert page.text.count("<tr>") > DAYS + len(modes)
    assert len(gzip.compress(page.text.encode())) <= 10 * 1024
    assert "style=" not in page.text, "the policy would ignore it"


async def test_who_works_for_several_merchants_or_the_staff_chooses(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    first, second = await console.merchant("Kora"), await console.merchant("Balafon")
    await console.service.ctx.db.write(update(merchants).where(merchants.c.id == second.id).values(status="pending"))
    browser = await console.joined(OWNER, first, "reader")
    assert (await browser.get("/console")).path == f"/console/{first.id}/live"
    await console.invited(OWNER, second, "reader")
    page = await browser.get(await console.last_link())
    await browser.post(page.path, page.forms()[-1].fields)
    browser = console.browser()
    page = await browser.sign_in(OWNER)
    assert (page.status, page.path) == (200, "/console")
    assert f'href="/console/{first.id}/live"' in page.text
    assert f'href="/console/{second.id}/test"' in page.text
    staff = await console.joined("staff@example.com", None, "support")
    assert (await staff.get("/console")).path == "/admin"


@pytest.mark.parametrize(
    ("zone", "instant", "today", "hours_of_today", "exact"),
    [
        ("UTC", "2026-11-23T06:00:00Z", "2026-11-23", 24, True),
        ("Africa/Porto-Novo", "2026-11-22T23:00:00Z", "2026-11-23", 24, True),
        ("Africa/Porto-Novo", "2026-11-22T22:59:59Z", "2026-11-22", 24, True),
        ("Europe/Paris", "2026-10-25T12:00:00Z", "2026-10-25", 25, True),
        ("Europe/Paris", "2026-03-29T12:00:00Z", "2026-03-29", 23, True),
        ("Asia/Beirut", "2026-03-29T12:00:00Z", "2026-03-29", 23, True),
        ("Asia/Kolkata", "2026-11-22T18:30:00Z", "2026-11-23", 24, False),
        ("Asia/Kolkata", "2026-11-22T18:29:59Z", "2026-11-22", 24, False),
    ],
)
def test_days_are_those_of_the_time_zone(zone: str, instant: str, today: str, hours_of_today: int, exact: bool) -> None:
    now = read_date(instant)
    assert now is not None
    days = Days.until(now, ZoneInfo(zone))
    assert days.dates == [date.fromisoformat(today) - timedelta(days=DAYS - 1 - day) for day in range(DAYS)]
    assert days.bounds[-1] - days.bounds[-2] == hours_of_today
    assert len(days.bounds) == 2 * DAYS + 1
    assert days.bounds[-2] <= hour_from(now) <= days.bounds[-1]
    assert days.exact is exact


def test_rates_and_times_are_written_for_people() -> None:
    rates = [rate_text(rate, "fr") for rate in (None, 0.0, 0.00001, 0.5, 0.9755, 0.99999, 1.0)]
    assert rates == ["–", "0\xa0%", "0,1\xa0%", "50\xa0%", "97,6\xa0%", "99,9\xa0%", "100\xa0%"]
    assert rate_text(0.975, "en") == "97.5%"
    times = [time_text(duration) for duration in (None, 0, 12 * SECOND, 125 * SECOND, 3 * HOUR + 7 * MINUTE)]
    assert times == ["–", "1\xa0s", "12\xa0s", "2\xa0min\xa005\xa0s", "3\xa0h\xa007\xa0min"]
    assert Figures(paid=2, amount=100, validation_time=-5).average_time == 0, "a clock was set back"


def test_changes_are_written_for_people() -> None:
    assert [change_text(now, 1000, "fr") for now in (1124, 968, 1000, 0)] == [
        "+12,4\u202f%",
        "\u22123,2\u202f%",
        "0\u202f%",
        "\u2212100\u202f%",
    ]
    assert [change_text(11, before, "fr") for before in (0, 1)] == ["", ""]
    assert change_text(1124, 1000, "en") == "+12.4%"


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    days = [(f"/{day}", f"title {day}", f"{day} nov.") for day in range(DAYS)]
    amounts = [0, 1, 500_000, 1_000_000, *[0] * (DAYS - 4)]
    drawn = chart(days, amounts, [2_000_000] * DAYS, "fr")
    assert [bar.height for bar in drawn.bars[:4]] == [0, 2, 59, 118]
    assert [text for _, text in drawn.lines] == ["0", "10\xa0000", "20\xa0000"]
    assert drawn.bars[-1].left == "96.67"
    assert drawn.before.startswith("1.67,26 5.00,26 ")
    assert [text for _, text in chart(days, [3_500_000_00] * DAYS, amounts, "en").lines] == ["0", "2\xa0M", "4\xa0M"]
    assert [text for _, text in chart(days, [0] * DAYS, [0] * DAYS, "fr").lines] == ["0", "1", "2"]
    assert [share_text(amount, 1000) for amount in (0, 1, 250, 1000)] == ["0", "1", "25", "100"]


async def test_today_is_compared_with_yesterday_until_now(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    make = _Maker(sqlite_console, merchant)
    await make.payment("succeeded", 1500, 0)
    await make.payment("succeeded", 1000, DAY + HOUR)
    await make.payment("succeeded", 7000, DAY - 2 * HOUR)
    owner = await sqlite_console.joined(OWNER, merchant)
    assert "+50 % sur hier , même heure" in _tile(await owner.get(f"/console/{merchant.id}/live"), "Aujourd’hui")


async def test_an_account_without_a_payment_is_shown_its_first_steps(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    owner = await sqlite_console.joined(OWNER, merchant)
    steps = _tile(await owner.get(f"/console/{merchant.id}/live"), "Premiers pas")
    assert "2 sur 5" in steps, "the account is protected and open"
    assert "Essayer la caisse" in steps
    await _Maker(sqlite_console, merchant).payment("pending", 100, 0)
    page = await owner.get(f"/console/{merchant.id}/live")
    assert ("Premiers pas" in page.text, "100 F CFA" in _tile(page, "Derniers paiements")) == (False, True)
