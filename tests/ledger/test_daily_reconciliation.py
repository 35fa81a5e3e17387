"""The daily comparison of each account with its provider, over real HTTP with the simulated ones: what is found and
posted, and what the commands and `/metrics` say of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from guichet.clock import DAY, HOUR, SECOND, iso, later
from guichet.db.engine import require
from guichet.incidents import repository as incidents
from guichet.late_money import repository as late_results
from guichet.ledger import reconciliation_runs as runs
from guichet.server.health_checks import unmatched_callbacks_since
from guichet.settings import Settings
from guichet_simulator.scenarios import BY_NAME
from tests.cli.conftest import Cli
from tests.invariants import check_books
from tests.ledger.ledger_history import RawSql
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers
from tests.providers.test_late_money import lost_return
from tests.server.metrics_reader import measured, scrape, value

#: What the simulated providers charge, in francs, for a debit and for a refund of that many francs.
FEES = {"wave": (1, 0), "pawapay": (2, 1)}
#: The wallets that payments fill and refunds are paid from.
WALLETS = {"pawapay": ("BEN", "BEN")}


def on_both_databases(first: str, *others: str) -> pytest.MarkDecorator:
    """The first provider on both databases, the others on SQLite: what differs between them is what they answer, and
    every statement is one of the first's too."""
    runs = [("sqlite", first), ("postgresql", first), *(("sqlite", other) for other in others)]
    return pytest.mark.parametrize(("settings", "provider"), runs, indirect=["settings"])


