"""`guichet demo`, which `make run` starts: the whole service, a demo merchant and commands to try it with."""

import secrets
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from guichet import __version__
from guichet.cli.console import command_name, console
from guichet.cli.errors import fail
from guichet.cli.runner import load_settings
from guichet.cli.serve_process import Demonstration, Listen, serve_process
from guichet.context import AppContext
from guichet.settings import Settings

if TYPE_CHECKING:
    from guichet_demo.merchant import Demo
    from guichet_demo.people import DemoLinks

app = typer.Typer()


@app.command(epilog="Example: `guichet demo --port 8001`")
def demo(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000,
) -> None:
    """Serve everything with two demo merchants, and print keys, commands to try and links into the console. Development
    only."""
    settings = load_settings()
    refuse_in_production(settings)

    from guichet_demo.access import DemoAccess  # noqa: PLC0415 - other commands need neither people nor sales
    from guichet_demo.merchant import demo_merchant  # noqa: PLC0415
    from guichet_demo.people import demo_people  # noqa: PLC0415

    access = DemoAccess()

    async def welcome(ctx: AppContext) -> None:
        merchant = await demo_merchant(ctx)
        _print_welcome(ctx, merchant, await demo_people(ctx, access, merchant.merchant_id))

    serve_process(settings, Listen(host, port), with_worker=True, demo=Demonstration(access, welcome))


def refuse_in_production(settings: Settings) -> None:
    if not settings.development:
        fail("There is no demo merchant in production: GUICHET_PROFILE must be development.")


def _print_welcome(ctx: AppContext, merchant: "Demo", links: "DemoLinks") -> None:
    settings = ctx.settings
    base = f"{settings.public_url}/v1"
    database = "SQLite" if settings.embedded else "PostgreSQL"
    title = Text.assemble(
        "\n",
        ("Guichet", "bold green"),
        f" {__version__} · {merchant.name} · development on {database}, data in {settings.home}",
    )
    console.print(title, soft_wrap=True)
    console.print()
    _print_facts(
        {
            "Console": f"{settings.browser_url}/console (a merchant's owner, with a month of test payments to look at)",
            "Sign in": links.owner,
            "Back office": f"{settings.browser_url}/admin (the staff of the service)",
            "Sign in as staff": links.staff[0],
            "and as another": links.staff[1],
        }
    )
    console.print(Text("  Each of these links works once, for 15 minutes, on this machine.", "dim"))
    console.print(Text("  Two of the staff must agree before money moves.", "dim"))
    console.print(Text("  A page that asks for a code of a telephone shows it.\n", "dim"))
    facts = {
        "API base URL": f"{base} (described at {settings.public_url}/docs)",
        "Test key": merchant.keys["test"],
        "Live key": merchant.keys["live"],
        "Webhook secret": f"{merchant.webhook_secret} (test)",
        "Webhooks go to": merchant.webhook_url or f"nowhere yet: {command_name()} listen --configure",
    }
    if settings.providers_file is None:
        facts["Simulated phone"] = f"{settings.public_url}/simulator/phone (validates live payments)"
    _print_facts(facts)
    for label, command in _first_commands(base, merchant.keys["test"]):
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
