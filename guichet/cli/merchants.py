"""`guichet merchant …`: accounts."""

from typing import Annotated

import typer

from guichet.bootstrap import Service, create_merchant
from guichet.cli.support import Json, MerchantId, people, present, print_json, print_table, run
from guichet.clock import iso
from guichet.domain.merchants import Merchant, MerchantStatus
from guichet.domain.money import DEFAULT_CURRENCY, Currency
from guichet.merchants import repository as merchants

app = typer.Typer(no_args_is_help=True, help="Merchants' accounts.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="merchant")


_LONGEST_NAME = 100


def _name(text: str) -> str:
    if not text.strip() or len(text) > _LONGEST_NAME or not text.isprintable():
        raise typer.BadParameter(f"1 to {_LONGEST_NAME} printable characters are expected.")
    return text.strip()


@app.command(epilog='Example: `guichet merchant create "Boutique Awa" --status pending --json`')
def create(
    name: Annotated[str, typer.Argument(parser=_name, metavar="NAME", help="As customers read it.")],
    status: Annotated[
        MerchantStatus, typer.Option(help="Live keys work while it is active; test keys always.")
    ] = "active",
    currency: Annotated[
        Currency,
        typer.Option(help="Default currency: the first wallet's and the payment links'.", case_sensitive=False),
    ] = DEFAULT_CURRENCY,
    as_json: Json = False,
) -> None:
    """Create a merchant with a test and a live key. The keys are shown here and never again."""
    merchant, keys = run(lambda opened: create_merchant(opened.ctx, name, status, currency))
    if as_json:
        print_json({"id": merchant.id, "name": merchant.name, "status": merchant.status, "keys": keys})
        return
    people.print(f"Merchant {merchant.id}, {merchant.name}, is {merchant.status}. Its keys are shown only once:")
    for env, key in keys.items():
        people.print(f"  {env}  {key}", soft_wrap=True)


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
    """Change what a merchant may do: its live keys work only while it is active."""

    async def work(opened: Service) -> Merchant:
        changed = await merchants.set_status(opened.ctx.db, merchant_id, new_status)
        return present(changed, "merchant", merchant_id)

    merchant = run(work)
    if as_json:
        print_json(_described(merchant))
    else:
        people.print(f"Merchant {merchant.id}, {merchant.name}, is {merchant.status}.")


def _described(merchant: Merchant) -> dict[str, object]:
    return {
        "id": merchant.id,
        "name": merchant.name,
        "status": merchant.status,
        "currency": merchant.currency,
        "created_at": iso(merchant.created_at),
    }