@asynccontextmanager
async def at_noon(settings: Settings, provider: str) -> AsyncIterator[SimulatedProviders]:
    """The clock shows noon (UTC), so that no payment of the test is made around midnight."""
    async with open_simulated_providers(measured(settings), PROVIDER_CASES[provider].setup) as simulated:
        now = simulated.clock.now()
        simulated.clock.advance((runs.day_of(now) + DAY + DAY // 2 - now) / SECOND)
        await simulated.turn(0)
        yield simulated


async def pay(simulated: SimulatedProviders, provider: str, scenario: str = "succeeds") -> Any:
    case = PROVIDER_CASES[provider]
    answer = await simulated.merchant.live.post("/payments", case.body("90", BY_NAME[scenario]))
    assert answer.status == 201, answer.raw
    return answer.data


async def turn(simulated: SimulatedProviders, seconds: float, times: int = 1) -> None:
    for _ in range(times):
        await simulated.turn(seconds)


async def to_five_in_the_morning(simulated: SimulatedProviders) -> str:
    """Turns the clock to five o'clock of the next day; returns the day that ended."""
    day = runs.day_of(simulated.clock.now())
    await simulated.turn((day + DAY + 5 * HOUR - simulated.clock.now()) / SECOND)
    return iso(day)[:10]


async def listed(cli: Cli, *more: str, code: int = 0) -> list[dict[str, Any]]:
    done = await asyncio.to_thread(cli, "reconcile", *more, "--runs", "--json")
    assert done.code == code, done
    found: list[dict[str, Any]] = json.loads(done.out)["runs"]
    return found


async def fees_posted(raw_sql: RawSql) -> list[tuple[Any, ...]]:
    return await raw_sql.run(
        "SELECT cause, source, destination, amount, env FROM postings WHERE cause LIKE '%provider_fee' ORDER BY amount"
    )


@on_both_databases("pawapay", "wave")
async def test_a_day_is_compared_and_its_fees_are_posted(
    settings: Settings, cli: Cli, raw_sql: RawSql, provider: str
) -> None:
    case, account = PROVIDER_CASES[provider], f"{provider}_one"
    async with at_noon(settings, provider) as simulated:
        kept, returned = await pay(simulated, provider), await pay(simulated, provider)
        await turn(simulated, 10, times=3)
        answer = await simulated.merchant.live.post(f"/payments/{returned['reference']}/refund")
        assert answer.status == 201, answer.raw
        await turn(simulated, 10, times=3)
        assert (await simulated.merchant.live.get(f"/payments/{returned['reference']}")).data["status"] == "refunded"
        assert [each["state"] for each in await listed(cli)] == ["waiting"], "the day has not ended"
        day = await to_five_in_the_morning(simulated)
        [run] = [each for each in await listed(cli, account) if each["day"] == day]
        assert (run["state"], run["lines"], run["matched"], run["found"]) == ("compared", 3, 3, [])
        assert run["due_at"] is None
        total = round(kept["total_amount"])
        debit, refund = ((total * percent + 50) // 100 for percent in FEES[provider])
        collected, paid_out = (f"float:{account}:{wallet}:XOF" for wallet in WALLETS.get(provider, ("", "")))
        expected = [("payment.provider_fee", "provider_fees", collected, debit * 100, "live")] * 2
        if refund:
            expected.insert(0, ("refund.provider_fee", "provider_fees", paid_out, refund * 100, "live"))
        assert await fees_posted(raw_sql) == expected
        margin = await asyncio.to_thread(cli, "ledger", "margin", "--json")
        earned = kept["fee_amount"]  # The other payment's was given back with its refund.
        [row] = margin.json["margins"]
        assert (row["operator"], row["payments"], row["fees"]) == (case.operator, 2, earned)
        assert row["provider_fees"] == 2 * debit + refund
        assert row["margin"] == pytest.approx(earned - 2 * debit - refund)
        await turn(simulated, 200, times=2)  # The fees enter the hash chain, so the audit sums them.
        audit = await asyncio.to_thread(cli, "ledger", "audit", "--json")
        assert audit.json["clean"] is True
        [owed] = audit.json["owed"]
        assert owed["amount"] == total - 2 * debit - refund, "the operator kept its fees"
        await check_books(simulated.service.ctx.db)
        wallet = (await simulated.merchant.live.get("/balance")).data
        assert wallet["balance"] == kept["amount"], "the wallet knows nothing of it"


@on_both_databases("wave", "pawapay", "feexpay")
async def test_money_that_we_do_not_have_is_reported_everywhere_until_it_is_explained(
    settings: Settings, cli: Cli, raw_sql: RawSql, provider: str
) -> None:
    account = f"{provider}_one"
    async with at_noon(settings, provider) as simulated:
        await pay(simulated, provider)
        lying = await pay(simulated, provider, "wrong_amount")
        await turn(simulated, 10, times=4)
        day = await to_five_in_the_morning(simulated)
        [run] = [each for each in await listed(cli, code=1) if each["day"] == day]
        assert (run["state"], run["matched"], run["differences"]) == ("different", 1, 1)
        [difference] = run["found"]
        assert (difference["result"], difference["note"]) == ("missing here", "pending here")
        assert difference["ours"]["reference"] == lying["reference"]
        doctor = await asyncio.to_thread(cli, "doctor", "--json")
        assert f"1 differences with {account}" in json.loads(doctor.out)["checks"]["reconciliation"]["problems"][0]
        samples = await scrape(simulated.service)
        assert value(samples, "guichet_reconciliation_differences", provider_account=account) == 1
        age = value(samples, "guichet_reconciliation_age_seconds", provider_account=account)
        assert age == pytest.approx(5 * 3600, abs=900)
        posted = await fees_posted(raw_sql)
        assert len(posted) == (0 if provider == "feexpay" else 1), "only what matched"
        await to_five_in_the_morning(simulated)
        await turn(simulated, 1800)  # The first comparison may have ended minutes after five.
        [again] = [each for each in await listed(cli, code=1) if each["day"] == day]
        assert (again["attempts"], again["differences"]) == (2, 1), "repeated a day later"
        assert await fees_posted(raw_sql) == posted, "and no fee is posted twice"


async def test_a_history_that_cannot_be_read_is_asked_for_again(settings: Settings, cli: Cli) -> None:
    async with at_noon(settings, "wave") as simulated:
        await pay(simulated, "wave")
        await turn(simulated, 10, times=3)
        await simulated.force("wave", "error_500", "status")
        day = await to_five_in_the_morning(simulated)
        [run] = [each for each in await listed(cli) if each["day"] == day]
        assert (run["state"], run["attempts"], run["finished_at"]) == ("unreadable", 1, None)
        assert run["error"].startswith("500")
        await turn(simulated, 600)
        [run] = [each for each in await listed(cli) if each["day"] == day]
        assert run["attempts"] == 1, "not at once"
        await turn(simulated, 3600)
        [run] = [each for each in await listed(cli) if each["day"] == day]
        assert (run["state"], run["attempts"], run["matched"]) == ("compared", 2, 1)


async def test_a_run_is_claimed_by_one_worker_and_again_after_its_lease(settings: Settings) -> None:
    async with at_noon(settings, "wave") as simulated:
        db, now = simulated.service.ctx.db, simulated.clock.now()
        due = later(runs.day_of(now), DAY + runs.DUE_AFTER)
        assert await runs.claim(db, ["wave_one"], now) is None, "its day has not ended"
        assert await runs.claim(db, ["another"], due) is None
        claims = await asyncio.gather(*(runs.claim(db, ["wave_one"], due) for _ in range(4)))
        [first] = [each for each in claims if each is not None]
        second = await runs.claim(db, ["wave_one"], first.lease)
        assert second is not None
        await runs.fail(db, first, "late", first.lease)
        assert [each.error for each in await runs.recent_runs(db, now)] == [None], "the first one lost its lease"
        await runs.finish(db, second, runs.Result(second.day), first.lease)
        assert await runs.claim(db, ["wave_one"], later(first.lease, DAY)) is None


async def test_days_on_which_no_worker_ran_are_made_up_for(settings: Settings, cli: Cli) -> None:
    async with at_noon(settings, "wave") as simulated:
        await pay(simulated, "wave")
        await turn(simulated, 10, times=3)
        await simulated.turn(3 * DAY / SECOND)
        found = await listed(cli)
        assert [each["state"] for each in found] == ["waiting", "compared", "compared", "compared"]
        assert [each["matched"] for each in found] == [0, 0, 0, 1]


async def test_the_audit_finds_a_provider_fee_that_no_statement_can_have_named(
    settings: Settings, cli: Cli, raw_sql: RawSql
) -> None:
    async with at_noon(settings, "wave") as simulated:
        paid = await pay(simulated, "wave")
        declined = await pay(simulated, "wave", "declined")
        await turn(simulated, 30, times=4)
        for number, (reference, changes, sentence) in enumerate(
            [
                (paid["reference"], {"amount": "100000000"}, "is not one of its postings"),
                (paid["reference"], {"destination": "'float:other::XOF'"}, "moves"),
                (paid["reference"], {"destination": "'wallet'"}, "moves"),
                (declined["reference"], {}, "books it all the same"),
            ],
            10_000,
        ):
            values = {"source": "'provider_fees'", "destination": "'float:wave_one::XOF'", "amount": "100", **changes}
            await raw_sql.run(
                "INSERT INTO postings (id, merchant_id, env, currency, cause, subject_id, leg, source, destination,"
                f" amount, created_at) SELECT {number}, merchant_id, env, currency, 'payment.provider_fee', id, 'fee',"
                f" {values['source']}, {values['destination']}, {values['amount']}, created_at"
                f" FROM payments WHERE reference = '{reference}'"
            )
            audit = await asyncio.to_thread(cli, "ledger", "audit", "--json")
            fault = json.loads(audit.out)["checks"]["payments"]
            assert fault is not None
            assert reference in fault
            assert sentence in fault
            await raw_sql.run(f"DELETE FROM postings WHERE id = {number}")
        assert (await asyncio.to_thread(cli, "ledger", "audit", "--json")).json["clean"] is True


async def test_a_callback_about_a_statement_is_acknowledged_and_means_nothing(settings: Settings) -> None:
    async with at_noon(settings, "pawapay") as simulated:
        body = {"statementId": "f4401bd2-1568-4140-bf2d-eb77d2b2b639", "status": "COMPLETED"}
        answer = await simulated.service.call("POST", "/providers/pawapay_one/callback", body)
        assert answer.status == 200
        assert await unmatched_callbacks_since(simulated.service.ctx.db, simulated.clock.now()) == 0
        await simulated.service.call("POST", "/providers/pawapay_one/callback", {"status": "COMPLETED"})
        assert await unmatched_callbacks_since(simulated.service.ctx.db, simulated.clock.now()) == 1


async def test_old_comparisons_are_pruned(settings: Settings, raw_sql: RawSql) -> None:
    async with at_noon(settings, "wave") as simulated:
        first = runs.day_of(simulated.clock.now())
        await to_five_in_the_morning(simulated)
        assert (first,) in await raw_sql.run("SELECT day FROM reconciliation_runs")
        await turn(simulated, 366 * DAY / SECOND)
        kept = [day for (day,) in await raw_sql.run("SELECT day FROM reconciliation_runs")]
        assert first not in kept
        assert len(kept) == 9, "yesterday's of then, the days that were made up for, and today"


async def sold(simulated: SimulatedProviders, provider: str) -> Any:
    """A payment that will succeed, whatever its amount, where the simulator reads the scenario from it."""
    await simulated.force(provider, "succeeds")
    return await pay(simulated, provider)


async def _given_back_in_the_portal(simulated: SimulatedProviders, provider: str, debit: Any) -> None:
    """Somebody of ours, or of the merchant's, gives the payment back without Guichet."""
    settings = PROVIDER_CASES[provider].settings
    address, headers, form = f"{simulated.simulator}/{provider}/v1/refunds", {}, None
    if provider == "stripe":
        headers = {"Authorization": f"Bearer {settings['secret_key']}"}
        async with simulated.http.get(
            f"{simulated.simulator}/stripe/v1/checkout/sessions/{debit['operator_ref']}", headers=headers
        ) as answer:
            form = {"payment_intent": (await answer.json())["payment_intent"]}
    else:
        headers = {"Authorization": f"Bearer {settings['api_key']}"}
        address = f"{simulated.simulator}/wave/v1/checkout/sessions/{debit['operator_ref']}/refund"
    async with simulated.http.post(address, headers=headers, data=form) as answer:
        assert answer.status == 200, await answer.text()


@on_both_databases("stripe", "wave")
async def test_a_refund_that_somebody_made_without_us_is_an_incident(settings: Settings, provider: str) -> None:
    """The merchant has the money, and the customer too."""
    async with at_noon(settings, provider) as simulated:
        payment = await sold(simulated, provider)
        await turn(simulated, 10, times=3)
        [debit] = await simulated.held(kind="debit")
        await _given_back_in_the_portal(simulated, provider, debit)
        await turn(simulated, 10, times=2)
        await to_five_in_the_morning(simulated)
        found = {each.kind: each for each in await incidents.still_open(simulated.service.ctx.db)}
        assert set(found) == {"refunded_elsewhere", "statement_differs"}
        assert found["refunded_elsewhere"].reference == payment["reference"]
        total = round(payment["total_amount"])
        assert f"{total:,}".replace(",", "") in str(found["refunded_elsewhere"].detail).replace(" ", "")
        assert found["statement_differs"].provider_account == f"{provider}_one"
        assert (await simulated.merchant.live.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
        await check_books(simulated.service.ctx.db)


async def test_the_days_of_stripe_are_compared(settings: Settings, cli: Cli) -> None:
    """Payments, refunds and failed refunds are in its balance transactions."""
    async with at_noon(settings, "stripe") as simulated:
        await sold(simulated, "stripe")
        returned, failing = await sold(simulated, "stripe"), await sold(simulated, "stripe")
        await turn(simulated, 10, times=3)
        assert (await simulated.merchant.live.post(f"/payments/{returned['reference']}/refund")).status == 201
        await turn(simulated, 10, times=3)
        await simulated.force("stripe", "declined", "credit")
        assert (await simulated.merchant.live.post(f"/payments/{failing['reference']}/refund")).status == 201
        await turn(simulated, 10, times=3)
        day = await to_five_in_the_morning(simulated)
        [run] = [each for each in await listed(cli, "stripe_one") if each["day"] == day]
        assert (run["state"], run["found"]) == ("compared", [])
        assert run["matched"] == 4, "three payments and a refund"
        assert await incidents.still_open(simulated.service.ctx.db) == []


async def test_a_refund_of_stripe_that_fails_late_is_found_without_a_callback(settings: Settings) -> None:
    async with at_noon(settings, "stripe") as simulated:
        payment = await sold(simulated, "stripe")
        await turn(simulated, 10, times=3)
        assert (await simulated.merchant.live.post(f"/payments/{payment['reference']}/refund")).status == 201
        await turn(simulated, 10, times=3)
        assert (await simulated.merchant.live.get(f"/payments/{payment['reference']}")).data["status"] == "refunded"
        await to_five_in_the_morning(simulated)
        await turn(simulated, DAY / SECOND)
        nowhere = {"family": "stripe", "callback_url": "http://127.0.0.1:9/nobody"}
        await simulated.control("POST", "/dashboard", json=nowhere)
        [credit] = await simulated.held(kind="credit")
        await simulated.control("POST", f"/transactions/{credit['id']}/undo")
        await turn(simulated, 10, times=2)
        assert await incidents.still_open(simulated.service.ctx.db) == []
        await to_five_in_the_morning(simulated)
        await turn(simulated, 60)
        kinds = [each.kind for each in await incidents.still_open(simulated.service.ctx.db)]
        assert sorted(kinds) == ["failed_after_success", "statement_differs"]
        await check_books(simulated.service.ctx.db)
        await to_five_in_the_morning(simulated)
        await turn(simulated, 1800)
        kinds = [each.kind for each in await incidents.still_open(simulated.service.ctx.db)]
        assert kinds == ["failed_after_success"], "the day is equal now"


@on_both_databases("pawapay", "wave", "stripe", "feexpay")
async def test_late_money_that_went_back_is_no_difference(settings: Settings, cli: Cli, provider: str) -> None:
    """Its return is under a reference of its own, or names the payment."""
    case = PROVIDER_CASES[provider]
    async with at_noon(settings, provider) as simulated:
        ctx = simulated.service.ctx
        payment, _ = await lost_return(simulated, case, "succeeds")
        await turn(simulated, 60, times=3)
        assert require(await late_results.about(ctx.db, payment)).stage == "returned"
        await to_five_in_the_morning(simulated)
        runs_of_account = await listed(cli, f"{provider}_one")
        assert [each["found"] for each in runs_of_account if each["state"] == "different"] == []
