"""A provider that debits a customer after it refused: found by its callback and given back (simulated providers)."""

from collections import Counter

import pytest

from guichet.db.engine import require
from guichet.domain.audit_log import Actor
from guichet.incidents import repository as incidents
from guichet.late_money import decisions as late_decisions
from guichet.late_money import repository as store
from guichet.ledger.audit import audit
from guichet.payments import repository
from guichet.settings import Settings
from tests.providers.simulated_providers import open_simulated_providers
from tests.providers.test_routes import MTN, PAWAPAY, account, pay, route, shown

AWA = Actor("Awa", "awa")


@pytest.mark.parametrize(("provider", "settings_of_account"), [("mtn", MTN), ("pawapay", PAWAPAY)])
async def test_money_that_comes_late_goes_back_to_the_payer(
    settings: Settings, provider: str, settings_of_account: dict[str, str]
) -> None:
    async with open_simulated_providers(settings, route("mtn", account("one", provider, settings_of_account))) as run:
        ctx = run.service.ctx
        await run.force(provider, "declined")
        reference = (await pay(run, "mtn", "22997001234")).data["reference"]
        await run.turn(5)
        await run.turn(5)
        assert (await shown(run, reference))["status"] == "failed"
        [debit] = await run.held(kind="debit")
        await run.control("POST", f"/transactions/{debit['id']}/undo")
        await run.turn(6)
        await run.turn(6)
        assert [each.kind for each in await incidents.still_open(ctx.db)] == ["paid_after_failure"]

        payment = require(await repository.find(ctx.db, reference))
        found = require(await store.about(ctx.db, payment))
        await run.force(provider, "succeeds", "credit")
        returning = await late_decisions.resolve(ctx, found, "payer", AWA, "the order was cancelled")
        for _ in range(4):
            await run.turn(10)
        assert require(await store.about(ctx.db, payment)).stage == "returned"
        books = (await run.control("GET", "/transactions"))["books"]
        assert Counter({each["reference"]: each["debits"] - each["credits"] for each in books}) == Counter(
            {reference: 1, returning.return_reference: -1}
        )
        assert (await shown(run, reference))["status"] == "failed", "what was told stays"
        assert await incidents.still_open(ctx.db) == []
        assert (await audit(ctx.db, ctx.clock, lambda text: None)).fault is None
