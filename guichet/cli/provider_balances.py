"""`guichet providers balances`: our balances with the providers, asked for now."""

import asyncio
from typing import Annotated

import typer

from guichet.cli.arguments import Json
from guichet.cli.console import error_console, print_json, print_table, with_sentence
from guichet.cli.provider_accounts import chosen_accounts, load_providers, open_registry
from guichet.cli.runner import load_settings
from guichet.domain.money import plain
from guichet.providers.account_review import BalanceLine, balance_lines
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings


def balances(
    account: Annotated[
        list[str] | None, typer.Argument(metavar="[ACCOUNT]…", help="Names of accounts; all by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask every provider for our balances with it, from which refunds are paid.

    Exit code 1 when a balance cannot be read, or is below `float_alert_below` of the providers' file.
    """
    settings = load_settings()
    providers = load_providers(settings)
    names = chosen_accounts(providers, account)
    with error_console.status("Calling the providers…"):
        rows = [_row(line) for line in asyncio.run(_ask(settings, providers, names))]
    if as_json:
        print_json({"balances": rows})
    else:
        columns = ("Account", "Wallet", "Balance", "Currency", "Alert below", "Problem")
        print_table(columns, [tuple(row.values())[: len(columns)] for row in rows])
    if any(row["problem"] for row in rows):
        raise typer.Exit(1)


async def _ask(settings: Settings, providers: ProvidersConfig, names: list[str]) -> list[BalanceLine]:
    async with open_registry(settings, providers) as registry:
        return await balance_lines(registry, providers, names)


def _row(line: BalanceLine) -> dict[str, object]:
    """Amounts are texts in main units."""
    return {
        "provider_account": line.provider_account,
        "wallet": line.wallet,
        "balance": None if line.balance is None else plain(line.balance),
        "currency": line.currency,
        "alert_below": None if line.alert_below is None else plain(line.alert_below),
        **with_sentence("problem", line.problem),
    }
