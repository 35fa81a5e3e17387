"""`guichet check-config`: what would keep a server from starting, or from working, is said before."""

import asyncio
import json
import re
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import trustme

from guichet.cli.environment_checks import ENVIRONMENT_FILE, readable_secrets
from guichet.settings import Settings
from reliability.pgbouncer import keeps_statements
from tests.cli.conftest import Cli, CommandResult
from tests.conftest import SECRET_KEY
from tests.db.schema import name_revision
from tests.fakes.redis import running_redis
from tests.fakes.scripted_provider import ScriptedProvider, taken
from tests.ports import free_port
from tests.processes.bouncer import pgbouncer
from tests.service_fixture import open_service

PRODUCTION = {"GUICHET_PROFILE": "production", "GUICHET_PUBLIC_URL": "https://pay.example.com"}


def checked(done: CommandResult) -> dict[str, list[str]]:
    """The problems of each check; exit code 1 when there are any."""
    assert "Traceback" not in done.err, done
    found: dict[str, Any] = json.loads(done.out)
    problems = {name: check["problems"] for name, check in found["checks"].items()}
    assert found["healthy"] is not any(problems.values())
    assert done.code == (0 if found["healthy"] else 1)
    return problems


def problems(cli: Cli, *options: object) -> dict[str, list[str]]:
    return {name: each for name, each in checked(cli("check-config", "--json", *options)).items() if each}


def test_a_sound_environment_has_no_problem(cli: Cli, settings: Settings) -> None:
    cli("merchant", "create", "Awa")
    done = cli.having(**PRODUCTION)("check-config")
    assert done.code == 0, done
    assert "✗" not in done.out
    assert f"✓ database: {settings.database_address}, schema v" in done.out
    assert "✓ secret keys: 1, for 2 secrets" in done.out
    assert "production profile, https://pay.example.com" in done.out


def test_every_wrong_setting_is_named_at_once(sqlite_cli: Cli) -> None:
    found = problems(
        sqlite_cli.having(
            GUICHET_PROFILE="production",
            GUICHET_TRUSTED_PROXY="127.0.0.1/32",
            GUICHET_RATE_LIMIT="many",
            GUICHET_METRICS_TOKEN="hush",
        )
    )
    assert found["settings"][0] == "GUICHET_TRUSTED_PROXY is unknown; did you mean GUICHET_TRUSTED_PROXIES?"
    assert [each.split(" is wrong")[0] for each in found["settings"][1:3]] == [
        "GUICHET_RATE_LIMIT",
        "GUICHET_METRICS_TOKEN",
    ]
    missing = problems(sqlite_cli.having(GUICHET_PROFILE="production", GUICHET_SECRET_KEYS=""))
    assert [each.split()[0] for each in missing["settings"][:2]] == ["GUICHET_SECRET_KEYS", "GUICHET_PUBLIC_URL"]


async def test_what_is_wrong_with_the_database_is_said(cli: Cli, settings: Settings, tmp_path: Path) -> None:
    await name_revision(settings, "v0001")
    assert "was made by a development version" in problems(cli)["database"][0]
    await name_revision(settings, "v9999")
    assert "is older than the database" in problems(cli)["database"][0]
    if settings.embedded:
        nowhere = f"sqlite:///{tmp_path / 'none.db'}"
        assert not (tmp_path / "none.db").exists()
    else:
        nowhere = f"postgresql://guichet:hush-hush@127.0.0.1:{free_port()}/none"
    found = problems(cli.having(GUICHET_DATABASE_URL=nowhere))["database"]
    assert len(found) == 1
    assert not (tmp_path / "none.db").exists()


@pytest.mark.both_databases
def test_a_database_that_takes_no_write_is_a_problem(cli: Cli, settings: Settings) -> None:
    if settings.embedded:
        pytest.skip("tested with the disk, in test_full_disk.py")

    async def refuse_writes() -> None:
        connection = await asyncpg.connect(settings.database_url)
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await connection.close()

    asyncio.run(refuse_writes())
    assert problems(cli)["database"] == ["nothing can be written: the database is read-only"]


def test_a_key_that_reads_no_stored_secret_is_a_problem(cli: Cli) -> None:
    cli("merchant", "create", "Awa")
    other = cli("secret-key").out.strip()
    assert "merchant 1 (" in problems(cli.having(GUICHET_SECRET_KEYS=other))["secret keys"][0]
    assert problems(cli.having(GUICHET_SECRET_KEYS=f"{other},{SECRET_KEY}")) == {}


