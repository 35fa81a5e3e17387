"""The command's tree. Each module of this room adds its own commands."""

from typing import Annotated

import typer

from guichet import __version__
from guichet.cli import (
    demo,
    doctor,
    keys,
    ledger,
    listen,
    merchants,
    modes,
    operators,
    reconcile,
    secret_key,
    server,
    wallets,
)

app = typer.Typer(
    name="guichet",
    help="Guichet: payment aggregation for Mobile Money and cards.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


server.register(app)
demo.register(app)
listen.register(app)
app.add_typer(merchants.app, name="merchant")
app.add_typer(keys.app, name="key")
app.add_typer(wallets.app, name="wallet")
app.add_typer(ledger.app, name="ledger")
app.add_typer(modes.app, name="mode")
operators.register(app)
reconcile.register(app)
doctor.register(app)
secret_key.register(app)
