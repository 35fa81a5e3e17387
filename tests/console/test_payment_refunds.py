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
