"""Acts that move money: one person asks, another one approves, and the act is done once."""

import asyncio

import pytest
from msgspec import structs

from guichet.accounts import approvals, people, users
from guichet.clock import DAY, SECOND, earlier
from guichet.db.engine import require
from guichet.disputes import disputes
from guichet.disputes import repository as dispute_repository
from guichet.domain.accounts import STEP_UP_LASTS, User
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import Actor
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import ACTIVE
from guichet.ledger import wallets
from guichet.mail.messages import text_of
from guichet.mail.outbox import Outbox
from guichet.providers.base import Refused
from guichet.providers.capabilities import DisputeFacts
from tests.console.admin.operations import Operations, act
from tests.fakes.scripted_provider import done
from tests.payments.conftest import stored
from tests.payments.test_empty_float import open_kinds
from tests.payments.test_late_results import accounts, found_late
from tests.payments.test_manual_settlement import stuck
from tests.payments.test_payee import open_incidents, row, waiting_refund

SETTLE = {"act": "settle", "outcome": "succeeded", "reason": "relevé du 3 mai"}
SETTLED = ActRequest("payment.settle", "", {"succeeded": True, "override": False}, "relevé")
ZOE = "zoe@example.com"


@pytest.mark.both_databases
async def test_one_asks_another_approves_and_the_money_moves_once(operations: Operations) -> None:
    live = operations.live
    payment = await stuck(live)
    awa, zoe = await operations.staff(), await operations.staff(ZOE, "admin")
    page = await act(awa, f"/admin/incidents/{payment.reference}", **SETTLE)
    assert page.path == "/admin/approvals/1"
    assert await live.state(payment.reference) == "pending"
    assert "une autre personne doit l’approuver" in page.text
    assert 'value="approve"' not in page.text
    own = {**page.form("csrf", "reason").fields, "act": "approve", "reason": "oui"}
    assert (await awa.post(page.path, own)).status == 409
    assert await live.state(payment.reference) == "pending"
    # A second request about the same payment would be contrary, or do it twice.
    again = await awa.post(f"/admin/incidents/{payment.reference}", {**page.form("csrf", "reason").fields, **SETTLE})
    assert (again.status, "attend déjà" in again.text) == (409, True)

    assert "<p>1 en attente</p>" in (await zoe.get("/admin")).text
    for path in ("/admin/approvals", "/admin/approvals/1"):
        page = await zoe.get(path)
        for link in (f"incidents/{payment.reference}", f"merchants/{live.merchant.id}"):
            assert f'href="/admin/{link}"' in page.text, path
        assert "5\u202f000\u00a0XOF" in page.text
        assert "awa@example.com" in page.text
    assert "5\u202f000\u00a0XOF sont crédités à M1, qui reçoit le webhook." in page.text
    page = await act(zoe, "/admin/approvals/1", act="approve", reason="vérifié avec MTN")
    assert (page.status, await operations.status()) == (200, "approved")
    assert await live.balance() == 5000
    assert await open_kinds(live) == []
    assert await live.queued_events() == ["payment.succeeded"]
    fields = {"csrf": (await zoe.get("/admin/approvals")).form("csrf").fields["csrf"], "act": "approve", "reason": "x"}
    assert (await zoe.post("/admin/approvals/1", fields)).status == 409
    assert await live.balance() == 5000
    requested, approved, settled = await operations.acts("approval.requested", "approval.approved", "payment.settled")
    assert (requested[1], requested[2]) == ("awa@example.com", payment.reference)
    assert (approved[1], approved[2]) == (ZOE, payment.reference)
    assert (settled[1], settled[3]["approved_by"], settled[3]["approval"]) == ("awa@example.com", ZOE, 1)


