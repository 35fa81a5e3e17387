"""The other pages of the operations: who sees and changes what, and that they show what the commands show."""

import asyncio
import gzip
import re

import pytest
from msgspec.json import encode
from sqlalchemy import insert, update

from guichet.availability import OperatorAvailability, set_availability
from guichet.back_office.merchants import change_status
from guichet.clock import Instant, to_datetime
from guichet.db.engine import require
from guichet.db.tables import reconciliation_runs, webhook_deliveries
from guichet.domain.audit_log import Actor
from guichet.domain.availability import AvailabilityReason
from guichet.domain.messages import verbatim
from guichet.domain.posting_rules import ACTIVE
from guichet.domain.reconciliation import MISSING_THERE, ComparisonNote
from guichet.domain.roles import STAFF_ROLES, may_as_staff
from guichet.ledger import wallets
from guichet.ledger.reconciliation_runs import day_of
from guichet.merchants import repository as merchants
from guichet.merchants.catalogue import Catalogues
from guichet.providers.base import Succeeded
from guichet.webhooks.resend import listed
from tests.console.admin.conftest import csrf_of
from tests.console.admin.operations import Operations, act
from tests.console.conftest import ConsoleFixture
from tests.db.rows import RUN
from tests.fakes.scripted_provider import done

#: Each page with the right to see it; the right to post to it, where that is another one, and a form that does nothing.
PAGES = {
    "/admin/incidents": ("incidents.view", None),
    "/admin/approvals": ("incidents.decide", None),
    "/admin/payments": ("payments.search", "payments.search"),
    "/admin/modes": ("modes.view", "modes.change"),
    "/admin/wallets": ("wallets.view", None),
    "/admin/wallets/1": ("wallets.view", "wallets.change"),
    "/admin/wallets/1/statement": ("wallets.view", None),
    "/admin/wallets/1/close": ("wallets.change", "wallets.change"),
    "/admin/reconciliation": ("reconciliation.view", None),
    "/admin/reconciliation/margin": ("reconciliation.view", "reconciliation.view"),
    "/admin/ledger": ("ledger.audit", "ledger.audit"),
    "/admin/deliveries": ("deliveries.view", "deliveries.resend"),
    "/admin/doctor": ("doctor.view", None),
    "/admin/doctor/providers": ("doctor.view", "doctor.view"),
}


@pytest.mark.parametrize("role", STAFF_ROLES)
async def test_what_each_role_sees_and_changes(sqlite_console: ConsoleFixture, role: str) -> None:
    console = sqlite_console
    await console.merchant()
    browser = await console.joined("awa@example.com", None, role)
    token = await csrf_of(browser)
    for path, (sees, changes) in PAGES.items():
        seen = may_as_staff(role, sees)  # type: ignore[arg-type]
        page = await browser.get(path)
        assert page.status == (200 if seen else 403), (role, path)
        assert len(gzip.compress(page.text.encode())) < 20_000, path
        if changes is not None:
            allowed = may_as_staff(role, changes)  # type: ignore[arg-type]
            status = (await browser.post(path, {"csrf": token, "act": "none"})).status
            assert status in ((200, 422) if allowed else (403,)), (role, path)
    for path in (
        "/admin/payments/9",
        "/admin/wallets/99999999999999999999",
        "/admin/incidents/x",
        "/admin/approvals/9",
    ):
        assert (await browser.get(path)).status in (403, 404), path


