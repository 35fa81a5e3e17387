"""A payment that its customer disputes with the bank: the pages of the merchant say so, and none offers a refund."""

import re
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from guichet.clock import DAY, later
from guichet.db.tables import disputes, payment_links, payments
from guichet.domain.merchants import Merchant
from tests.console.conftest import ConsoleFixture
from tests.console.pages import Page
from tests.db.rows import DISPUTE, LINK, PAYMENT

OWNER = "awa@example.com"
REFERENCE = PAYMENT["reference"]


async def contested(console: ConsoleFixture, **fields: Any) -> Merchant:
    """A merchant with one live card payment of 5 F, which is disputed."""
    merchant = await console.merchant()
    db, now = console.service.ctx.db, console.service.clock.now()
    row = {**PAYMENT, "merchant_id": merchant.id, "env": "live", "status": "succeeded", "operator": "VISA"}
    await db.write(insert(payments).values(**{**row, "created_at": now, "updated_at": now, "next_poll_at": None}))
    found = await db.one(select(payments.c.id).where(payments.c.merchant_id == merchant.id))
    assert found is not None
    dispute = {**DISPUTE, "merchant_id": merchant.id, "payment_id": found[0], "evidence_due_at": later(now, 5 * DAY)}
    await db.write(insert(disputes).values(**{**dispute, **fields}))
    return merchant


def plain(page: Page) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text))


async def test_an_open_dispute_is_seen_wherever_the_payment_is(console: ConsoleFixture) -> None:
    merchant = await contested(console)
    owner = await console.joined(OWNER, merchant)
    here = f"/console/{merchant.id}/live"
    overview, listed, page = [
        plain(await owner.get(path)) for path in (here, f"{here}/payments", f"{here}/payments/{REFERENCE}")
    ]
    assert "Un client conteste un paiement de" in overview
    assert "Contesté" in listed
    assert "Contesté" in page
    assert "ce qui prouve la vente avant le" in overview
    assert "ce qui prouve la vente avant le" in page
    assert f"{REFERENCE}/refund" not in (await owner.get(f"{here}/payments/{REFERENCE}")).text
    assert "Contesté" not in plain(await owner.get(f"/console/{merchant.id}/test/payments"))
    await console.service.ctx.db.write(update(disputes).values(status="won", closed_at=console.service.clock.now()))
    for path in (here, f"{here}/payments", f"{here}/payments/{REFERENCE}"):
        assert "Contesté" not in plain(await owner.get(path)), path


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "un remboursement le paierait deux fois. Envoyez à l’assistance"),
        ({"status": "prevented", "closed_at": 2, "taken": False}, "Envoyez à l’assistance"),
        ({"status": "lost", "closed_at": 2}, "La banque a déjà rendu l’argent au client"),
    ],
)
async def test_the_page_of_its_refund_says_why_there_is_none(
    console: ConsoleFixture, fields: dict[str, Any], sentence: str
) -> None:
    merchant = await contested(console, **fields)
    owner = await console.joined(OWNER, merchant)
    page = await owner.get(f"/console/{merchant.id}/live/payments/{REFERENCE}/refund")
    assert sentence in plain(page)
    assert "Rembourser" not in [each.strip() for each in re.findall(r"<button[^>]*>([^<]*)", page.text)]


async def test_the_list_of_a_link_and_the_case_of_the_staff_say_so(console: ConsoleFixture) -> None:
    merchant = await contested(console)
    db, now = console.service.ctx.db, console.service.clock.now()
    row = {**LINK, "merchant_id": merchant.id, "created_at": now}
    await db.write(insert(payment_links).values(**row))
    link = await db.one(select(payment_links.c.id).where(payment_links.c.merchant_id == merchant.id))
    assert link is not None
    await db.write(update(payments).where(payments.c.merchant_id == merchant.id).values(link_id=link[0]))
    owner = await console.joined(OWNER, merchant)
    staff = await console.joined("ops@guichet.example", None, "finance")
    in_list = f"/console/{merchant.id}/live/links/{link[0]}"
    case = f"/admin/incidents/{REFERENCE}"
    assert "Contesté" in plain(await owner.get(in_list))
    shown = plain(await staff.get(case))
    assert "Contesté ouvert · répondre avant le" in shown
    await db.write(update(disputes).values(status="lost", closed_at=now, borne_by="merchant"))
    assert "Contesté perdu" in plain(await staff.get(case))
    await db.write(update(disputes).values(status="won", borne_by=None))
    assert "Contesté" not in plain(await staff.get(case))
    assert "Contesté" not in plain(await owner.get(in_list))
