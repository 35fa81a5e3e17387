"""`guichet merchant …`: merchants and their status."""

from typing import Annotated, Final

import typer

from guichet.bootstrap import Service, create_merchant
from guichet.cli.arguments import Json, MerchantId
from guichet.cli.console import console, print_json, print_table
from guichet.cli.runner import existing, run
from guichet.clock import iso
from guichet.domain.merchants import Merchant, MerchantStatus
from guichet.domain.money import DEFAULT_CURRENCY, Currency
from guichet.merchants import repository as merchants

app = typer.Typer(no_args_is_help=True, help="Merchants.")


_MAX_NAME: Final = 100


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="merchant")


def _name(text: str) -> str:
    if not text.strip() or len(text) > _MAX_NAME or not text.isprintable():
        raise typer.BadParameter(f"1 to {_MAX_NAME} printable characters are expected.")
    return text.strip()


@app.command(epilog='Example: `guichet merchant create "Boutique Awa" --status pending --json`')
def create(
    name: Annotated[str, typer.Argument(parser=_name, metavar="NAME", help="Name that customers see.")],
    status: Annotated[
        MerchantStatus, typer.Option(help="Live keys work only while it is active; test keys always work.")
    ] = "active",
    currency: Annotated[
        Currency,
        typer.Option(help="Default currency: the first wallet's and the payment links'.", case_sensitive=False),
    ] = DEFAULT_CURRENCY,
    as_json: Json = False,
) -> None:
    """Create a merchant with a test key and a live key. The keys are shown only once."""
    merchant, keys = run(lambda opened: create_merchant(opened.ctx, name, status, currency))
    if as_json:
        print_json({"id": merchant.id, "name": merchant.name, "status": merchant.status, "keys": keys})
        return
    console.print(f"Merchant {merchant.id}, {merchant.name}, is {merchant.status}. Its keys are shown only once:")
    for env, key in keys.items():
        console.print(f"  {env}  {key}", soft_wrap=True)


@app.command("list", epilog="Example: `guichet merchant list --json`")
def list_all(as_json: Json = False) -> None:
    """List every merchant."""
    found = run(lambda opened: merchants.everyone(opened.ctx.db))
    if as_json:
        print_json({"merchants": [_described(merchant) for merchant in found]})
    else:
        print_table(
            ("Id", "Name", "Status", "Currency", "Created"),
            [(each.id, each.name, each.status, each.currency, iso(each.created_at)) for each in found],
        )


@app.command(epilog="Example: `guichet merchant status 1 suspended`")
def status(
    merchant_id: MerchantId,
    new_status: Annotated[MerchantStatus, typer.Argument(metavar="active|pending|suspended")],
    as_json: Json = False,
) -> None:
    """Change a merchant's status: its live keys work only while it is active."""

    async def work(opened: Service) -> Merchant:
        changed = await merchants.set_status(opened.ctx.db, merchant_id, new_status)
        return existing(changed, "merchant", merchant_id)

    merchant = run(work)
    if as_json:
        print_json(_described(merchant))
    else:
        console.print(f"Merchant {merchant.id}, {merchant.name}, is {merchant.status}.")


def _described(merchant: Merchant) -> dict[str, object]:
    return {
        "id": merchant.id,
        "name": merchant.name,
        "status": merchant.status,
        "currency": merchant.currency,
        "created_at": iso(merchant.created_at),
    }