def test_the_providers_file_and_the_catalogue_are_read(sqlite_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "providers.toml"
    file.write_text('[accounts.one]\nprovider = "feexpay"\nbase_url = "http://127.0.0.1:9"\nshop = "s"\n')
    found = problems(sqlite_cli.having(GUICHET_PROVIDERS_FILE=str(file)))
    assert found == {"providers": ["providers.toml, line 1: [accounts.one] api_key is missing."]}
    file.write_text("modes = 3")
    assert "payment modes" in problems(sqlite_cli.having(GUICHET_CATALOGUE_FILE=str(file)))
    assert problems(sqlite_cli.having(GUICHET_EGRESS_CA_FILE=str(file)))["settings"][0] == (
        f"GUICHET_EGRESS_CA_FILE is wrong: {file} is not a PEM file of certificates."
    )


def test_a_damaged_development_key_is_a_problem(fresh: Cli) -> None:
    fresh("merchant", "create", "Awa")
    key = fresh.folder / "var" / "secret.key"
    key.write_text("nonsense")
    assert problems(fresh)["secret keys"][0].startswith(f"The development key in {key} cannot be used: ")


def test_redis_that_is_away_is_a_problem(sqlite_cli: Cli, tmp_path: Path) -> None:
    with running_redis(tmp_path) as redis:
        cli = sqlite_cli.having(GUICHET_REDIS_URL=redis.url)
        assert problems(cli) == {}
        redis.stop()
        assert "GUICHET_REDIS_URL: " in problems(cli)["Redis"][0]


@pytest.mark.both_databases
def test_the_address_for_wake_ups_is_tried(cli: Cli, settings: Settings) -> None:
    if settings.embedded:
        pytest.skip("there are no wake-ups")
    assert problems(cli.having(GUICHET_LISTEN_URL=settings.database_url)) == {}
    away = f"postgresql://u:hush-hush@127.0.0.1:{free_port()}/none"
    assert "GUICHET_LISTEN_URL: " in problems(cli.having(GUICHET_LISTEN_URL=away))["wake-ups"][0]


def certificate(folder: Path, name: str, **ends: int) -> tuple[object, ...]:
    """Options of `serve` for a certificate that ends in so many days."""
    folder.mkdir()
    until = datetime.now(UTC) + timedelta(**ends)
    made = trustme.CA().issue_cert(name, not_after=until, not_before=until - timedelta(days=400))
    made.private_key_and_cert_chain_pem.write_to_path(str(folder / "both.pem"))
    (folder / "both.pem").chmod(0o600)
    return ("--ssl-certfile", folder / "both.pem")


def test_certificates_are_checked(sqlite_cli: Cli, tmp_path: Path) -> None:
    cli = sqlite_cli.having(**PRODUCTION)
    assert problems(cli, *certificate(tmp_path / "good", "pay.example.com", days=90)) == {}
    assert problems(cli, *certificate(tmp_path / "wild", "*.example.com", days=90)) == {}
    foreign = problems(cli, *certificate(tmp_path / "foreign", "example.com", days=90))["certificate"]
    assert foreign == ["it does not name pay.example.com, the host of GUICHET_PUBLIC_URL"]
    soon = problems(cli, *certificate(tmp_path / "soon", "pay.example.com", days=5, hours=1))["certificate"]
    assert soon[0].startswith("it expires in 5 days")
    gone = problems(cli, *certificate(tmp_path / "gone", "pay.example.com", days=-1))["certificate"]
    assert gone[0].startswith("it expired on ")
    key = trustme.CA().issue_cert("pay.example.com").private_key_pem
    key.write_to_path(str(tmp_path / "other.pem"))
    good = tmp_path / "good" / "both.pem"
    other = problems(cli, "--ssl-certfile", good, "--ssl-keyfile", tmp_path / "other.pem")["certificate"]
    assert other[0].startswith("No certificate with its unencrypted key is in ")
    assert "belongs to an --ssl-certfile" in cli("check-config", "--ssl-keyfile", good).refusal


def test_no_secret_is_shown(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "providers.toml"
    file.write_text(
        '[accounts.one]\nprovider = "feexpay"\nbase_url = "http://127.0.0.1:9/simulator/feexpay"\nshop = "s"\n'
        'api_key = { env = "FEEXPAY_KEY" }\n'
    )
    environ = {
        "GUICHET_PROVIDERS_FILE": str(file),
        "FEEXPAY_KEY": "hush-feexpay",
        "GUICHET_METRICS_TOKEN": "hush-metrics-token",
        "GUICHET_REDIS_URL": f"redis://:hush-redis@127.0.0.1:{free_port()}/0",
        "GUICHET_DATABASE_URL": f"postgresql://u:hush-db@127.0.0.1:{free_port()}/none?sslpassword=hush-ssl",
    }
    for options in ((), ("--json",)):
        for each in (cli.having(**environ), cli.having(**environ, GUICHET_RATE_LIMIT="many")):
            done = each("check-config", *options)
            assert done.code == 1
            assert "hush" not in done.out + done.err, done
            assert SECRET_KEY not in done.out + done.err


def test_secrets_that_others_may_read_are_a_problem(sqlite_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "providers.toml"
    file.write_text("")
    cli = sqlite_cli.having(**PRODUCTION, GUICHET_PROVIDERS_FILE=str(file))
    for mode, wrong in ((0o644, True), (0o640, False), (0o600, False)):
        file.chmod(mode)
        assert ("secrets in files" in problems(cli)) is wrong
    file.chmod(0o644)
    assert f"{file} has mode 0644" in problems(cli)["secrets in files"][0]
    assert readable_secrets([file, None, tmp_path / "none"]).problems
    assert Path("/etc/guichet/guichet.env") == ENVIRONMENT_FILE


@pytest.mark.parametrize("address", ["https://localhost", "https://127.0.0.1:8443", "https://pay.localhost"])
def test_a_public_address_of_this_machine_is_a_problem(sqlite_cli: Cli, address: str) -> None:
    found = problems(sqlite_cli.having(**{**PRODUCTION, "GUICHET_PUBLIC_URL": address}))
    assert f"GUICHET_PUBLIC_URL is {address}" in found["settings"][0]


def test_a_forgotten_profile_is_a_problem(sqlite_cli: Cli) -> None:
    found = problems(sqlite_cli.having(GUICHET_PUBLIC_URL="https://pay.example.com"))
    assert "GUICHET_PROFILE is development" in found["settings"][0]
    assert "live payments go to the simulator" in sqlite_cli("check-config").out


def test_a_database_on_another_machine_must_be_reached_encrypted(sqlite_cli: Cli) -> None:
    """192.0.2.1 is nobody's address: the check of the settings does not wait for it."""
    url = "postgresql://guichet:hush@192.0.2.1/guichet"
    for query, wrong in (("", True), ("?sslmode=prefer", True), ("?sslmode=require", False)):
        cli = sqlite_cli.having(**PRODUCTION, GUICHET_DATABASE_URL=url + query)
        assert any("may be read" in each for each in problems(cli).get("settings", [])) is wrong
    assert "no sslmode" in problems(sqlite_cli.having(**PRODUCTION, GUICHET_DATABASE_URL=url))["settings"][0]


def as_role(settings: Settings, rights: str) -> str:
    """The address of the same database as a role that may do this."""

    async def create() -> str:
        connection = await asyncpg.connect(settings.database_url)
        role = f"role_{secrets.token_hex(4)}"
        await connection.execute(f"CREATE ROLE {role} LOGIN; GRANT {rights} ON ALL TABLES IN SCHEMA public TO {role}")
        await connection.close()
        return role

    return re.sub(r"//[^@/]*@", f"//{asyncio.run(create())}@", settings.database_url)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_role_that_may_not_do_everything_or_may_do_too_much_is_named(cli: Cli, settings: Settings) -> None:
    def with_rights(rights: str) -> dict[str, Any]:
        url = as_role(settings, rights)
        found: dict[str, Any] = json.loads(cli.having(GUICHET_DATABASE_URL=url)("check-config", "--json").out)
        return dict(found["checks"]["database role"])

    assert with_rights("ALL")["problems"] == []
    (lacking,) = with_rights("SELECT, UPDATE, DELETE")["problems"]
    assert "INSERT on api_keys" in lacking
    superuser = json.loads(cli("check-config", "--json").out)["checks"]["database role"]
    assert superuser["problems"] == []
    assert "is a superuser" in superuser["warnings"][0]
    assert "! database role" in cli("check-config").out


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_pgbouncer_stands_where_the_settings_say_so(cli: Cli, settings: Settings) -> None:
    direct = problems(cli.having(GUICHET_PGBOUNCER="yes"))["database role"]
    assert "to no PgBouncer" in direct[0]
    with pgbouncer(settings.database_url) as url:
        bounced = cli.having(GUICHET_DATABASE_URL=url)
        assert problems(bounced.having(GUICHET_PGBOUNCER="yes")) == {}
        kept = "keeps" if keeps_statements() else "keeps no"
        assert f"PgBouncer {kept} prepared statements" in bounced.having(GUICHET_PGBOUNCER="yes")("check-config").out
        assert "leads to PgBouncer" in problems(bounced)["database role"][0]


async def test_an_account_that_left_the_file_while_payments_are_pending_is_named(
    cli: Cli, settings: Settings, tmp_path: Path
) -> None:
    op = ScriptedProvider()
    op.script("initiate", taken)
    async with open_service(settings, accounts={"renamed": op}, routes={"mtn": ["renamed"]}) as service:
        await (await service.merchant()).live.pay()
    file = tmp_path / "providers.toml"
    account = '[accounts.{}]\nprovider = "feexpay"\nbase_url = "http://127.0.0.1:9"\nshop = "s"\napi_key = "k"\n'
    configured = cli.having(GUICHET_PROVIDERS_FILE=str(file))
    file.write_text(account.format("other"))
    found = await asyncio.to_thread(problems, configured)
    assert "1 live payments and refunds are pending over renamed" in found["accounts in use"][0]
    told = json.loads((await asyncio.to_thread(configured, "doctor", "--json")).out)["checks"]["accounts in use"]
    assert (told["ok"], len(told["warnings"])) == (True, 1)
    file.write_text(account.format("renamed"))
    assert "accounts in use" not in await asyncio.to_thread(problems, configured)