async def test_an_account_that_is_new_in_the_staff_approves_nothing(operations: Operations) -> None:
    """One admin alone makes a second account, and every other admin hears of it before it can approve."""
    live, console = operations.live, operations.console
    payment = await stuck(live)
    admin = await operations.staff("admin@example.com", "admin")
    await operations.staff("other@example.com", "admin")
    second = await operations.staff(ZOE, "finance", new=True)
    told = [mail.recipient for mail in await console.mails() if mail.kind == "staff_changed"]
    assert sorted(told[:2]) == ["admin@example.com", "other@example.com"]
    await act(admin, f"/admin/incidents/{payment.reference}", **SETTLE)
    page = await second.get("/admin/approvals/1")
    assert ('value="approve"' in page.text, 'value="refuse"' in page.text, "moins de 24 heures" in page.text) == (
        False,
        True,
        True,
    )
    page = await act(second, "/admin/approvals/1", act="approve", reason="oui")
    assert (page.status, "a ce rôle depuis moins de 24 heures" in page.text) == (409, True)
    assert await live.state(payment.reference) == "pending"

    now, db = live.ctx.clock.now(), live.ctx.db
    await operations.in_staff_since(ZOE, earlier(now, DAY))
    zoe = require(await users.by_email(db, ZOE))
    assert not await _too_new(operations, zoe)
    assert 'value="approve"' in (await second.get("/admin/approvals/1")).text
    who, outbox = Actor("admin@example.com", "console"), Outbox(live.ctx.vault)
    async with db.transaction() as tx:
        await people.set_staff_role(tx, outbox, zoe, "admin", who, now)
    promoted = require(await users.by_email(db, ZOE))
    assert await _too_new(operations, promoted), "a role that is new"
    await operations.in_staff_since(ZOE, earlier(now, DAY))
    async with db.transaction() as tx:
        disabled = await people.disable(tx, outbox, promoted, who, now)
        enabled = await people.enable(tx, outbox, disabled, who, now)
    assert await _too_new(operations, enabled), "enabled again"
    told = [mail.recipient for mail in await console.mails() if mail.kind == "staff_changed"][:4]
    assert sorted(told) == ["admin@example.com", "admin@example.com", "other@example.com", "other@example.com"]


async def _too_new(operations: Operations, user: User) -> bool:
    ctx = operations.live.ctx
    now = ctx.clock.now()
    begins = await approvals.may_approve_from(ctx.db, "payment.settle", user, now)
    return bool(now < begins)


async def test_two_approvals_at_the_same_time_do_it_once(operations: Operations) -> None:
    payment, _ = await found_late(operations.live)
    awa = await operations.staff()
    others = [await operations.staff(f"{name}@example.com") for name in ("zoe", "ada", "eve")]
    await act(awa, f"/admin/incidents/{payment.reference}", act="late", to="wallet", reason="relevé")
    tokens = [(await each.get("/admin/approvals/1")).form("csrf", "reason").fields for each in others]
    posts = [
        each.post("/admin/approvals/1", {**fields, "act": "approve", "reason": "oui"})
        for each, fields in zip(others, tokens, strict=True)
    ]
    assert sorted(page.status for page in await asyncio.gather(*posts)) == [200, 409, 409]
    assert await operations.live.balance() == 5000
    assert len(await operations.acts("approval.approved")) == 1
    assert (await accounts(operations.live))["wallet"] == 5000_00


