"""`guichet serve`, `worker`, `migrate`: what stops them from starting, and what a running server sees."""

import asyncio
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from guichet.db.schema import REQUIRED_REVISION
from guichet.settings import VARIABLES, Settings
from tests.cli.conftest import Cli, cli_for, until
from tests.patience import PATIENCE
from tests.ports import free_port

#: A value that cannot be meant, for each variable.
WRONG = {
    "GUICHET_HOME": "/dev/null/here",
    "GUICHET_DATABASE_URL": "mysql://localhost/guichet",
    "GUICHET_PGBOUNCER": "maybe",
    "GUICHET_LISTEN_URL": "sqlite:///guichet.db",
    "GUICHET_PUBLIC_URL": "pay.example.com",
    "GUICHET_PROFILE": "prod",
    "GUICHET_RATE_LIMIT": "-1",
    "GUICHET_REDIS_URL": "http://localhost:6379",
    "GUICHET_PAGE_RATE_LIMIT": "many",
    "GUICHET_PHONE_PROMPTS": "three",
    "GUICHET_LINK_PROMPTS": "-60",
    "GUICHET_LINK_RESERVATION_MINUTES": "0",
    "GUICHET_TIME_ZONE": "Africa/Cotonou",
    "GUICHET_TRUSTED_PROXIES": "10.0.0.0/33",
    "GUICHET_IPV6_PREFIX": "129",
    "GUICHET_MAX_CONNECTIONS": "0",
    "GUICHET_CONNECTIONS_PER_ADDRESS": "many",
    "GUICHET_SECRET_KEYS": "short",
    "GUICHET_EGRESS_ALLOW": "10.0.0.1/8",
    "GUICHET_EGRESS_CA_FILE": "/nowhere/ca.pem",
    "GUICHET_CATALOGUE_FILE": "/nowhere/catalogue.toml",
    "GUICHET_PROVIDERS_FILE": "/nowhere/operators.toml",
    "GUICHET_ALLOW_SIMULATOR": "perhaps",
    "GUICHET_KEEP_DELIVERIES_DAYS": "90d",
    "GUICHET_KEEP_INCIDENTS_DAYS": "40000",
    "GUICHET_LEDGER_HEADS": "http://heads.example.com",
    "GUICHET_LEDGER_HEADS_SECRET": "short",
    "GUICHET_SMTP_URL": "http://mail.example.com",
    "GUICHET_MAIL_FROM": "Guichet",
    "GUICHET_TREASURY_ONE_PERSON_BELOW": "few",
    "GUICHET_LOG_LEVEL": "loud",
    "GUICHET_METRICS_PORT": "70000",
    "GUICHET_METRICS_HOST": "localhost",
    "GUICHET_METRICS_TOKEN": "short",
    "GUICHET_OTLP_ENDPOINT": "127.0.0.1:4318",
}


def test_every_setting_has_a_wrong_value_here() -> None:
    assert WRONG.keys() == {variable.name for variable in VARIABLES}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_stops_the_start(fresh: Cli, name: str) -> None:
    sentence = fresh.having(**{name: WRONG[name]})("serve", "--port", free_port()).refusal
    assert sentence.startswith(f"{name} is wrong: ")


#: What the parsers of an address and of a path raise, beside what they refuse themselves.
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GUICHET_HOME", "~nobody-at-all/var"),
        ("GUICHET_HOME", "x" * 300),
        ("GUICHET_PROVIDERS_FILE", "~nobody-at-all/providers.toml"),
        ("GUICHET_PUBLIC_URL", "http://pay.example.com:hush"),
        ("GUICHET_REDIS_URL", "redis://:hush/hush@127.0.0.1"),
        ("GUICHET_LEDGER_HEADS", "https://[heads"),
        ("GUICHET_OTLP_ENDPOINT", "http://127.0.0.1:99999"),
    ],
)
def test_a_value_that_cannot_be_read_stops_the_start(fresh: Cli, name: str, value: str) -> None:
    sentence = fresh.having(**{name: value})("serve", "--port", free_port()).refusal
    assert sentence.startswith(f"{name} is wrong: ")
    assert "hush" not in sentence, "it may be a password"


