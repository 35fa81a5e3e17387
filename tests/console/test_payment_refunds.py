"""The refund button: who may press it, what it asks first, and each refusal in words."""

from collections.abc import AsyncIterator

import pytest

from guichet.audit_log import entries as audit_log
from guichet.clock import SECOND
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import FROZEN, WALLET, Movement, Posting
from guichet.domain.roles import MERCHANT_ROLES, MerchantRole, may_as_merchant
from guichet.ledger import postings
from guichet.settings import Settings
from tests.console.conftest import ConsoleFixture
from tests.console.test_payments import merchant_of, opened
from tests.fakes.scripted_provider import done
from tests.payments.conftest import LivePayments, live_payments
from tests.payments.test_refunds import paid


@pytest.fixture
async def live(sqlite_settings: Settings) -> AsyncIterator[LivePayments]:
    async for each in live_payments(sqlite_settings):
        yield each


async def test_a_refund_is_explained_asked_for_once_and_recorded(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console, "finance")
    payment = await client.pay("0000")
    await console.service.run_worker()
    page = await browser.get(f"{path}/{payment['reference']}")
    assert f"{page.path}/refund" in page.text
    page = await browser.get(f"{page.path}/refund")
    assert "Le client reçoit" in page.text
    form = {**page.form("reason").fields, "reason": " Article  indisponible "}
    page = await browser.post(page.path, form)
    assert page.path == f"{path}/{payment['reference']}", "the browser is sent to the payment"
    assert "Remboursé" in page.text
    assert "Par awa@example.com" in page.text
    assert "Article indisponible" in page.text
    assert f"{page.path}/refund" not in page.text
    page = await browser.post(f"{page.path}/refund", form)
    assert (page.status, page.path) == (200, f"{path}/{payment['reference']}"), "a second click is harmless"
    [refund] = (await client.get("/refunds")).data
    [act] = [act for act in await audit_log.latest(console.service.ctx.db) if act.action == "refund.requested"]
    assert (act.actor, act.os_user, act.subject, act.merchant_id) == (
        "awa@example.com",
        "console",
        refund["reference"],
        client.id,
    )
    page = await browser.get(f"{path}/{payment['reference']}/refund")
    assert "a déjà fait l’objet d’un remboursement" in page.text


@pytest.mark.parametrize("role", MERCHANT_ROLES)
async def test_who_may_refund(sqlite_console: ConsoleFixture, role: MerchantRole) -> None:
    client, browser, path = await opened(sqlite_console, role)
    payment = await client.pay("0000")
    await sqlite_console.service.run_worker()
    csrf = {"csrf": (await browser.get(path)).form("csrf").fields["csrf"]}
    for env in ("live", "test"):
        address = f"{path.replace('test', env)}/{payment['reference']}/refund"
        statuses = {(await browser.get(address)).status, (await browser.post(address, csrf)).status}
        allowed = {404} if env == "live" else {200}
        assert statuses == (allowed if may_as_merchant(role, "payments.refund", env) else {403})
    refunded = (await client.get(f"/payments/{payment['reference']}")).data["status"] == "refunded"
    assert refunded is may_as_merchant(role, "payments.refund", "test")


async def test_a_long_reason_and_a_pending_payment_are_refused(sqlite_console: ConsoleFixture) -> None:
    client, browser, path = await opened(sqlite_console)
    payment = await client.pay("0000")
    await sqlite_console.service.run_worker()
    await browser.get(f"{path}/{payment['reference']}/refund")
    page = await browser.submit("reason", reason="x" * 256)
    assert page.status == 422
    assert "plus de 255 caractères" in page.text
    assert "x" * 256 in page.text
    forged = await browser.post(page.path, {"reason": "x"})
    assert forged.status == 403, "without the token of the form"
    waiting = await client.pay("1234")
    page = await browser.get(f"{path}/{waiting['reference']}/refund")
    assert "Seul un paiement réussi" in page.text
    csrf = {"csrf": page.form("csrf").fields["csrf"]}
    assert (await browser.post(page.path, csrf)).status == 409


