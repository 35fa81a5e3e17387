"""Heads leave the machine: when, in which form, and until the receiver has them."""

import json
import re
from dataclasses import replace

from guichet.clock import HOUR, MINUTE, SECOND
from guichet.settings import Settings
from tests.cli.conftest import Cli
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ReceivedRequest
from tests.ledger.ledger_history import yesterday
from tests.service_fixture import ServiceFixture
from tests.webhooks.receivers import event, in_turn, is_genuine, receiver, status

SECRET = "a secret of the receiver"


async def pay(service: ServiceFixture) -> None:
    """One payment that is in the hash chain afterwards."""
    merchant = await service.merchant()
    await merchant.live.pay("0000")
    await service.run_worker(20)
    await service.run_worker(200)


async def test_heads_are_published_when_they_changed_and_once_an_hour(settings: Settings) -> None:
    file = settings.home / "heads.jsonl"
    async with yesterday(replace(settings, ledger_heads=file)) as service:
        await service.run_worker(600)
        assert not file.exists(), "nothing happened yet"
        await pay(service)
        await service.run_worker(5 * MINUTE // SECOND)
        [first] = map(json.loads, file.read_text().splitlines())
        await service.run_worker(5 * MINUTE // SECOND)
        assert len(file.read_text().splitlines()) == 1, "nothing changed"
        await service.run_worker(HOUR // SECOND)
        _, repeated = map(json.loads, file.read_text().splitlines())
        assert {**repeated, "at": first["at"]} == first
        await pay(service)
        await service.run_worker(5 * MINUTE // SECOND)
        *_, latest = map(json.loads, file.read_text().splitlines())
    assert sorted(latest) == sorted(["event", "at", "database", "posting_id", "link", "digest", "act", "act_digest"])
    assert (latest["event"], latest["link"], latest["act"]) == ("ledger.head", 2, 0)
    assert latest["posting_id"] > first["posting_id"]
    assert re.fullmatch("[0-9a-f]{64}", latest["digest"])


async def test_a_line_that_a_crash_left_torn_spoils_no_other(settings: Settings) -> None:
    file = settings.home / "heads.jsonl"
    file.write_text('{"event":"led')
    async with yesterday(replace(settings, ledger_heads=file)) as service:
        await pay(service)
        await service.run_worker(5 * MINUTE // SECOND)
    _, whole = file.read_text().splitlines()
    assert json.loads(whole)["event"] == "ledger.head"


async def test_the_receiver_gets_the_newest_heads_until_it_takes_them(
    settings: Settings, authority: CertificateAuthority
) -> None:
    async with receiver(authority, in_turn(status(500), status(302), status(204))) as server:
        sending = replace(settings, ledger_heads=server.url(), ledger_heads_secret=SECRET)
        async with yesterday(sending) as service:
            await pay(service)
            for _ in range(5):
                await service.run_worker(5 * MINUTE // SECOND)
        received: list[ReceivedRequest] = server.received
    assert len(received) == 3
    assert [event(request) for request in received] == ["ledger.head"] * 3
    assert all(
        is_genuine(request, SECRET, int(re.findall(r"t=(\d+)", request.headers["x-service-signature"])[0]))
        for request in received
    )
    digests = {json.loads(request.body)["digest"] for request in received}
    assert len(digests) == 1


async def test_two_workers_publish_once(settings: Settings) -> None:
    file = settings.home / "heads.jsonl"
    async with yesterday(replace(settings, ledger_heads=file)) as service:
        await pay(service)
        other = service.opened.worker()
        await service.run_worker(5 * MINUTE // SECOND)
        await other.run_until_idle()
        assert len(file.read_text().splitlines()) == 1


async def test_a_line_is_logged_whatever_the_level(sqlite_settings: Settings, sqlite_cli: Cli) -> None:
    async with yesterday(sqlite_settings) as service:
        await pay(service)
    said = sqlite_cli.having(GUICHET_LOG_LEVEL="error")("ledger", "audit")
    [line] = [json.loads(line) for line in said.err.splitlines() if not line.startswith("Database: ")]
    assert (line["event"], line["level"], line["link"]) == ("ledger.head", "info", 1)


def test_a_receiver_needs_a_secret_and_a_file_its_folder(fresh: Cli) -> None:
    for value, refusal in (
        ("https://heads.example.com/x", "GUICHET_LEDGER_HEADS_SECRET is required when GUICHET_LEDGER_HEADS is"),
        ("http://heads.example.com/x", "GUICHET_LEDGER_HEADS is wrong: must be log, file:/absolute/path or an https"),
        ("https://user:key@heads.example.com/x", "GUICHET_LEDGER_HEADS is wrong: must be log, file:/absolute/path or"),
        ("file:heads.jsonl", "GUICHET_LEDGER_HEADS is wrong: file:heads.jsonl must be file: and the absolute path"),
        ("file:/nowhere/at/all/heads.jsonl", "GUICHET_LEDGER_HEADS is wrong"),
    ):
        assert fresh.having(GUICHET_LEDGER_HEADS=value)("merchant", "list").refusal.startswith(refusal)
