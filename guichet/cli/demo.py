"""`guichet demo`, which `make run` starts: the whole service, a demo merchant and commands to try it with."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.text import Text

from guichet import __version__
from guichet.bootstrap import Service, create_merchant
from guichet.cli.console import CommandError, command_name, console, fail
from guichet.cli.runner import load_settings
from guichet.cli.serve_process import Listen, serve_process
from guichet.context import AppContext
from guichet.db.errors import ConstraintViolated
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS, Environment
from guichet.merchants import api_keys
from guichet.merchants.api_keys import key_env, key_hash, new_key
from guichet.private_files import make_private_folder
from guichet.settings import Settings
from guichet.webhooks import endpoints

if TYPE_CHECKING:
    from guichet.cli.demo_people import DemoLinks

NAME: Final = "Boutique Démo"


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo merchant: its keys by environment, and its webhook endpoint of the test environment."""

    merchant_id: MerchantId
    keys: dict[Environment, str]
    webhook_url: str | None
    webhook_secret: str


class _File(msgspec.Struct):
    """`demo.json`."""

    merchant: str
    keys: dict[Environment, str]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet demo --port 8001`")(demo)


def demo(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000,
) -> None:
    """Serve everything with two demo merchants, and print keys, commands to try and links into the console. Development
    only."""
    settings = load_settings()
    refuse_in_production(settings)

    async def welcome(opened: Service) -> None:
        from guichet.cli.demo_people import demo_people  # noqa: PLC0415 - other commands need neither people nor sales

        found = await demo_merchant(opened.ctx)
        _print_welcome(opened.ctx, found, await demo_people(opened.ctx, found.merchant_id))

    serve_process(settings, Listen(host, port), with_worker=True, on_ready=welcome, migrate_first=True)


def refuse_in_production(settings: Settings) -> None:
    if not settings.development:
        fail("There is no demo merchant in production: GUICHET_PROFILE must be development.")


async def demo_merchant(ctx: AppContext) -> Demo:
    """The demo merchant, created on the first call.

    The database holds only hashes of its keys, so the keys are kept in `demo.json` in the data folder. A database that
    does not have them yet gets the same keys.
    """
    file = ctx.settings.home / "demo.json"
    keys = _read_keys(file) or _write_keys(file, {env: new_key(env) for env in ENVS})
    merchant_id = await _owner(ctx, keys)
    if merchant_id is None:
        try:
            merchant_id = (await create_merchant(ctx, NAME, keys=keys))[0].id
        except ConstraintViolated:  # A key was revoked: make new ones.
            keys = _write_keys(file, {env: new_key(env) for env in ENVS})
            merchant_id = (await create_merchant(ctx, NAME, keys=keys))[0].id
    endpoint = await endpoints.read(ctx.db, ctx.vault, merchant_id, "test")
    return Demo(merchant_id, keys, endpoint.url, endpoint.secret)


async def _owner(ctx: AppContext, keys: dict[Environment, str]) -> MerchantId | None:
    """The id of the merchant that all these keys belong to, if they all work."""
    found = [await api_keys.caller_by_hash(ctx.db, key_hash(key)) for key in keys.values()]
    owners = {known[0].merchant.id for known in found if known}
    return owners.pop() if all(found) and len(owners) == 1 else None


def _read_keys(file: Path) -> dict[Environment, str] | None:
    if not file.exists():
        return None
    try:
        keys = msgspec.json.decode(file.read_bytes(), type=_File).keys
    except msgspec.DecodeError:
        keys = {}
    if {env: key_env(key) for env, key in keys.items()} != {env: env for env in ENVS}:
        raise CommandError(f"{file} is damaged: delete it, and a new demo merchant is made.")
    return keys


def _write_keys(file: Path, keys: dict[Environment, str]) -> dict[Environment, str]:
    """Writes the file atomically, readable by its owner only."""
    make_private_folder(file.parent)
    draft = file.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(msgspec.json.format(msgspec.json.encode(_File(NAME, keys))) + b"\n")
    draft.replace(file)
    return keys


def _print_welcome(ctx: AppContext, found: Demo, links: "DemoLinks") -> None:
    settings = ctx.settings
    base = f"{settings.public_url}/v1"
    database = "SQLite" if settings.embedded else "PostgreSQL"
    title = Text.assemble(
        "\n", ("Guichet", "bold green"), f" {__version__} · {NAME} · development on {database}, data in {settings.home}"
    )
    console.print(title, soft_wrap=True)
    console.print()
    _print_facts(
        {
            "Console": f"{settings.browser_url}/console (a merchant's owner, with a month of test payments to look at)",
            "Sign in": links.owner,
            "Back office": f"{settings.browser_url}/admin (the staff of the service)",
            "Sign in as staff": links.staff,
        }
    )
    console.print(Text("  Each of these two links works once, for 15 minutes, on this machine.", "dim"))
    console.print(Text("  A page that asks for a code of a telephone shows it.\n", "dim"))
    facts = {
        "API base URL": f"{base} (described at {settings.public_url}/docs)",
        "Test key": found.keys["test"],
        "Live key": found.keys["live"],
        "Webhook secret": f"{found.webhook_secret} (test)",
        "Webhooks go to": found.webhook_url or f"nowhere yet: {command_name()} listen --configure",
    }
    if settings.providers_file is None:
        facts["Simulated phone"] = f"{settings.public_url}/simulator/phone (validates live payments)"
    _print_facts(facts)
    for label, command in _first_commands(base, found.keys["test"]):
        console.print(Text(f"\n# {label}", "dim"))
        console.print(command, soft_wrap=True)
    console.print(Text("\nCtrl-C stops it.\n", "dim"))


def _print_facts(facts: dict[str, str]) -> None:
    for label, value in facts.items():
        console.print(Text.assemble((f"  {label:<18}", "dim"), value), soft_wrap=True)


def _first_commands(base: str, key: str) -> list[tuple[str, str]]:
    """(label, shell command). The order number is new each time: the same `external_id` returns the same payment."""
    order = f"order-{secrets.token_hex(3)}"
    key_header = f"-H 'Authorization: Bearer {key}'"
    body = f'{{"amount": 5000, "operator": "mtn", "phone_number": "2290197000000", "external_id": "{order}"}}'
    return [
        (
            "A payment, validated at once because the number ends with 0000",
            f"curl -s {base}/payments {key_header} -d '{body}'",
        ),
        ("Read it", f"curl -s {base}/payments/{order} {key_header}"),
        ("Refund it", f"curl -s -X POST {base}/payments/{order}/refund {key_header}"),
    ]
