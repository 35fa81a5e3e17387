"""/admin/treasury: where our own money is, and what people record of it."""

import pytest

from guichet.domain.money import Hundredths
from guichet.providers.capabilities import FloatBalance
from guichet.treasury import repository
from guichet.treasury.differences import compare
from tests.console.admin.operations import Operations, act
from tests.payments.test_refunds import paid

PAGE = "/admin/treasury"


async def test_the_page_shows_where_the_money_is_and_whose(sqlite_operations: Operations) -> None:
    await paid(sqlite_operations.live)
    auditor = await sqlite_operations.staff(role="auditor")
    text = (await auditor.get(PAGE)).text.replace("\u202f", " ").replace("\xa0", " ")
    for shown in ("5 088 XOF", "first", "Dû aux marchands", "5 000 XOF", "88 XOF"):
        assert shown in text
    file = (await auditor.get(f"{PAGE}/places.csv")).text
    assert "XOF;wallet;first;;5088,00;;;" in file
    assert "XOF;owed;;;5000,00;;;" in file
    assert (await auditor.get(f"{PAGE}/other.csv")).status == 404
    assert not auditor.page.text.count('name="reference"')


@pytest.mark.both_databases
async def test_a_movement_is_asked_for_approved_shown_and_ended(operations: Operations) -> None:
    awa, zoe = await operations.staff("awa@example.com"), await operations.staff("zoe@example.com")
    await awa.get(PAGE)
    typed = {"kind": "transfer", "source": "first", "to": "bank:eco", "amount": "1 000", "currency": "XOF"}
    page = await awa.submit("source", **typed, announced="yes", reason="ordre 12")
    assert page.path.startswith("/admin/approvals/")
    assert await repository.latest(operations.live.ctx.db) == []
    for shown in ("<dt>De</dt><dd>first</dd>", "<dt>Vers</dt><dd>bank:eco</dd>", "Transfert", "1\u202f000"):
        assert shown in page.text
    await act(zoe, page.path, act="approve", reason="vu")
    [movement] = await repository.latest(operations.live.ctx.db)
    assert (movement.kind, movement.amount, movement.status) == ("transfer", 1000_00, "announced")
    page = await awa.get(PAGE)
    assert '<td data-label="De">float:first::XOF</td><td data-label="Vers">bank:eco:XOF</td>' in page.text
    await act(awa, PAGE, reference=movement.reference, end="posted", reason="relevé")
    [movement] = await repository.latest(operations.live.ctx.db)
    assert movement.status == "posted"
    assert "bank:eco:XOF;posted" in (await awa.get(f"{PAGE}/movements.csv")).text
    assert [each[0] for each in await operations.acts("treasury.recorded", "treasury.ended")] == [
        "treasury.recorded",
        "treasury.ended",
    ]


async def test_a_wallet_in_which_nothing_was_posted_shows_what_was_stated(sqlite_operations: Operations) -> None:
    live = sqlite_operations.live
    await compare(live.ctx, "first", live.first, [FloatBalance("", Hundredths(7_00), "XOF")], {})
    auditor = await sqlite_operations.staff(role="auditor")
    assert "7 XOF d’écart" in (await auditor.get(PAGE)).text.replace("\xa0", " ")
    assert "XOF;wallet;first;;0,00;7,00;7,00;" in (await auditor.get(f"{PAGE}/places.csv")).text


async def test_what_is_no_movement_is_said(sqlite_operations: Operations) -> None:
    awa = await sqlite_operations.staff("awa@example.com")
    for wrong in ({"amount": "much"}, {"to": "nowhere"}, {"reason": ""}, {"kind": "opening"}):
        await awa.get(PAGE)
        typed = {
            "kind": "transfer",
            "source": "first",
            "to": "bank:eco",
            "amount": "5",
            "currency": "XOF",
            "announced": "",
        }
        page = await awa.submit("source", **{"reason": "ordre", **typed, **wrong})
        assert page.path == PAGE
        assert "fault" in page.text or "error" in page.text
    assert await repository.latest(sqlite_operations.live.ctx.db) == []
