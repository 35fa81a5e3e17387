"""Cards: what a bank takes back, returns or keeps, and refunds that come back, with the simulated Stripe."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from guichet.db import tables as t
from guichet.db.tables import postings, webhook_deliveries
from guichet.disputes import decisions as dispute_decisions
from guichet.disputes import repository as dispute_repository
from guichet.domain.audit_log import Actor, ActRefused
from guichet.incidents import repository as incidents
from guichet.ledger.audit import audit
from guichet.ledger.margin import margins
from guichet.settings import Settings
from tests.contract.shapes import check_error
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers
from tests.providers.test_routes import PERSON, SETTINGS, account, route

SIGNED = {**SETTINGS["stripe"], "webhook_secret": "whsec_simulator"}
AWA = Actor("Awa", "awa")


@pytest.fixture
async def stripe(settings: Settings) -> AsyncIterator[SimulatedProviders]:
    async with open_simulated_providers(settings, route("VISA", account("stripe", "stripe", SIGNED))) as simulated:
        await simulated.merchant.live.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
        yield simulated


async def paid(stripe: SimulatedProviders) -> tuple[str, dict[str, Any]]:
    """Our reference of a card payment, and Stripe's transaction."""
    await stripe.force("stripe", "succeeds")
    body = {"amount": 5000, "operator": "VISA", "return_url": "https://shop.example/back", **PERSON}
    answer = await stripe.merchant.live.post("/payments", body)
    assert answer.status == 201, answer.raw
    await stripe.turn(5)
    reference = answer.data["reference"]
    assert await status(stripe, reference) == "succeeded"
    return reference, (await stripe.held(kind="debit"))[0]


async def status(stripe: SimulatedProviders, reference: str) -> str:
    found = (await stripe.merchant.live.get("/payments?per_page=100")).data
    return next(str(each["status"]) for each in found if each["reference"] == reference)


async def says(stripe: SimulatedProviders, transaction: dict[str, Any], word: str, **more: Any) -> None:
    """The bank opens a dispute or decides it; its callback arrives and the worker asks."""
    path = f"/transactions/{transaction['id']}/dispute"
    await stripe.control("POST", path, json={"status": word, **more})
    await stripe.turn(5)


async def sums(stripe: SimulatedProviders) -> dict[str, int]:
    """What the ledger's accounts hold; the audit must agree with the tables."""
    ctx = stripe.service.ctx
    assert (await audit(ctx.db, ctx.clock, lambda text: None)).fault is None
    held: dict[str, int] = {}
    for source, to, amount in await ctx.db.scan(select(postings.c.source, postings.c.destination, postings.c.amount)):
        held[source], held[to] = held.get(source, 0) - amount, held.get(to, 0) + amount
    return {name: amount for name, amount in held.items() if amount}


async def events(stripe: SimulatedProviders) -> list[tuple[str, Any]]:
    rows = await stripe.service.ctx.db.scan(
        select(t.events.c.event, t.events.c.body)
        .join(webhook_deliveries, webhook_deliveries.c.id == t.events.c.id)
        .order_by(t.events.c.id)
    )
    return [(row[0], msgspec.json.decode(row[1])["data"]) for row in rows]


async def open_kinds(stripe: SimulatedProviders) -> list[str]:
    return [incident.kind for incident in await incidents.still_open(stripe.service.ctx.db)]


