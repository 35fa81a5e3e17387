"""`guichet doctor`: silent when all is well, and one line for each thing that is not."""

import json
from collections.abc import Mapping
from typing import Any

from guichet.back_office import provider_balances
from guichet.chain_heads import PUBLISH_EVERY, TURN
from guichet.clock import DAY, HOUR, MINUTE, SystemClock, earlier, iso, later
from guichet.db.worker_leases import claim_turn
from guichet.domain.money import Hundredths
from guichet.provider_callbacks import unmatched as unmatched_callbacks
from guichet.providers.base import Accepted, NotProcessed, Refused, Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.settings import Settings
from tests.cli.conftest import Cli
from tests.fakes.clock import clock_of_the_machine
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.ledger.ledger_history import RawSql, yesterday
from tests.service_fixture import open_service


async def test_doctor_reports_nothing_when_all_is_well(settings: Settings, cli: Cli) -> None:
    cli("ledger", "audit")
    done = cli("doctor")
    assert done.code == 0, done.out
    assert "✗" not in done.out
    assert ("standbys and archive" in done.out) is not settings.embedded
    assert cli("doctor", "--json").json["healthy"] is True


async def test_doctor_reports_one_line_for_each_fault(settings: Settings, cli: Cli, raw_sql: RawSql) -> None:
    silent = ScriptedProvider()
    silent.script("status", Accepted())
    async with yesterday(settings, accounts={"op": silent}, routes={"mtn": ["op"]}) as service:
        merchant = await service.merchant("Shop")
        await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
        await merchant.live.pay("0000")
        await merchant.pay("0000")
        await merchant.pay("0002")
        await service.run_worker(20)
        stuck = (await merchant.live.get("/payments")).data[0]
        await merchant.report_mismatch(stuck["reference"])
        await unmatched_callbacks.keep_sample(
            service.ctx.db, provider_account="op", path="/x", body=b"{}", reason="no_match", now=SystemClock().now()
        )
        await service.run_worker(20)
    await raw_sql.run(f"UPDATE webhook_deliveries SET created_at = {earlier(SystemClock().now(), MINUTE)}")
    soon = iso(later(SystemClock().now(), 10 * DAY))
    assert cli("key", "create", merchant.id, "--env", "live", "--expires-at", soon).code == 0
    cli("key", "create", merchant.id, "--env", "live", "--expires-at", iso(later(SystemClock().now(), 40 * DAY)))
    said = _checks(cli)
    [pending] = said["stuck payments and refunds"]["rows"]
    assert (pending["type"], pending["operator"], pending["count"]) == ("payment", "mtn", 1)
    late = {row["queue"] for row in said["queues"]["rows"]}
    assert late == {"payments to poll", "webhook deliveries"}
    [failing] = said["webhook endpoints"]["rows"]
    assert (failing["destination"], failing["retrying"], failing["abandoned"]) == ("localhost:9", 1, 0)
    [expiring] = said["API keys"]["rows"]
    assert expiring["expires_at"] == soon
    assert [(row["kind"], row["count"]) for row in said["incidents"]["rows"]] == [
        ("mismatch", 1),
        ("unmatched_callbacks", 1),
    ]
    assert "to enter the hash chain" in said["ledger hash chain"]["problems"][0]
    assert said["ledger audit"]["problems"] == ["there has been none yet: `guichet ledger audit`"]
    await raw_sql.run("UPDATE postings SET amount = amount + 1")
    assert cli("ledger", "audit").code == 1
    assert "it found: Payment " in _checks(cli)["ledger audit"]["problems"][0]
    await raw_sql.run(f"UPDATE ledger_audits SET fault = NULL, finished_at = {SystemClock().now() - 8 * DAY}")
    assert _checks(cli)["ledger audit"]["problems"] == ["the last one is 8 days old"]
    assert said["published heads"]["problems"] == ["they never left the machine: does a worker run?"]
    await raw_sql.run(f"UPDATE published_heads SET published_at = {SystemClock().now() - 3 * HOUR}")
    [stale] = _checks(cli)["published heads"]["problems"]
    assert stale.startswith("they last left the machine 3 hours ago")
    shown = cli("doctor")
    assert shown.code == 1
    assert shown.out.count("✗") == 8


