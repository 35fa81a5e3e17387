"""docs/renamed.md: each new name exists in what the service really shows, and no old name is left."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped,unused-ignore]
from cryptography.fernet import Fernet
from prometheus_client.parser import text_string_to_metric_families

from guichet.api.callbacks import callback_routes
from guichet.clock import DAY, MINUTE, SystemClock, iso, later
from guichet.db.tables import metadata
from guichet.provider_callbacks import unmatched as unmatched_callbacks
from guichet.providers.base import Accepted, NotProcessed
from guichet.settings import VARIABLES, Settings
from tests.cli.conftest import ROOT, Cli, CommandResult, cli_for
from tests.cli.tree import leaves
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.ledger.ledger_history import RawSql, yesterday
from tests.service_fixture import ServiceFixture, open_service

PAGE: Final = ROOT / "docs" / "renamed.md"
SEARCHED: Final = ("guichet", "guichet_simulator", "tests", "bench", "docs", "README.md", "CONTRIBUTING.md")
SUFFIXES: Final = frozenset({".py", ".md", ".toml", ".html", ".yml", ".json", ".txt", ".env", ".service"})
#: Old names that other things rightly have: a column of the simulator's own tables, variables for ranges of ids.
STILL_USED: Final = frozenset({"due_at", "first_id", "last_id"})
TOKEN: Final = "a-token-of-sixteen-or-more"

#: Sections of names that the whole repository is searched for.
NAMES: Final = (
    "Settings",
    "Commands",
    "Metrics",
    "Alerts",
    "Callback paths",
    "Tables",
    "Columns",
    "Log events",
    "Traces",
)

#: (the cells before it, old, new); the first is empty in tables of two columns.
Row = tuple[str, str, str]
Series = set[tuple[str, str, str]]


def rows(section: str, heading: str = "") -> list[Row]:
    """The rows of a section's table; `heading` is the line above it, where the section has several."""
    chapter = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = chapter[chapter.index(heading) :].split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    found: list[Row] = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        *before, old, new = re.findall(r"`([^`]+)`", line)
        found.append(("".join(before), old, new))
    assert found, section
    return found


def test_settings() -> None:
    names = {variable.name for variable in VARIABLES}
    for _, old, new in rows("Settings"):
        assert new in names
        assert old not in names


def test_commands() -> None:
    commands = {f"guichet {path}" for path, _ in leaves()}
    for _, old, new in rows("Commands"):
        assert new in commands
        assert old not in commands


def test_options() -> None:
    options = {path: {name for each in command.params for name in each.opts} for path, command in leaves()}
    for command, old, new in rows("Options"):
        assert new in options[command]
        assert old not in options[command]


def test_tables_and_columns() -> None:
    for _, old, new in rows("Tables"):
        assert new in metadata.tables
        assert old not in metadata.tables
    for table, old, new in rows("Columns"):
        columns = metadata.tables[table].c
        assert new in columns, table
        assert old not in columns, table


async def test_callback_paths(sqlite_service: ServiceFixture) -> None:
    paths = {re.sub(r"{\w+}", "{}", route.path) for route in callback_routes(sqlite_service.ctx)}
    for _, old, new in rows("Callback paths"):
        assert re.sub(r"{\w+}", "{}", new) in paths
        assert re.sub(r"{\w+}", "{}", old) not in paths


def test_the_providers_file() -> None:
    text = (ROOT / "guichet" / "data" / "simulated_providers.toml").read_text(encoding="utf-8")
    for _, old, new in rows("Providers' file"):
        assert re.search(rf"^(\[{new}\.|{new} = )", text, re.MULTILINE), new
        assert not re.search(rf"^(\[{old}\.|{old} = )", text, re.MULTILINE), old


def test_alerts() -> None:
    file = yaml.safe_load((ROOT / "docs" / "operations" / "alerts.yml").read_text(encoding="utf-8"))
    names = {rule["alert"] for group in file["groups"] for rule in group["rules"]}
    for _, old, new in rows("Alerts"):
        assert new in names
        assert old not in names


def test_log_events_and_traces() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "guichet").rglob("*.py"))
    for _, _, new in (*rows("Log events"), *rows("Traces")):
        assert f'"{new}"' in source


async def test_metrics(sqlite_settings: Settings) -> None:
    samples = await _scraped(sqlite_settings)
    names = {name for name, _, _ in samples} | {re.sub("_(bucket|sum|count)$", "", name) for name, _, _ in samples}
    labels = {(re.sub("_(bucket|sum|count)$", "", name), label) for name, label, _ in samples}
    for _, old, new in rows("Metrics"):
        assert new in names
        assert old not in names
    for metric, old, new in rows("Metrics", "Labels:"):
        assert (metric, new) in labels
        assert (metric, old) not in labels
    for selector, old, new in rows("Metrics", "Values of labels:"):
        metric, label = selector.rstrip("}").split("{")
        assert (metric, label, new) in samples
        assert (metric, label, old) not in samples