async def test_a_request_is_refused_or_expires_and_then_nothing_is_done(operations: Operations) -> None:
    live = operations.live
    payment = await stuck(live)
    awa, zoe = await operations.staff(), await operations.staff(ZOE)
    case = f"/admin/incidents/{payment.reference}"

    async def expired() -> list[str]:
        return [mail.recipient for mail in await operations.console.mails() if mail.kind == "approval_expired"]

    await act(awa, case, **SETTLE)
    await act(zoe, "/admin/approvals/1", act="refuse", reason="le relevé dit le contraire")
    assert await operations.status() == "refused"
    page = await zoe.get("/admin/approvals/1")
    assert "le relevé dit le contraire" in page.text
    assert 'value="approve"' not in page.text
    await act(awa, case, **SETTLE)
    await act(awa, "/admin/approvals/2", act="refuse", reason="je me suis trompée")
    assert await operations.status(2) == "refused", "who asked takes it back"
    await act(awa, case, **SETTLE)
    live.service.clock.advance(24 * 3600)
    await zoe.sign_in(ZOE)
    assert await operations.status(3) == "expired"
    [housekeeping] = [loop for loop in live.service.worker.loops if loop.name == "housekeeping"]
    for _ in range(2):
        await housekeeping.step()
        live.service.clock.advance(60)
    assert await expired() == ["awa@example.com"], "told once"
    ada = await operations.staff("ada@example.com")
    page = await ada.get("/admin/approvals/3")
    assert 'value="approve"' not in page.text
    token = (await ada.get("/admin/approvals")).form("csrf").fields["csrf"]
    page = await ada.post("/admin/approvals/3", {"csrf": token, "act": "approve", "reason": "oui"})
    assert (page.status, "La demande n° 3 est expirée." in page.text) == (409, True)
    # The place is free again.
    assert (await act(ada, case, **SETTLE)).path == "/admin/approvals/4"
    assert await live.state(payment.reference) == "pending"
    assert len(await operations.acts("approval.refused")) == 2
    # Whoever asks for the same before a worker looked ends it, too.
    live.service.clock.advance(24 * 3600)
    requester = require(await users.by_email(live.ctx.db, ZOE))
    await approvals.ask(live.ctx, structs.replace(SETTLED, subject=payment.reference), requester, "zoe")
    await housekeeping.step()
    assert await expired() == ["ada@example.com", "awa@example.com"]


async def test_the_provider_is_asked_when_it_is_approved(sqlite_operations: Operations) -> None:
    """What its explicit answer refuses leaves the request waiting; an override of two people does it."""
    operations, live = sqlite_operations, sqlite_operations.live
    payment = await stuck(live, Refused("expired"))
    awa, zoe = await operations.staff(), await operations.staff(ZOE)
    await act(awa, f"/admin/incidents/{payment.reference}", **SETTLE)
    page = await act(zoe, "/admin/approvals/1", act="approve", reason="oui")
    assert (page.status, "\u00a0: échoué. Cela ne peut pas" in page.text) == (409, True)
    assert await operations.status() == "pending"
    await act(zoe, "/admin/approvals/1", act="refuse", reason="avec --override")
    await act(awa, f"/admin/incidents/{payment.reference}", **SETTLE, override="yes")
    await act(zoe, "/admin/approvals/2", act="approve", reason="oui")
    assert await live.state(payment.reference) == "succeeded"
    assert (await accounts(live))["manual_settlement"] == -5088_00


async def test_who_may_not_ask_any_more_cannot_be_approved(sqlite_operations: Operations) -> None:
    operations, live = sqlite_operations, sqlite_operations.live
    payment = await stuck(live)
    awa, zoe = await operations.staff(), await operations.staff(ZOE)
    await act(awa, f"/admin/incidents/{payment.reference}", **SETTLE)
    requester = require(await users.by_email(live.ctx.db, "awa@example.com"))
    await users.set_staff_role(live.ctx.db, requester.id, "support", live.ctx.clock.now())
    page = await act(zoe, "/admin/approvals/1", act="approve", reason="oui")
    assert (page.status, "n’a plus le droit de le demander" in page.text) == (409, True)
    assert await live.state(payment.reference) == "pending"


