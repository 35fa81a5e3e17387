"""`guichet delivery …` in a process of its own: webhooks are sent again with the same id, body and address."""

import pytest

from guichet.settings import Settings
from tests.cli.conftest import Cli
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.clock import clock_of_the_machine
from tests.service_fixture import ServiceFixture, open_service
from tests.webhooks.receivers import DELAYS, in_turn, is_genuine, merchant_with_endpoint, receiver, status

BY = ("--by", "Awa Diop")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


async def _gave_up(service: ServiceFixture) -> None:
    for delay in (0, *DELAYS):
        await service.run_worker(delay)


async def test_a_webhook_is_sent_again_by_its_id(settings: Settings, cli: Cli, authority: CertificateAuthority) -> None:
    failures = [status(500)] * 5
    clock = clock_of_the_machine()
    async with receiver(authority, in_turn(*failures, status(200), status(204))) as server:
        async with open_service(settings, clock) as service:
            merchant, secret = await merchant_with_endpoint(service, server)
            await merchant.pay("0000")
            await _gave_up(service)
        (found,) = cli("delivery", "list", "--merchant", str(merchant.id), "--status", "failed", "--json").json[
            "deliveries"
        ]
        assert (found["attempts"], found["response_code"], found["delivered_at"]) == (5, 500, None)
        again = ("delivery", "resend", found["id"])
        assert cli(*again, *BY, "--json").json["status"] == "pending"
        assert cli(*again, *BY).refusal == "This delivery is still being tried."
        async with open_service(settings, clock) as service:
            await service.run_worker()
        shown = cli("delivery", "show", found["id"], "--json").json
        assert (shown["status"], shown["attempts"], shown["response_code"]) == ("success", 1, 200)
        assert shown["endpoint_now"] == shown["url"] == server.url()
        assert "is sent again to" in cli(*again, *BY).out, "a delivered one too"
        async with open_service(settings, clock) as service:
            await service.run_worker()
        assert len(server.received) == 7
    assert {request.headers["x-service-delivery"] for request in server.received} == {found["id"]}
    assert len({request.body for request in server.received}) == 1
    assert is_genuine(server.received[-1], secret, clock.now() // 1_000_000)
    acts = cli("audit-log", "list", "--about", found["id"], "--json").json["entries"]
    assert [act["action"] for act in acts] == ["delivery.resent"] * 2
    assert {act["before"]["status"] for act in acts} == {"failed", "success"}


async def test_all_failed_webhooks_of_a_merchant_are_sent_again(
    settings: Settings, cli: Cli, authority: CertificateAuthority
) -> None:
    clock = clock_of_the_machine()
    async with receiver(authority, in_turn(*[status(500)] * 20, status(200))) as server:
        async with open_service(settings, clock) as service:
            merchant, _ = await merchant_with_endpoint(service, server)
            other, _ = await merchant_with_endpoint(service, server)
            for each in (merchant, merchant, merchant, other):
                await each.post("/webhooks/test")
            await _gave_up(service)
            await merchant.post("/webhooks/test")
            await service.run_worker()  # Delivered: a bulk resend leaves it alone.
        bulk = ("delivery", "resend", "--merchant", str(merchant.id), "--since", "2000-01-01")
        assert cli(*bulk, *BY, "--json").json["resent"] == 3
        assert cli(*bulk, *BY, "--json").json["resent"] == 0, "they are being tried"
        async with open_service(settings, clock) as service:
            await service.run_worker()
        assert len(server.received) == 24
    found = cli("delivery", "list", "--json").json["deliveries"]
    assert sorted((each["merchant_id"], each["status"]) for each in found) == [
        *[(merchant.id, "success")] * 4,
        (other.id, "failed"),
    ]
    (act,) = cli("audit-log", "list", "--about", str(merchant.id), "--json").json["entries"][-1:]
    assert (act["action"], act["after"]["count"]) == ("deliveries.resent", 3)


async def test_a_disabled_endpoint_gets_nothing_again(
    sqlite_settings: Settings, sqlite_cli: Cli, authority: CertificateAuthority
) -> None:
    cli = sqlite_cli
    clock = clock_of_the_machine()
    async with receiver(authority, status(500)) as server, open_service(sqlite_settings, clock) as service:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.post("/webhooks/test")
        await service.run_worker()
        await merchant.put("/webhooks/endpoint", {"url": None})
    (found,) = cli("delivery", "list", "--json").json["deliveries"]
    assert found["status"] == "failed"
    assert cli("delivery", "resend", found["id"], *BY).refusal == "The merchant has disabled its endpoint."
    bulk = ("delivery", "resend", "--merchant", str(merchant.id), "--since", "2000-01-01")
    assert cli(*bulk, *BY, "--json").json["resent"] == 0


def test_wrong_arguments_are_refused(sqlite_cli: Cli) -> None:
    cli = sqlite_cli
    nothing = "00000000-0000-4000-8000-000000000000"
    assert cli("delivery", "show", nothing).refusal == f"There is no webhook with the id {nothing}."
    assert "either DELIVERY_ID or" in cli("delivery", "resend", *BY).misuse
    assert "either DELIVERY_ID or" in cli("delivery", "resend", nothing, "--merchant", "1", *BY).misuse
    assert "either DELIVERY_ID or" in cli("delivery", "resend", "--merchant", "1", *BY).misuse
    everything = ("delivery", "resend", "--merchant", "1", "--since", "2026-11-20", "--status", "success")
    assert "--status failed" in cli(*everything, *BY).misuse
    assert "id is expected" in cli("delivery", "resend", "d-1", *BY).misuse
    assert "one of pending" in cli("delivery", "list", "--status", "lost").misuse