async def _scraped(settings: Settings) -> Series:
    """(series, label, value) of all that `/metrics` shows after one payment that no account takes."""
    down = ScriptedProvider()
    down.script("initiate", NotProcessed("configuration"))
    accounts: dict[str, Any] = {"accounts": {"down": down}, "routes": {"mtn": ["down"]}}
    async with open_service(replace(settings, metrics_token=TOKEN), **accounts) as service:
        await (await service.merchant()).live.post("/payments", PAYMENT)
        service.worker.start()
        await service.call("GET", "/healthz")
        answer = await service.call("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        await service.worker.stop()
    return {
        (sample.name, label, value)
        for family in text_string_to_metric_families(answer.raw.decode())
        for sample in family.samples
        for label, value in [("", ""), *sample.labels.items()]
    }


PAYMENT: Final = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000000"}


async def test_json_keys(sqlite_settings: Settings) -> None:
    cli = cli_for(sqlite_settings)
    await _trouble(sqlite_settings, cli)
    statement = sqlite_settings.home / "statement.csv"
    statement.write_text("reference,amount\nunknown,5\n", encoding="utf-8")
    other_key = cli.having(GUICHET_SECRET_KEYS=Fernet.generate_key().decode())
    printed = {
        "providers check": _keys(cli("providers", "check", "--json")),
        "incidents": _keys(cli("incidents", "--json")),
        "doctor": _keys(cli("doctor", "--json")),
        "ledger audit": _keys(cli("ledger", "audit", "--json")),
        "reconcile": _keys(cli("reconcile", "stripe", statement, "--json")),
        "rotate-secrets": _keys(other_key("rotate-secrets", "--json")),
    }
    assert printed.keys() == {command for command, _, _ in rows("JSON keys of `--json`")}
    for command, old, new in rows("JSON keys of `--json`"):
        assert new in printed[command], command
        assert old not in printed[command], command


async def _trouble(settings: Settings, cli: Cli) -> None:
    """A database of yesterday in which every check of `guichet doctor` finds something."""
    silent, down = ScriptedProvider(), ScriptedProvider()
    silent.script("initiate", Accepted(), done)
    silent.script("status", Accepted())
    down.script("initiate", NotProcessed("configuration"))
    accounts: dict[str, Any] = {"accounts": {"stripe": silent, "down": down}}
    async with yesterday(settings, **accounts, routes={"mtn": ["stripe"], "moov": ["down"]}) as service:
        merchant, now = await service.merchant(), SystemClock().now()
        await merchant.live.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
        for operator in ("mtn", "mtn", "moov"):
            await merchant.live.post("/payments", {**PAYMENT, "operator": operator})
        reference = (await merchant.live.get("/payments")).data[0]["reference"]
        await merchant.report_mismatch(reference, "stripe")
        await unmatched_callbacks.keep_sample(
            service.ctx.db, provider_account="stripe", path="/x", body=b"{}", reason="no_match", now=now
        )
    raw_sql = RawSql(settings)
    await raw_sql.run(f"UPDATE payments SET created_at = {now - 2 * 60 * MINUTE} WHERE status = 'failed'")
    await raw_sql.run(
        f"UPDATE webhook_deliveries SET created_at = {now - MINUTE}, last_attempt_at = {now - MINUTE}, attempts = 1"
    )
    cli("key", "create", merchant.id, "--env", "live", "--expires-at", iso(later(now, 10 * DAY)))


def _keys(done: CommandResult) -> set[str]:
    """The path of each key of what a command printed; items of a list have the path of the list."""
    return set(_paths(json.loads(done.out)))


def _paths(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            here = f"{path}.{key}" if path else key
            yield here
            yield from _paths(each, here)
    elif isinstance(value, list):
        for each in value:
            yield from _paths(each, path)


def _old_names() -> Iterator[str]:
    """Those that nothing else is called: words that a text may use are left to the tests above."""
    sections = (
        "Settings",
        "Commands",
        "Metrics",
        "Alerts",
        "Callback paths",
        "Tables",
        "Columns",
        "Log events",
        "Traces",
    )
    for section in sections:
        for _, old, _ in rows(section):
            if re.search(r"[A-Z_ /.]", old) and old not in STILL_USED:
                yield re.sub(r"{.*", "", old)


def _searched() -> Iterator[Path]:
    for name in SEARCHED:
        path = ROOT / name
        yield from (each for each in (path.rglob("*") if path.is_dir() else [path]) if each.suffix in SUFFIXES)


def test_no_old_name_is_left() -> None:
    names = "|".join(re.escape(old) for old in sorted(set(_old_names()), key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.-])(?:{names})(?!\w)")
    left = {
        str(path.relative_to(ROOT)): found
        for path in _searched()
        if path not in (PAGE, Path(__file__)) and (found := pattern.findall(path.read_text(encoding="utf-8")))
    }
    assert left == {}