async def test_nobody_else_gets_in(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    owner = await console.joined("awa@example.com", await console.merchant())
    token = await csrf_of(owner)
    stranger = console.browser()
    for path, (_, changes) in PAGES.items():
        assert (await owner.get(path)).status == 403
        assert (await stranger.get(path)).path.startswith("/console/sign-in")
        if changes is not None:
            assert (await owner.post(path, {"csrf": token, "act": "open"})).status == 403
            assert (await stranger.post(path, {"act": "open"})).path.startswith("/console/sign-in")


async def test_the_weather_of_operators_and_changing_a_mode_for_everybody(operations: Operations) -> None:
    live = operations.live
    live.first.script("initiate", done)
    await live.merchant.pay()
    ctx = live.ctx
    await ctx.attempts.flush(ctx.db)
    down = OperatorAvailability(
        "mtn",
        "down",
        ctx.clock.now(),
        AvailabilityReason.FAILURES(failures=8, attempts=20, minutes=15),
        "down",
        None,
        None,
        None,
    )
    await set_availability(ctx.db, down)
    admin = await operations.staff(role="admin")
    page = await admin.get("/admin/modes")
    assert "8 demandes sur 20" in page.text
    assert "en panne" in page.text
    assert "de 1 essais sans panne" in page.text
    page = await admin.get("/admin/modes?operator=mtn")
    assert 'value="mtn" selected' in page.text
    typed = {"operator": "mtn", "state": "closed", "percent": "2,5", "fixed": "100"}
    page = await admin.submit("percent", **typed, reason="panne annoncée")
    assert (page.status, "2,5\u00a0% + 100" in page.text, "tous les marchands" in page.text) == (200, True, True)
    page = await admin.submit("before", confirm="")
    assert (page.status, "cochez la confirmation" in page.text) == (422, True)
    assert await operations.acts("mode.changed") == []
    page = await admin.submit("before", confirm="yes")
    assert (page.status, "2,5\u00a0% + 100" in page.text, "fermé" in page.text) == (200, True, True)
    for whose in (None, live.merchant.id):
        mode = require((await Catalogues(ctx.db, ctx.clock, ctx.catalogues.base).of(whose)).by_operator("mtn"))
        assert (mode.active, mode.fee_percent, mode.fee_fixed) == (False, 25_000, 100_00)
    ((_, actor, subject, after),) = await operations.acts("mode.changed")
    given = {"active": False, "fee_percent": 25_000, "fee_fixed": 100_00}
    assert (actor, subject, after) == ("awa@example.com", "mtn", given)
    for wrong in ({"operator": "nobody"}, {"reason": ""}, {"percent": "101"}):
        page = await act(admin, "/admin/modes", **{**typed, "reason": "x", **wrong})
        assert (page.status, 'value="100"' in page.text) == (422, True)


@pytest.mark.both_databases
async def test_a_wallet_is_frozen_at_once_and_reopened_by_two(operations: Operations) -> None:
    ctx, merchant = operations.live.ctx, operations.live.merchant.id
    awa, zoe = await operations.staff(), await operations.staff("zoe@example.com", "admin")
    path = f"/admin/wallets/{merchant}"
    assert (await awa.get(f"/admin/wallets?merchant={merchant}")).path == path
    wrong = await awa.get("/admin/wallets?merchant=abc")
    assert (wrong.status, 'value="abc"' in wrong.text, "pas un numéro de marchand" in wrong.text) == (422, True, True)
    await change_status(ctx.db, ctx.clock, merchant, "EUR", "Fermé", Actor("Root", "root"), "test")
    for _ in range(2):  # Sent again, as after a lost answer.
        page = await act(awa, path, currency="XOF", status="Gelé", reason="fraude signalée")
        assert page.path == path
    frozen = [each for each in await operations.acts("wallet.status_changed") if each[3]["status"] == "Gelé"]
    assert len(frozen) == 1
    assert await wallets.wallet_status(ctx.db, merchant, "live", "XOF") == "Gelé"
    assert f"/admin/wallets/{merchant}" in (await awa.get("/admin/wallets")).text
    page = await act(awa, path, currency="XOF", status=ACTIVE, reason="enquête close")
    assert page.path == "/admin/approvals/1"
    assert await wallets.wallet_status(ctx.db, merchant, "live", "XOF") == "Gelé"
    await act(zoe, "/admin/approvals/1", act="approve", reason="oui")
    assert await wallets.wallet_status(ctx.db, merchant, "live", "XOF") == ACTIVE
    assert await wallets.wallet_status(ctx.db, merchant, "live", "EUR") == "Fermé"
    assert (await act(awa, path, currency="XOF", status=ACTIVE, reason="encore")).status == 409
    assert (await act(awa, path, currency="XOF", status="Gelé", reason="")).status == 422


async def test_closing_a_wallet_is_a_step_of_its_own(operations: Operations) -> None:
    live, merchant = operations.live, operations.live.merchant.id
    live.first.script("initiate", done)
    await live.merchant.pay()
    awa = await operations.staff()
    path = f"/admin/wallets/{merchant}"
    page = await awa.get(path)
    assert 'value="Fermé"' not in page.text, "no choice beside freezing"
    assert (await act(awa, path, currency="XOF", status="Fermé", reason="slip")).status == 422
    close = f"{path}/close?currency=XOF"
    assert f'href="{close}"' in page.text
    page = await awa.get(close)
    assert ("5\u202f000\u00a0XOF" in page.text, "sont refusés" in page.text) == (True, True)
    assert (await act(awa, close, reason="")).status == 422
    assert await wallets.wallet_status(live.ctx.db, merchant, "live", "XOF") == ACTIVE
    assert (await act(awa, close, reason="contrat résilié")).path == path
    assert await wallets.wallet_status(live.ctx.db, merchant, "live", "XOF") == "Fermé"
    assert (await awa.get(close)).status == 404


async def test_another_currency_is_said_in_words_and_codes(sqlite_operations: Operations) -> None:
    live = sqlite_operations.live
    live.first.script("status", lambda charge: Succeeded(charge.amount, "XAF"))
    await live.merchant.pay()
    await live.service.run_worker(60)
    page = await (await sqlite_operations.staff()).get("/admin/incidents")
    said = "Devise différente\u00a0: 5\u202f088\u00a0XOF demandés, le prestataire indique 5\u202f088\u00a0XAF"
    assert said in page.text


async def test_the_statement_of_a_wallet_shows_the_movements_that_its_merchant_sees(operations: Operations) -> None:
    live, merchant = operations.live, operations.live.merchant.id
    live.first.script("initiate", done)
    paid = await live.merchant.pay()
    finance = await operations.staff()
    page = await finance.get(f"/admin/wallets/{merchant}")
    [link] = re.findall(rf'href="(/admin/wallets/{merchant}/statement[^"]*env=live[^"]*currency=XOF)"', page.text)
    owner = await operations.console.joined("ada@example.com", require(await merchants.get(live.ctx.db, merchant)))
    own = (await owner.get(f"/console/{merchant}/live/balance")).text
    page = await finance.get(link.replace("&amp;", "&"))
    shown, seen = (re.findall(r'data-label="(?:Montant|Solde après)">([^<]+)<', each) for each in (page.text, own))
    assert (shown, len(seen)) == (seen, 2)
    assert paid["reference"] in page.text
    month = to_datetime(live.ctx.clock.now()).strftime("%Y-%m")
    document = await finance.get(f"{page.path.replace('&amp;', '&')}&month={month}")
    assert document.content.startswith(b"%PDF-")
    assert document.headers["Content-Disposition"].endswith(f'-live-{month}-xof.pdf"')
    reads = [each[1:] for each in await operations.acts("wallet.viewed")]
    assert reads[-1] == ("awa@example.com", str(merchant), {"env": "live", "currency": "XOF", "month": month})
    assert reads[-2] == ("awa@example.com", str(merchant), {"env": "live", "currency": "XOF"})


async def test_an_audit_is_started_once_and_shows_its_result(operations: Operations) -> None:
    ctx = operations.live.ctx
    browser = await operations.staff(role="auditor")
    page = await act(browser, "/admin/ledger")
    assert "L’audit est lancé" in page.text or "sans anomalie" in page.text, "it may be over already"
    await asyncio.gather(*ctx.ledger_audits)
    page = await browser.get(browser.page.path)
    assert ("sans anomalie" in page.text, "revenez" in page.text) == (True, False), "it is over"
    assert "attendez son résultat" in (await act(browser, "/admin/ledger")).text
    assert len(await operations.acts("ledger.audit_started")) == 1


@pytest.mark.both_databases
async def test_a_failed_delivery_is_found_and_sent_again(operations: Operations) -> None:
    live = operations.live
    live.first.script("status", done)
    await live.merchant.pay()
    await live.service.run_worker(60)
    given_up = update(webhook_deliveries).values(status="failed", attempts=5, next_attempt_at=None, error="tls_failed")
    await live.ctx.db.write(given_up)
    support = await operations.staff(role="support")
    page = await support.get("/admin/deliveries?status=failed")
    reference = page.text.partition("/admin/deliveries/")[2].partition('"')[0]
    page = await support.get(f"/admin/deliveries/{reference}")
    assert "tls_failed" not in page.text
    assert "le certificat du serveur du marchand n’est pas valable" in page.text
    page = await support.post(page.path, {"csrf": page.forms()[-1].fields["csrf"]})
    assert (page.status, "en cours" in page.text) == (200, True)
    assert [each[1] for each in await operations.acts("delivery.resent")] == ["awa@example.com"]
    refused = await support.post(page.path, {"csrf": page.form("csrf").fields["csrf"]})
    assert (refused.status, "<p>Cet envoi est encore en cours.</p>" in refused.text) == (409, True)
    wrong = await support.get("/admin/deliveries?merchant=x&status=y")
    assert (wrong.status, "pas un numéro de marchand" in wrong.text, reference in wrong.text) == (422, True, False)
    assert (await support.get("/admin/deliveries?merchant=&status=failed")).status == 200
    reads = await operations.acts("delivery.viewed")
    assert {(each[1], each[2]) for each in reads} == {("awa@example.com", reference)}


@pytest.mark.both_databases
async def test_all_that_failed_of_a_merchant_is_sent_again(operations: Operations) -> None:
    live = operations.live
    live.first.script("status", done)
    other = await live.service.merchant("Balafon")
    for _ in range(2):
        await live.merchant.pay()
    await live.service.run_worker(60)
    ctx, mine = live.ctx, live.merchant.id
    given_up = update(webhook_deliveries).values(status="failed", attempts=5, next_attempt_at=None)
    await ctx.db.write(given_up)
    failed = len(await listed(ctx.db, mine, Instant(0), "failed"))
    assert failed > 1
    support, auditor = await operations.staff(role="support"), await operations.staff("zoe@example.com", "auditor")
    assert 'name="since"' not in (await support.get("/admin/deliveries")).text, "of no merchant"
    path = f"/admin/deliveries?merchant={mine}"
    assert 'name="since"' not in (await auditor.get(path)).text
    await support.get(path)
    for wrong in ({"since": "century"}, {"since": "day", "merchant": "987654321"}, {"since": "day", "merchant": "x"}):
        assert (await support.submit("merchant", "csrf", **wrong)).status == 422, wrong
        await support.get(path)
    await support.submit("merchant", "csrf", merchant=str(other.id), since="week")
    assert len(await listed(ctx.db, mine, Instant(0), "failed")) == failed, "another merchant's"
    await support.get(path)
    page = await support.submit("merchant", "csrf", since="day")
    assert f"remis en file\u00a0: {failed}." in page.text
    assert await listed(ctx.db, mine, Instant(0), "failed") == []
    assert {each[1:3] for each in await operations.acts("deliveries.resent")} == {("awa@example.com", str(mine))}


async def test_a_comparison_says_its_day_its_state_and_what_differs(sqlite_console: ConsoleFixture) -> None:
    db, now = sqlite_console.service.ctx.db, sqlite_console.service.clock.now()
    ours = {"reference": "r", "status": "refunded", "amount": 200000, "currency": "XOF"}
    theirs = {"references": ["t"], "status": "failed", "amount": 12.5, "currency": "GHS"}
    noted = [
        (ComparisonNote.NOT_THERE(), "absent chez le prestataire"),
        (ComparisonNote.STATUS_HERE(status="refunded"), "remboursé chez nous"),
        (ComparisonNote.CURRENCIES(theirs="GHS", ours="XOF"), "GHS chez le prestataire, XOF chez nous"),
        (verbatim("odd <there>"), "&lt;there&gt;"),
    ]
    difference: list[dict[str, object]] = [
        {"result": MISSING_THERE, "note": note, "ours": ours, "theirs": theirs} for note, _ in noted
    ]
    difference.append({"result": MISSING_THERE, "note": None, "ours": None, "theirs": {**theirs, "amount": None}})
    ended = {"finished_at": now, "differences": 1, "lines": 1, "found": encode(difference).decode()}
    for account, more in (("mtn_benin", ended), ("wave_senegal", {})):
        await db.write(
            insert(reconciliation_runs).values(**RUN | {"day": day_of(now), "provider_account": account} | more)
        )
    finance = await sqlite_console.joined("awa@example.com", None, "finance")
    page = await finance.get("/admin/reconciliation")
    assert page.text.count("lignes conformes") == 1, "of the one that was compared"
    ended_page = await finance.get(re.findall(r'href="([^"]+/mtn_benin)"', page.text)[0])
    assert "Mouvement chez nous, absent chez le prestataire" in ended_page.text
    assert "écarts\u00a0: 1" in ended_page.text
    assert [text for _, text in noted if text not in ended_page.text] == []
    assert '<span lang="en">odd &lt;there&gt;</span>' in ended_page.text, "what no version of ours wrote"
    assert "<br>remboursé · 200\u202f000\u00a0XOF</span>" in ended_page.text
    assert '<span class="mono-text">t</span><br>échoué · 12,5\u00a0GHS<' in ended_page.text
    assert '<span class="mono-text">t</span><br>échoué<' in ended_page.text, "a statement without amounts"
    waiting = await finance.get(re.findall(r'href="([^"]+/wave_senegal)"', page.text)[0])
    assert re.search(r"<h1>wave_senegal · \d+ \w+ 20\d\d</h1>", waiting.text)
    assert ">en attente<" in waiting.text


async def test_the_doctor_says_what_the_command_says(operations: Operations) -> None:
    await operations.live.merchant.report_mismatch("01a202b1-10b7-453a-868b-cad7dfa87efe")
    page = await (await operations.staff(role="support")).get("/admin/doctor")
    assert "1 × Montant différent, le plus ancien depuis 1 minute" in page.text
    assert "Ouvrez la page des incidents" in page.text
    assert "operations.check" not in page.text
    assert "Not all checks" not in page.text