async def test_a_dispute_is_opened_told_and_won(stripe: SimulatedProviders) -> None:
    reference, transaction = await paid(stripe)
    before = await sums(stripe)
    total = -before["float:stripe::XOF"]
    await says(stripe, transaction, "needs_response")
    assert await open_kinds(stripe) == ["disputed"]
    assert await sums(stripe) == {
        **{k: v for k, v in before.items() if k != "float:stripe::XOF"},
        "suspense:disputes": -total,
    }
    assert await status(stripe, reference) == "succeeded", "the told status stays"
    name, told = (await events(stripe))[-1]
    assert (name, told["payment_reference"], told["status"]) == ("dispute.opened", reference, "open")
    assert (told["amount"], told["currency"], told["reason"]) == (total // 100, "XOF", "fraudulent")
    assert told["evidence_due_at"] is not None

    await says(stripe, transaction, "under_review")
    await says(stripe, transaction, "won")
    await says(stripe, transaction, "won")
    assert await sums(stripe) == before
    assert [name for name, _ in await events(stripe)] == ["payment.succeeded", "dispute.opened", "dispute.won"]
    assert await open_kinds(stripe) == []


@pytest.mark.parametrize(("bearer", "wallet"), [("merchant", 0), ("service", 5000)])
async def test_a_lost_dispute_is_borne_by_whom_a_person_says(
    stripe: SimulatedProviders, bearer: Any, wallet: int
) -> None:
    reference, transaction = await paid(stripe)
    await says(stripe, transaction, "needs_response")
    await says(stripe, transaction, "lost")
    assert (await events(stripe))[-1][0] == "dispute.lost"
    assert await open_kinds(stripe) == ["disputed"]
    ctx = stripe.service.ctx
    (lost,) = await dispute_repository.undecided(ctx.db)
    assert (lost.status, lost.payment_reference) == ("lost", reference)
    await dispute_decisions.resolve(ctx, lost, bearer, AWA, "no contract")
    assert (await stripe.merchant.live.get("/balance?currency=XOF")).data["balance"] == wallet
    assert "suspense:disputes" not in await sums(stripe)
    ((_, margin),) = (await margins(ctx.db, None, None)).items()
    assert margin.fees == (await sums(stripe)).get("fees", 0)
    assert await open_kinds(stripe) == []
    with pytest.raises(ActRefused, match="already"):
        await dispute_decisions.resolve(ctx, lost, bearer, AWA, "again")
    assert (await events(stripe))[-1][0] == "dispute.lost"


async def refused(stripe: SimulatedProviders, reference: str) -> str | None:
    """Why the payment is not refunded now; None: it is."""
    answer = await stripe.merchant.live.post(f"/payments/{reference}/refund")
    return None if answer.status == 201 else str(check_error(answer, "conflict")["reason"])


async def test_a_payment_is_not_refunded_while_a_bank_has_the_money(stripe: SimulatedProviders) -> None:
    reference, transaction = await paid(stripe)
    await says(stripe, transaction, "needs_response")
    assert await refused(stripe, reference) == "dispute_open"
    assert (await sums(stripe))["wallet"] == 5000_00, "nothing was held for the refund that was refused"
    await says(stripe, transaction, "won")
    assert await refused(stripe, reference) is None


@pytest.mark.parametrize("bearer", ["merchant", "service"])
async def test_a_payment_whose_dispute_was_lost_is_never_refunded(stripe: SimulatedProviders, bearer: Any) -> None:
    reference, transaction = await paid(stripe)
    await says(stripe, transaction, "needs_response")
    await says(stripe, transaction, "lost")
    assert await refused(stripe, reference) == "dispute_lost"
    ctx = stripe.service.ctx
    (lost,) = await dispute_repository.undecided(ctx.db)
    await dispute_decisions.resolve(ctx, lost, bearer, AWA, "no contract")
    assert await refused(stripe, reference) == "dispute_lost"


@pytest.mark.parametrize(("bearer", "afterwards"), [("nobody", None), ("service", "dispute_lost")])
async def test_a_prevented_dispute_forbids_a_refund_until_a_person_decided(
    stripe: SimulatedProviders, bearer: Any, afterwards: str | None
) -> None:
    reference, transaction = await paid(stripe)
    await says(stripe, transaction, "prevented")
    assert await refused(stripe, reference) == "dispute_open"
    ctx = stripe.service.ctx
    (prevented,) = await dispute_repository.undecided(ctx.db)
    await dispute_decisions.resolve(ctx, prevented, bearer, AWA, "balance transactions")
    assert await refused(stripe, reference) == afterwards


async def test_an_inquiry_may_be_ended_by_a_refund(stripe: SimulatedProviders) -> None:
    reference, transaction = await paid(stripe)
    await says(stripe, transaction, "warning_needs_response")
    assert await open_kinds(stripe) == ["disputed"]
    assert await refused(stripe, reference) is None


async def test_a_wallet_that_does_not_cover_a_lost_dispute_stays_as_it_is(stripe: SimulatedProviders) -> None:
    reference, transaction = await paid(stripe)
    assert (await stripe.merchant.live.post(f"/payments/{reference}/refund")).status == 201
    await stripe.turn(5)
    await stripe.turn(5)
    assert await status(stripe, reference) == "refunded"
    await says(stripe, transaction, "needs_response")
    await says(stripe, transaction, "lost")
    ctx = stripe.service.ctx
    (lost,) = await dispute_repository.undecided(ctx.db)
    with pytest.raises(ActRefused, match="does not cover"):
        await dispute_decisions.resolve(ctx, lost, "merchant", AWA, "contract")
    assert (await dispute_repository.undecided(ctx.db)) == [lost]
    await dispute_decisions.resolve(ctx, lost, "service", AWA, "it was refunded before")
    await sums(stripe)


async def test_a_dispute_that_was_decided_before_we_heard_of_it_is_told_in_order(stripe: SimulatedProviders) -> None:
    _, transaction = await paid(stripe)
    before = await sums(stripe)
    await says(stripe, transaction, "won")
    assert [name for name, _ in await events(stripe)][1:] == ["dispute.opened", "dispute.won"]
    assert await sums(stripe) == before


async def test_an_inquiry_of_a_bank_moves_nothing(stripe: SimulatedProviders) -> None:
    _, transaction = await paid(stripe)
    before = await sums(stripe)
    await says(stripe, transaction, "warning_needs_response")
    assert await open_kinds(stripe) == ["disputed"]
    assert await sums(stripe) == before
    await says(stripe, transaction, "needs_response")
    assert (await events(stripe))[-1][0] == "dispute.opened"


async def test_disputes_are_found_without_any_callback(stripe: SimulatedProviders) -> None:
    _, transaction = await paid(stripe)
    await stripe.control("POST", "/dashboard", json={"family": "stripe", "callback_url": "http://127.0.0.1:9/nobody"})
    await says(stripe, transaction, "needs_response")
    await stripe.turn(15 * 60)
    assert await open_kinds(stripe) == ["disputed"]


async def test_what_a_callback_claims_is_not_believed(stripe: SimulatedProviders) -> None:
    """A forged event about a dispute makes us ask; the answer knows of none."""
    await paid(stripe)
    before = await sums(stripe)
    body = {"type": "charge.dispute.created", "data": {"object": {"object": "dispute", "id": "du_x", "amount": 1}}}
    answer = await stripe.service.call("POST", "/providers/stripe/callback", body)
    assert answer.status == 200
    await stripe.turn(5)
    assert await sums(stripe) == before
    assert await dispute_repository.undecided(stripe.service.ctx.db) == []


async def test_a_refund_that_comes_back_after_its_success_was_told(stripe: SimulatedProviders) -> None:
    reference, _ = await paid(stripe)
    before = await sums(stripe)
    assert (await stripe.merchant.live.post(f"/payments/{reference}/refund")).status == 201
    for _ in range(3):
        await stripe.turn(5)
    assert await status(stripe, reference) == "refunded"
    (credit,) = await stripe.held(kind="credit")
    await stripe.control("POST", f"/transactions/{credit['id']}/undo")
    await stripe.turn(5)
    await stripe.turn(5)
    assert await open_kinds(stripe) == ["failed_after_success"]
    assert await sums(stripe) == {
        "float:stripe::XOF": before["float:stripe::XOF"],
        "suspense:late": -before["float:stripe::XOF"],
    }
    assert await status(stripe, reference) == "refunded"


async def sold_elsewhere(stripe: SimulatedProviders) -> dict[str, Any]:
    """A card payment that somebody made with the same account of Stripe, and of which we know nothing."""
    await stripe.force("stripe", "succeeds")
    price = "line_items[0][price_data]"
    form = {
        "mode": "payment",
        "line_items[0][quantity]": "1",
        f"{price}[currency]": "eur",
        f"{price}[unit_amount]": "4200",
        f"{price}[product_data][name]": "Invoice",
        "success_url": "https://shop.example/back",
    }
    key = {"Authorization": f"Bearer {SIGNED['secret_key']}"}
    async with stripe.http.post(f"{stripe.simulator}/stripe/v1/checkout/sessions", data=form, headers=key) as answer:
        assert answer.status == 200, await answer.text()
    await stripe.turn(5)
    return (await stripe.held(kind="debit"))[0]


async def test_a_dispute_that_matches_no_payment_is_an_incident_with_its_amount(stripe: SimulatedProviders) -> None:
    await paid(stripe)
    before = await sums(stripe)
    transaction = await sold_elsewhere(stripe)
    await says(stripe, transaction, "needs_response")
    (incident,) = await incidents.still_open(stripe.service.ctx.db)
    assert (incident.kind, incident.subject_type, incident.provider_account) == ("disputed", "dispute", "stripe")
    assert "42 EUR" in str(incident.detail)
    assert await sums(stripe) == before | {"suspense:disputes": -42_00, "float:stripe::EUR": 42_00}
    assert [name for name, _ in await events(stripe)] == ["payment.succeeded"], "nobody's payment: nobody is told"
    (found,) = await dispute_repository.undecided(stripe.service.ctx.db)
    assert (found.reference, found.payment_reference) == (incident.reference, None)
    await says(stripe, transaction, "under_review")
    await stripe.turn(15 * 60)
    (incident,) = await incidents.still_open(stripe.service.ctx.db)
    assert incident.occurrences == 1

    await says(stripe, transaction, "lost")
    ctx = stripe.service.ctx
    (lost,) = await dispute_repository.undecided(ctx.db)
    with pytest.raises(ActRefused, match="service"):
        await dispute_decisions.resolve(ctx, lost, "merchant", AWA, "whose?")
    await dispute_decisions.resolve(ctx, lost, "service", AWA, "an invoice of ours")
    after = await sums(stripe)
    assert "suspense:disputes" not in after
    assert after["fees"] == before["fees"] - 42_00
    assert sum(each.fees for each in (await margins(ctx.db, None, None)).values()) == after["fees"]
    assert await open_kinds(stripe) == []


async def test_an_unmatched_dispute_that_is_won_leaves_nothing(stripe: SimulatedProviders) -> None:
    transaction = await sold_elsewhere(stripe)
    await says(stripe, transaction, "needs_response")
    await says(stripe, transaction, "won")
    assert await sums(stripe) == {}
    assert await open_kinds(stripe) == []


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("bearer", "told"),
    [
        ("merchant", ["payment.succeeded", "dispute.opened", "dispute.lost"]),
        ("service", ["payment.succeeded", "dispute.opened", "dispute.lost"]),
        ("nobody", ["payment.succeeded"]),
    ],
)
async def test_a_prevented_dispute_is_decided_by_a_person(
    stripe: SimulatedProviders, bearer: Any, told: list[str]
) -> None:
    """Visa may have paid the holder of the card back already; Stripe does not say so."""
    _, transaction = await paid(stripe)
    before = await sums(stripe)
    await says(stripe, transaction, "prevented")
    assert await open_kinds(stripe) == ["disputed"]
    assert await sums(stripe) == before, "nothing is posted on a guess"
    assert [name for name, _ in await events(stripe)] == ["payment.succeeded"]
    ctx = stripe.service.ctx
    (prevented,) = await dispute_repository.undecided(ctx.db)
    await dispute_decisions.resolve(ctx, prevented, bearer, AWA, "balance transactions")
    after = await sums(stripe)
    assert "suspense:disputes" not in after
    assert (after == before) == (bearer == "nobody")
    assert (after.get("wallet", 0) == 0) == (bearer == "merchant")
    assert [name for name, _ in await events(stripe)] == told
    assert await open_kinds(stripe) == []
    await stripe.turn(15 * 60)
    assert await open_kinds(stripe) == []
    with pytest.raises(ActRefused, match="already"):
        await dispute_decisions.resolve(ctx, prevented, bearer, AWA, "again")


async def test_a_dispute_that_was_open_may_be_prevented(stripe: SimulatedProviders) -> None:
    _, transaction = await paid(stripe)
    before = await sums(stripe)
    await says(stripe, transaction, "needs_response")
    await says(stripe, transaction, "prevented")
    ctx = stripe.service.ctx
    (prevented,) = await dispute_repository.undecided(ctx.db)
    await dispute_decisions.resolve(ctx, prevented, "nobody", AWA, "balance transactions")
    assert await sums(stripe) == before
    assert [name for name, _ in await events(stripe)] == ["payment.succeeded", "dispute.opened", "dispute.won"]