ACCOUNT = """
[accounts.one]
provider = "mtn"
base_url = "http://127.0.0.1:9"
target_env = "sandbox"
subscription_key = "a"
api_user = "b"
api_key = "c"
"""
#: Content of the file, what is said of it.
UNUSABLE = {
    "GUICHET_EGRESS_CA_FILE": [
        (b"-----BEGIN CERTIFICATE-----\nnonsense\n", "is not a PEM file of certificates."),
        (b"", "is not a PEM file of certificates."),
    ],
    "GUICHET_CATALOGUE_FILE": [(b"\xff", "is not a TOML file"), (b"modes = 3", "at least one [[modes]] entry")],
    "GUICHET_PROVIDERS_FILE": [
        (b"\xff", "cannot be read"),
        (b"accounts = 3", "[accounts] must be a table"),
        (ACCOUNT.replace("127.0.0.1:9", "[one").encode(), "base_url must be an http or https address"),
        (ACCOUNT.replace('"sandbox"', '"mars"').encode(), "target_env must be one of"),
    ],
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_cannot_be_used_stops_the_start(fresh: Cli, tmp_path: Path, name: str) -> None:
    file = tmp_path / "file"
    cli = fresh.having(**{name: str(file)})
    for content, said in UNUSABLE[name]:
        file.write_bytes(content)
        for command in (
            ("serve", "--port", free_port()),
            ("serve", "--workers", 2, "--port", free_port()),
            ("worker",),
        ):
            assert said in cli(*command).refusal, command
        if name == "GUICHET_PROVIDERS_FILE":
            assert said in cli("providers", "check").refusal
    assert not (fresh.folder / "var").exists()


def test_a_certificate_that_cannot_be_used_stops_the_start(fresh: Cli, tmp_path: Path) -> None:
    file = tmp_path / "both.pem"
    file.write_text("nonsense")
    for workers in (1, 2):
        refused = fresh("serve", "--port", free_port(), "--workers", workers, "--ssl-certfile", file)
        assert refused.refusal.startswith(f"No certificate with its unencrypted key is in {file}: ")
    assert not (fresh.folder / "var").exists()


def test_a_damaged_development_key_stops_the_start(fresh: Cli) -> None:
    assert fresh("merchant", "create", "Awa").code == 0
    key = fresh.folder / "var" / "secret.key"
    key.write_text("nonsense")
    for command in (("serve", "--port", free_port()), ("serve", "--workers", 2, "--port", free_port()), ("worker",)):
        assert fresh(*command).refusal.startswith(f"The development key in {key} cannot be used: "), command


def test_production_refuses_to_start_without_its_secrets(fresh: Cli) -> None:
    production = fresh.having(GUICHET_PROFILE="production", GUICHET_PUBLIC_URL="https://pay.example.com")
    assert production("serve").refusal.startswith("GUICHET_SECRET_KEYS is required in production")
    key = fresh("secret-key").out.strip()
    insecure = production.having(GUICHET_SECRET_KEYS=key, GUICHET_PUBLIC_URL="http://pay.example.com")
    assert insecure("serve").refusal == "GUICHET_PUBLIC_URL must be an https address in production."
    assert not (fresh.folder / "var").exists()


def test_an_unreachable_database_is_reported_in_one_sentence(fresh: Cli) -> None:
    lost = fresh.having(GUICHET_DATABASE_URL=f"postgresql://u:p@127.0.0.1:{free_port()}/none")
    for arguments in (("serve",), ("worker",), ("migrate",), ("merchant", "list")):
        assert "GUICHET_DATABASE_URL" in lost(*arguments).refusal


def test_a_missing_postgresql_schema_stops_the_start(
    fresh: Cli, postgres_server: str, base_settings: Settings, tmp_path: Path
) -> None:
    async def create() -> None:
        connection = await asyncpg.connect(postgres_server)
        await connection.execute("CREATE DATABASE no_schema")
        await connection.close()

    asyncio.run(create())
    url = postgres_server.replace("/postgres?", "/no_schema?")
    cli = cli_for(replace(base_settings, home=tmp_path, database_url=url))
    commands = (("serve", "--port", free_port()), ("serve", "--workers", 2), ("worker",), ("merchant", "list"))
    for arguments in commands:
        assert cli(*arguments).refusal.startswith("There is no Guichet database at postgresql://")
    first = cli("migrate", "--json").json
    again = cli("migrate", "--json").json
    assert (first["from"], first["to"]) == (None, REQUIRED_REVISION)
    assert (again["from"], again["to"]) == (REQUIRED_REVISION, REQUIRED_REVISION)
    with cli.running("serve") as server:
        server.stop()
    missing = cli.having(GUICHET_DATABASE_URL=postgres_server.replace("/postgres?", "/nobody_made_it?"))
    assert "nobody_made_it" in missing("serve").refusal


def test_a_second_server_on_the_embedded_database_is_refused(sqlite_cli: Cli) -> None:
    with sqlite_cli.running("serve") as server:
        for arguments in (("serve", "--port", free_port()), ("worker",), ("demo", "--port", free_port())):
            assert sqlite_cli(*arguments).refusal == (
                "Another Guichet service already uses this embedded database. "
                "Let it have more processes (--workers), or use PostgreSQL: set GUICHET_DATABASE_URL."
            )
        server.stop()
    with sqlite_cli.running("serve"):
        """The lock went with the process."""


def test_a_port_in_use_stops_the_start(fresh: Cli, sqlite_cli: Cli) -> None:
    with sqlite_cli.running("serve") as server:
        port = server.address.rpartition(":")[2]
        taken = f"Port {port} is already in use: stop what listens there, or choose another --port."
        for command in ("serve", "demo", "listen"):
            assert fresh(command, "--port", port).refusal == taken


def test_a_running_server_sees_every_change_within_a_second(cli: Cli) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json
    test, live = merchant["keys"]["test"], merchant["keys"]["live"]
    order = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002"}
    with cli.running("serve") as server:

        def status(key: str = test, body: object = None) -> int:
            method, path = ("GET", "/v1/balance") if body is None else ("POST", "/v1/payments")
            return server.call(method, path, key, body)[0]

        assert (status(), status(live), status(body=order)) == (200, 200, 201)

        cli("mode", "disable", "mtn", "--merchant", merchant["id"])
        assert until(lambda: status(body=order) == 422) < 1
        cli("mode", "enable", "mtn", "--merchant", merchant["id"])
        assert until(lambda: status(body=order) == 201) < 1
        cli("mode", "fee", "mtn", "--percent", "10", "--fixed", "1")

        def fee() -> float:
            quoted = server.call("POST", "/v1/payment-modes/fees", test, {"amount": 100, "operator": "mtn"})
            return float(quoted[1]["data"]["fee_amount"])

        assert until(lambda: fee() == 11) < 1

        cli("merchant", "status", merchant["id"], "suspended")
        assert until(lambda: status(live) == 403) < 1
        assert status() == 200

        more = cli("key", "create", merchant["id"], "--env", "test", "--json").json
        assert status(more["key"]) == 200
        cli("key", "revoke", more["id"])
        assert until(lambda: status(more["key"]) == 401) < 1
        assert status() == 200


def test_a_frozen_wallet_refuses_live_payments(cli: Cli) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json
    order = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002"}
    with cli.running("serve") as server:
        cli("wallet", "status", merchant["id"], "XOF", "Gelé")
        assert server.call("POST", "/v1/payments", merchant["keys"]["live"], order)[0] == 409
        assert server.call("POST", "/v1/payments", merchant["keys"]["test"], order)[0] == 201


def test_the_worker_runs_beside_a_server_without_one(cli: Cli, settings: Settings) -> None:
    """On PostgreSQL: what the server only stores, the worker carries on."""
    if settings.embedded:
        pytest.skip("the embedded database has one service")
    merchant = cli("merchant", "create", "Awa", "--json").json
    key = merchant["keys"]["test"]
    with cli.running("serve", "--no-worker") as server, cli.start("worker") as worker:
        body = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000000"}
        server.call("POST", "/v1/payments", key, body)

        def succeeded() -> bool:
            answer = server.call("GET", "/v1/payments?status=succeeded", key)[1]
            assert answer["success"] is True, answer
            return bool(answer["data"])

        until(succeeded)
        worker.terminate()
        assert worker.wait(timeout=PATIENCE) == 0
        server.stop()