async def test_a_live_refund_needs_a_fresh_factor_an_open_wallet_and_its_money(live: LivePayments) -> None:
    console = ConsoleFixture(live.service)
    live.first.script("refund", done)
    payment = await paid(live)
    browser = await console.joined("awa@example.com", await merchant_of(console, live.merchant))
    path = f"/console/{live.merchant.id}/live/payments/{payment['reference']}/refund"
    form = (await browser.get(path)).form("reason").fields
    live.service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    for page in (await browser.get(path), await browser.post(path, form)):
        assert page.path.startswith("/console/factor?next=")
    assert (await live.merchant.get("/refunds")).data == []
    # The factor that the session had is a few minutes old again.
    live.service.clock.advance(-(STEP_UP_LASTS / SECOND + 1))
    await live.set_wallet(FROZEN)
    page = await browser.post(path, form)
    assert page.status == 409
    assert "solde est bloqué" in page.text
    await live.set_wallet()
    away = [Posting("amount", WALLET, "payout", Hundredths(1))]
    now = live.ctx.clock.now()
    async with live.ctx.db.transaction() as tx:
        await postings.post(tx, [Movement(live.merchant.id, "live", "XOF", "test.payout", 1, away, now)])
    page = await browser.post(path, form)
    assert page.status == 409
    assert "ne couvre pas" in page.text
    assert (await live.merchant.get("/refunds")).data == [], "the one refund of the payment is not spent"
    back = [Posting("amount", "payout", WALLET, Hundredths(1))]
    async with live.ctx.db.transaction() as tx:
        await postings.post(tx, [Movement(live.merchant.id, "live", "XOF", "test.payout", 2, back, now)])
    page = await browser.post(path, form)
    assert "Un remboursement est en cours" in page.text
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "refunded"


async def test_a_live_proposal_is_seen_confirmed_with_the_factor_and_told(live: LivePayments) -> None:
    """The page is that of every refund, with what the program said; the program reads what became of it."""
    console = ConsoleFixture(live.service)
    live.first.script("refund", done)
    payment = await paid(live)
    at = f"/payments/{payment['reference']}/refund-proposal"
    await live.merchant.post(at, {"reason": 'Article "perdu" <b>'})
    browser = await console.joined("awa@example.com", await merchant_of(console, live.merchant))
    root = f"/console/{live.merchant.id}/live"
    overview = await browser.get(root)
    assert "à confirmer\u00a0: 1." in overview.text
    assert f"{root}/refund-proposals" in overview.text
    path = f"{root}/payments/{payment['reference']}/refund"
    page = await browser.get(f"{root}/refund-proposals")
    assert f'href="{path}"' in page.text
    live.service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    for act in ({}, {"act": "decline"}):
        refused = await browser.post(path, {"csrf": overview.form("csrf").fields["csrf"], **act})
        assert refused.path.startswith("/console/factor?next=")
    assert (await live.merchant.get(at)).data["status"] == "open"
    live.service.clock.advance(-(STEP_UP_LASTS / SECOND + 1))
    page = await browser.get(f"/console/refund/{payment['reference']}")
    assert page.path == path
    assert "Article &#34;perdu&#34; &lt;b&gt;" in page.text
    form = page.form("reason").fields
    assert form["reason"] == 'Article "perdu" <b>'
    await browser.post(path, form)
    [refund] = (await live.merchant.get("/refunds")).data
    confirmed = (await live.merchant.get(at)).data
    assert (confirmed["status"], confirmed["refund_reference"]) == ("confirmed", refund["reference"])
    assert "Rien à décider" in (await browser.get(f"{root}/refund-proposals")).text
    activity = (await browser.get(f"{root}/activity?by=keys&act=refund.proposed")).text
    assert payment["reference"] in activity


@pytest.mark.both_databases
async def test_a_proposal_is_declined_once_and_stays_so(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console, "finance")
    payment = await client.pay("0000")
    await console.service.run_worker()
    at = f"/payments/{payment['reference']}/refund-proposal"
    asked = (await client.post(at)).data
    page = await browser.get(f"{path}/{payment['reference']}/refund")
    form = {"csrf": page.form("reason").fields["csrf"], "act": "decline"}
    page = await browser.post(page.path, form)
    assert (page.path, "déclinée" in page.text) == (f"{path}/{payment['reference']}", True)
    page = await browser.post(f"{page.path}/refund", form)
    assert (page.status, "déclinée" in page.text) == (200, False), "a second click is harmless"
    assert (await client.post(at)).data == asked | {"status": "declined"}, "a program in a loop asks once"
    [act] = [each for each in await audit_log.latest(console.service.ctx.db) if each.action == "refund.declined"]
    assert (act.actor, act.subject, act.merchant_id) == ("awa@example.com", payment["reference"], client.id)
    assert (await client.get("/refunds")).data == []
    page = await browser.get(f"{path}/{payment['reference']}/refund")
    await browser.post(page.path, page.form("reason").fields)
    assert len((await client.get("/refunds")).data) == 1, "a person may still refund"
    assert (await client.get(at)).data["status"] == "declined"


async def test_a_refund_page_of_somebody_else_is_not_found(sqlite_console: ConsoleFixture) -> None:
    client, _, _ = await opened(sqlite_console)
    payment = await client.pay("0000")
    other = await sqlite_console.service.merchant("Autre")
    stranger = await sqlite_console.joined("paul@example.com", await merchant_of(sqlite_console, other), "owner")
    for reference in (payment["reference"], "00000000-0000-4000-8000-000000000000", "x"):
        assert (await stranger.get(f"/console/refund/{reference}")).status == 404