async def test_doctor_reports_a_failing_route(settings: Settings, cli: Cli) -> None:
    """Refusals by customers do not count as failures of the route."""
    op, down = ScriptedProvider(), ScriptedProvider()
    op.script("initiate", Refused("rejected_by_payer"), done)
    down.script("initiate", NotProcessed("configuration"), NotProcessed("operator_unavailable"), done)
    connected: dict[str, Any] = {
        "accounts": {"op": op, "down": down},
        "routes": {"mtn": ["op"], "moov": ["down"]},
    }
    async with open_service(settings, clock_of_the_machine(), **connected) as service:
        merchant = (await service.merchant("Shop")).live
        body = {"amount": 5000, "phone_number": "2290197000000"}
        paid = [
            (await merchant.post("/payments", {**body, "operator": operator})).status
            for operator in ("mtn", "mtn", "moov", "moov", "moov")
        ]
    assert paid == [402, 201, 500, 402, 201]
    cli("ledger", "audit")
    said = _checks(cli)
    assert said["routes"]["rows"] == [{"provider_account": "down", "operator": "moov", "failed": 2, "succeeded": 1}]
    assert "`guichet providers check`" in said["routes"]["problems"][0]
    assert {name for name, check in said.items() if not check["ok"]} == {"routes", "incidents"}
    assert [row["kind"] for row in said["incidents"]["rows"]] == ["misconfigured_route"]


def _checks(cli: Cli) -> Any:
    done = cli("doctor", "--json")
    assert done.code == 1
    said = json.loads(done.out)
    assert said["healthy"] is False
    return said["checks"]


async def test_doctor_reports_a_low_and_an_unreadable_balance_with_a_provider(settings: Settings, cli: Cli) -> None:
    async with open_service(settings, clock_of_the_machine()) as service:
        db, now = service.ctx.db, SystemClock().now()
        bounds = {"disbursement": Hundredths(5000_00), "collection": Hundredths(10_00)}
        found = [FloatBalance(wallet, Hundredths(900_00), "XOF") for wallet in bounds]
        await provider_balances.claim_due(db, ["mtn_benin"], now)
        await provider_balances.store(db, "mtn_benin", found, bounds, now)
        await provider_balances.claim_due(db, ["wave_senegal"], now)
        await provider_balances.read(service.ctx.db, service.ctx.clock, "wave_senegal", _Unreadable())
    said = _checks(cli)["balances with providers"]
    assert said["problems"] == [
        "900 XOF with mtn_benin disbursement, below the bound of 5000: fill it, refunds are paid from it",
        "the balance with wave_senegal cannot be read: 401 api-key-revoked",
    ]


class _Unreadable:
    float_alert_below: Mapping[str, Hundredths] = {}

    async def balances(self) -> list[FloatBalance] | Unknown:
        return Unknown("401 api-key-revoked")


async def test_heads_are_not_missed_before_a_worker_could_publish_them(settings: Settings, cli: Cli) -> None:
    """After an upgrade, or an installation, doctor is run at once."""

    def missed() -> bool:
        problems: list[str] = _checks(cli)["published heads"]["problems"]
        return problems == ["they never left the machine: does a worker run?"]

    cli("merchant", "create", "Awa")  # An act, so there is a head.
    async with open_service(settings, clock_of_the_machine()) as service:
        db, now = service.ctx.db, SystemClock().now()
        assert not missed()
        await claim_turn(db, TURN, now, PUBLISH_EVERY)
        assert not missed()
        await claim_turn(db, TURN, later(now, PUBLISH_EVERY), -PUBLISH_EVERY)  # As if it had begun a turn ago.
        assert missed()