async def test_nobody_asks_when_nobody_else_could_approve(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    payment = await stuck(operations.live)
    await operations.staff("ada@example.com", "auditor")
    awa = await operations.staff()
    page = await act(awa, f"/admin/incidents/{payment.reference}", **SETTLE)
    assert (page.status, "inviter une autre personne dans le personnel" in page.text) == (409, True)
    assert await operations.status() is None


async def test_an_approval_needs_a_fresh_factor_and_a_reason(sqlite_operations: Operations) -> None:
    operations, live = sqlite_operations, sqlite_operations.live
    payment = await stuck(live)
    awa, zoe = await operations.staff(), await operations.staff(ZOE)
    await act(awa, f"/admin/incidents/{payment.reference}", **SETTLE)
    page = await act(zoe, "/admin/approvals/1", act="approve", reason=" ")
    assert (page.status, "Dites pourquoi" in page.text) == (422, True)
    live.service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    page = await act(zoe, "/admin/approvals/1", act="approve", reason="oui")
    assert page.path.startswith("/console/factor?next=")
    assert await operations.status() == "pending"


async def test_a_payee_and_a_wallet_wait_for_a_second_person(operations: Operations) -> None:
    live = operations.live
    refund = await waiting_refund(live)
    await live.set_wallet("Gelé")
    awa, zoe = await operations.staff(), await operations.staff(ZOE)
    case = f"/admin/incidents/{refund['reference']}"
    page = await act(awa, case, act="payee", phone="12", reason="ticket Orange 4411")
    assert (page.status, 'value="12"' in page.text) == (409, True)
    assert "«\u00a012\u00a0» n’est pas un numéro de téléphone" in page.text
    await act(awa, case, act="payee", phone="2290197001234", reason="ticket Orange 4411")
    assert (await row(live, refund)).payee_number is None
    await act(zoe, "/admin/approvals/1", act="approve", reason="oui")
    assert (await row(live, refund)).payee_number == "2290197001234"
    assert await open_incidents(live) == []
    assert await wallets.wallet_status(live.ctx.db, live.merchant.id, "live", "XOF") != ACTIVE
    await live.set_wallet()


async def test_who_bears_a_lost_dispute_is_decided_by_two(operations: Operations) -> None:
    live = operations.live
    live.first.script("status", done)
    payment = await stored(live, await live.merchant.pay())
    await live.service.run_worker(60)
    now = live.ctx.clock.now()
    facts = DisputeFacts("du_1", payment.reference, "open", Hundredths(5088_00), "XOF", "fraudulent", now, None, True)
    await disputes.record(live.ctx, "first", facts)
    await disputes.record(live.ctx, "first", structs.replace(facts, status="lost"))
    (dispute,) = await dispute_repository.undecided(live.ctx.db)
    awa, zoe = await operations.staff(), await operations.staff(ZOE)
    page = await awa.get("/admin/incidents")
    assert "paiement frauduleux selon le client" in page.text
    lost = "Le litige sur 5\u202f088\u00a0XOF est perdu\u00a0: dites qui le supporte"
    assert lost in page.text
    case = {"act": "dispute", "dispute": dispute.reference, "from": "merchant", "reason": "contrat signé"}
    assert (await act(awa, f"/admin/incidents/{payment.reference}", **case)).path == "/admin/approvals/1"
    page = await zoe.get("/admin/approvals/1")
    assert payment.reference in page.text
    assert "<dd>Le marchand</dd>" in page.text
    await act(zoe, "/admin/approvals/1", act="approve", reason="oui")
    assert await dispute_repository.undecided(live.ctx.db) == []
    assert await live.balance() == 0
    ((_, actor, _, after),) = await operations.acts("dispute.resolved")
    assert (actor, after["approved_by"], after["borne_by"]) == ("awa@example.com", ZOE, "merchant")


async def test_a_dispute_about_no_payment_of_ours_is_decided_by_two(sqlite_operations: Operations) -> None:
    operations, live = sqlite_operations, sqlite_operations.live
    facts = DisputeFacts("du_9", None, "open", Hundredths(42_00), "EUR", "general", live.ctx.clock.now(), None, True)
    await disputes.record(live.ctx, "first", facts)
    await disputes.record(live.ctx, "first", structs.replace(facts, status="lost"))
    (dispute,) = await dispute_repository.undecided(live.ctx.db)
    awa, zoe = await operations.staff(), await operations.staff(ZOE)
    case = f"/admin/incidents/{dispute.reference}"
    assert case in (await awa.get("/admin/incidents")).text
    page = await awa.get(case)
    assert "du_9" in page.text
    assert 'value="service"' in page.text
    assert 'value="merchant"' not in page.text, "whose would it be?"
    asked = {"act": "dispute", "dispute": dispute.reference, "from": "service", "reason": "une facture"}
    assert (await act(awa, case, **asked)).path == "/admin/approvals/1"
    await act(zoe, "/admin/approvals/1", act="approve", reason="oui")
    assert await dispute_repository.undecided(live.ctx.db) == []
    assert await open_kinds(live) == []
    assert (await awa.get(case)).status == 404


async def test_a_command_run_under_the_approvers_name_is_their_own(sqlite_operations: Operations) -> None:
    """Whatever account the command named."""
    operations, live = sqlite_operations, sqlite_operations.live
    payment = await stuck(live)
    await operations.staff()
    zoe, ada = await operations.staff(ZOE), await operations.staff("ada@example.com")
    requester = require(await users.by_email(live.ctx.db, "awa@example.com"))
    wanted = structs.replace(SETTLED, subject=payment.reference)
    await approvals.ask(live.ctx, wanted, requester, "Zoe")
    page = await act(zoe, "/admin/approvals/1", act="approve", reason="oui")
    assert (page.status, await live.state(payment.reference)) == (409, "pending")
    assert (await act(ada, "/admin/approvals/1", act="approve", reason="oui")).status == 200
    assert await live.state(payment.reference) == "succeeded"


async def test_mails_tell_who_may_approve_and_then_who_asked(operations: Operations) -> None:
    live, console = operations.live, operations.console
    payment = await stuck(live)
    awa = await operations.staff()
    zoe = await operations.staff(ZOE)
    await operations.staff("eve@example.com", "admin")
    await operations.staff("new@example.com", "admin", new=True)
    await operations.staff("aude@example.com", "auditor")
    case = f"/admin/incidents/{payment.reference}"

    async def told() -> list[tuple[str, str]]:
        return [(mail.recipient, mail.kind) for mail in await console.mails() if mail.kind.startswith("approval_")]

    await act(awa, case, **SETTLE)
    assert sorted(await told()) == [("eve@example.com", "approval_requested"), (ZOE, "approval_requested")]
    assert await console.last_link() == "/admin/approvals/1"
    mail = (await console.mails())[0]
    body = text_of(mail.kind, require(mail.message)).body
    assert ("awa@example.com" in body, payment.reference in body, "relevé" in body) == (True, True, False)
    await act(zoe, "/admin/approvals/1", act="refuse", reason="sans preuve")
    await act(awa, case, **SETTLE)
    await act(awa, "/admin/approvals/2", act="refuse", reason="je me suis trompée")
    await act(awa, case, **SETTLE)
    before = await told()
    await act(zoe, "/admin/approvals/3", act="approve", reason="vérifié")
    results = [each for each in await told() if each[1] != "approval_requested"]
    assert results == [("awa@example.com", "approval_approved"), ("awa@example.com", "approval_refused")]
    assert len(await told()) == len(before) + 1


async def test_an_account_with_another_key_is_confirmed_on_the_page_of_its_incident(operations: Operations) -> None:
    live = operations.live
    live.first.identified_by_key, live.first.fingerprint = True, "2:address:key-1"
    payment = (await live.merchant.pay())["reference"]
    await live.service.run_worker(5)
    live.first.fingerprint = "2:address:key-2"
    live.ctx.identity_due.clear()  # The service was started again.
    await live.service.run_worker(60)
    assert await open_kinds(live) == ["account_changed"]
    awa, zoe = await operations.staff(), await operations.staff(ZOE, "admin")
    page = await act(awa, f"/admin/incidents/{payment}", act="account", reason="le portail montre les deux clés")
    assert page.path == "/admin/approvals/1"
    assert "Empreinte de ses réglages" in page.text
    assert "2:address:key-2" in page.text
    page = await act(zoe, "/admin/approvals/1", act="approve", reason="vu")
    assert (page.status, await operations.status()) == (200, "approved")
    assert await open_kinds(live) == []
    ((_, actor, subject, after),) = await operations.acts("account.confirmed")
    assert (actor, subject) == ("awa@example.com", payment)
    assert (after["account"], after["fingerprint"]) == ("first", "2:address:key-2")
