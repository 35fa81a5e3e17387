"""`guichet merchant …`: merchants, their status and their time zone."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Literal

import typer

from guichet.bootstrap import Service, create_merchant
from guichet.cli.acts import record_act
from guichet.cli.arguments import Json, MerchantId, MerchantIdValue, OptionalBy, actor
from guichet.cli.console import console, print_json, print_table
from guichet.cli.runner import existing, get_merchant, run
from guichet.clock import iso
from guichet.db.engine import Transaction
from guichet.domain.merchants import Environment, Merchant, MerchantStatus
from guichet.domain.money import DEFAULT_CURRENCY, Currency
from guichet.merchants import repository as merchants
from guichet.settings import parsers

app = typer.Typer(no_args_is_help=True, help="Merchants.")


_MAX_NAME: Final = 100
Change = Callable[[Transaction], Awaitable[Merchant | None]]


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="merchant")


def _name(text: str) -> str:
    if not text.strip() or len(text) > _MAX_NAME or not text.isprintable():
        raise typer.BadParameter(f"1 to {_MAX_NAME} printable characters are expected.")
    return text.strip()


def _zone(text: str) -> str:
    try:
        return str(parsers.time_zone(text))
    except ValueError as fault:
        raise typer.BadParameter(f"It {fault}.") from None


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
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Create a merchant with a test key and a live key. The keys are shown only once."""

    async def work(opened: Service) -> tuple[Merchant, dict[Environment, str]]:
        return await create_merchant(opened.ctx, name, status, currency, actor=actor(by))

    merchant, keys = run(work, create=True)
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
            ("Id", "Name", "Status", "Currency", "Created", "Time zone"),
            [
                (each.id, each.name, each.status, each.currency, iso(each.created_at), each.time_zone or "–")
                for each in found
            ],
        )


@app.command(epilog="Example: `guichet merchant status 1 suspended`")
def status(
    merchant_id: MerchantId,
    new_status: Annotated[MerchantStatus, typer.Argument(metavar="active|pending|suspended")],
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Change a merchant's status: its live keys work only while it is active."""

    async def change(tx: Transaction) -> Merchant | None:
        return await merchants.set_status(tx, merchant_id, new_status)

    merchant = _change(merchant_id, change, "status", by)
    if as_json:
        print_json(_described(merchant))
    else:
        console.print(f"Merchant {merchant.id}, {merchant.name}, is {merchant.status}.")


@app.command("time-zone", epilog="Example: `guichet merchant time-zone 1 Africa/Dakar`")
def time_zone(
    merchant_id: MerchantId,
    zone: Annotated[
        str | None, typer.Argument(parser=_zone, metavar="[ZONE]", help="Without it, the installation's from now on.")
    ] = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Set the time zone of the dates on a merchant's hosted pages and receipts."""

    async def change(tx: Transaction) -> Merchant | None:
        return await merchants.set_time_zone(tx, merchant_id, zone)

    merchant = _change(merchant_id, change, "time_zone", by)
    if as_json:
        print_json(_described(merchant))
    else:
        shown = merchant.time_zone or "the installation's time zone"
        console.print(f"The pages of merchant {merchant.id}, {merchant.name}, show dates in {shown}.")


def _change(
    merchant_id: MerchantIdValue, change: Change, field: Literal["status", "time_zone"], by: str | None
) -> Merchant:
    """Changes one field of a merchant; the act is in the audit log, with the field before and after."""

    async def work(opened: Service) -> Merchant:
        ctx = opened.ctx
        before = await get_merchant(ctx.db, merchant_id)
        async with ctx.db.transaction() as tx:
            changed = existing(await change(tx), "merchant", merchant_id)
            await record_act(
                ctx, tx, by, f"merchant.{field}_changed", "merchant", merchant_id, merchant_id,
                before={field: getattr(before, field)}, after={field: getattr(changed, field)},
            )  # fmt: skip
        return changed

    return run(work)


def _described(merchant: Merchant) -> dict[str, object]:
    return {
        "id": merchant.id,
        "name": merchant.name,
        "status": merchant.status,
        "currency": merchant.currency,
        "created_at": iso(merchant.created_at),
        "time_zone": merchant.time_zone,
    }
