"""Each command says which database it uses, and none but those that start something creates one."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from guichet.cli.arguments import EXAMPLE_REFERENCE
from guichet.settings import Settings
from guichet.settings.parsers import shown_address
from tests.cli.conftest import Cli, cli_for
from tests.ports import free_port

pytestmark = pytest.mark.both_databases

LOOKING = (
    ("doctor",),
    ("doctor", "--json"),
    ("ledger", "audit"),
    ("ledger", "statement", "1", "XOF"),
    ("audit-log", "verify"),
    ("audit-log", "list"),
    ("incidents",),
    ("merchant", "list"),
    ("key", "list", "1"),
    ("wallet", "show", "1"),
    ("mode", "disable", "mtn"),
    ("delivery", "list"),
    ("dispute", "list"),
    ("late-money", "list"),
    ("reconcile", "--runs"),
    ("rotate-secrets",),
    ("worker",),
)


#: What changes the books, or asks the providers beside them.
DECIDING = (
    ("reconcile", "feexpay", "--fetch", "--from", "2026-11-01"),
    ("payment", "settle", EXAMPLE_REFERENCE, "--succeeded", "--evidence", "seen", "--by", "Awa"),
    ("refund", "settle", EXAMPLE_REFERENCE, "--failed", "--evidence", "seen", "--by", "Awa"),
    ("late-money", "resolve", EXAMPLE_REFERENCE, "--to", "wallet", "--evidence", "seen", "--by", "Awa"),
    ("late-money", "resolve", EXAMPLE_REFERENCE, "--to", "payer", "--evidence", "seen", "--by", "Awa"),
)
#: What asks the providers alone: none answers here.
ASKING = (
    ("providers", "check"),
    ("providers", "check", "--deep"),
    ("providers", "balances"),
    ("providers", "try", "feexpay", "--phone", "2290197000000", "--operator", "mtn", "--wait", "1", "--yes"),
    ("check-config",),
    ("migrate", "--plan"),
    ("secret-key",),
)


@pytest.fixture(params=["sqlite", "postgresql"])
def missing(request: pytest.FixtureRequest, base_settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """Settings of a file that does not exist, or of a database without tables."""
    home = tmp_path / "home"
    if request.param == "sqlite":
        yield replace(base_settings, home=home, database_url=f"sqlite:///{home / 'guichet.db'}")
        return
    server: str = request.getfixturevalue("postgres_server")
    run_sql = request.getfixturevalue("postgres_sql")
    run_sql("CREATE DATABASE nothing_in_it")
    yield replace(base_settings, home=home, database_url=server.replace("/postgres?", "/nothing_in_it?"))
    run_sql("DROP DATABASE nothing_in_it WITH (FORCE)")


def tables(settings: Settings) -> int:
    async def count() -> int:
        connection = await asyncpg.connect(settings.database_url)
        try:
            return int(await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
        finally:
            await connection.close()

    return int(settings.sqlite_path.exists()) if settings.embedded else asyncio.run(count())


def test_what_only_looks_creates_no_database(missing: Settings, tmp_path: Path) -> None:
    cli = Cli(cli_for(missing).environ, tmp_path)
    for command in LOOKING:
        assert cli(*command).refusal == (
            f"There is no Guichet database at {missing.database_address}: is the environment loaded? "
            "`guichet migrate` creates it."
        ), command
        assert tables(missing) == 0, command
    assert cli("migrate", "--plan", "--json").json["from"] is None
    assert tables(missing) == 0
    assert cli("migrate").code == 0
    assert cli("merchant", "list", "--json").json == {"merchants": []}


def test_what_is_refused_and_what_only_asks_leaves_an_empty_folder_empty(fresh: Cli) -> None:
    """Without any setting: no data folder, no database, no development key, no lock."""
    cli = fresh.having(GUICHET_PUBLIC_URL=f"http://127.0.0.1:{free_port()}")
    for command in (*LOOKING, *DECIDING):
        assert cli(*command).refusal.startswith("There is no Guichet database at "), command
        assert not (fresh.folder / "var").exists(), command
    for asking in ASKING:
        assert "Traceback" not in cli(*asking).err, asking
        assert not (fresh.folder / "var").exists(), asking


def test_in_development_what_starts_something_creates_the_file(fresh: Cli) -> None:
    assert fresh("merchant", "create", "Awa").code == 0
    assert fresh("merchant", "list").code == 0


def test_in_production_only_migrate_creates_the_file(fresh: Cli) -> None:
    key = fresh("secret-key").out.strip()
    cli = fresh.having(
        GUICHET_PROFILE="production", GUICHET_PUBLIC_URL="https://pay.example.com", GUICHET_SECRET_KEYS=key
    )
    for command in (("serve", "--port", "0"), ("serve", "--workers", "2"), ("merchant", "create", "Awa")):
        assert cli(*command).refusal.startswith("There is no Guichet database at "), command
    assert not (fresh.folder / "var").exists()
    assert cli("migrate").code == 0
    assert cli("merchant", "create", "Awa").code == 0


def test_commands_name_their_database_without_its_password(cli: Cli, settings: Settings) -> None:
    for command in (("merchant", "list", "--json"), ("ledger", "audit", "--json"), ("migrate", "--json")):
        done = cli(*command)
        assert done.json
        assert done.err.splitlines()[0] == f"Database: {settings.database_address}"
    assert "Database" not in cli("secret-key").err


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////var/lib/guichet/guichet.db", "/var/lib/guichet/guichet.db"),
        ("postgresql://guichet:secret@db/guichet", "postgresql://guichet@db/guichet"),
        ("postgresql://guichet:se@cret@db:5432,b:5432/g", "postgresql://guichet@db:5432,b:5432/g"),
        ("postgresql://guichet:secr/et@db/guichet", "postgresql://guichet@db/guichet"),
        ("postgresql://guichet:secr?et@db/guichet", "postgresql://guichet@db/guichet"),
        ("postgresql://db/guichet", "postgresql://db/guichet"),
        (
            "postgresql:///g?host=/run/postgresql&user=u&password=secret&target_session_attrs=primary",
            "postgresql:///g?host=/run/postgresql&user=u",
        ),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert shown_address(url) == shown


def test_a_merchants_limits_are_shown_changed_and_removed(sqlite_cli: Cli) -> None:
    sqlite_cli("merchant", "create", "Awa")
    assert "as for everybody" in sqlite_cli("merchant", "limits", 1).out
    for wrong in (("--rate", "0"), ("--payment", "x"), ("--day", "-1")):
        assert "is expected" in sqlite_cli("merchant", "limits", 1, *wrong).misuse
    changed = sqlite_cli("merchant", "limits", 1, "--rate", "600", "--payment", "200000", "--json").json["limits"]
    assert changed == {"requests_per_minute": 600, "payment": "200000", "day": None}
    changed = sqlite_cli("merchant", "limits", 1, "--rate", "none", "--day", "1000000", "--json").json["limits"]
    assert changed == {"requests_per_minute": None, "payment": "200000", "day": "1000000"}
    assert sqlite_cli("merchant", "limits", 2).refusal
    assert sqlite_cli("audit-log", "list", "--json").out.count("merchant.limits_changed") == 2


def test_a_keys_end_is_set_once_it_works(sqlite_cli: Cli) -> None:
    sqlite_cli("merchant", "create", "Awa")
    ended = sqlite_cli("key", "expire", 1, "2090-01-31T00:00:00Z", "--json").json
    assert (ended["id"], ended["state"], ended["expires_at"][:10]) == (1, "active", "2090-01-31")
    assert "would never work" in sqlite_cli("key", "expire", 1, "2020-01-31").refusal
    sqlite_cli("key", "revoke", 2)
    assert "works no more" in sqlite_cli("key", "expire", 2, "2090-01-31").refusal
    assert sqlite_cli("key", "expire", 3, "2090-01-31").refusal
    assert sqlite_cli("audit-log", "list", "--json").out.count("key.expiry_set") == 1
