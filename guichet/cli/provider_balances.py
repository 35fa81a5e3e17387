"""`guichet providers balances`: our balances with the providers, asked for now."""

import asyncio
from typing import Annotated

import typer

from guichet.cli.arguments import Json
from guichet.cli.console import error_console, print_json, print_table
from guichet.cli.provider_accounts import chosen_accounts, load_providers, open_registry
from guichet.cli.runner import load_settings
from guichet.domain.money import plain
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings

#: What is asked of each account; None for a provider that states no balance.
_Answers = dict[str, list[FloatBalance] | Unknown | None]


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
        answers = asyncio.run(_ask(settings, providers, names))
    rows = [row for name, answer in answers.items() for row in _rows(providers, name, answer)]
    if as_json:
        print_json({"balances": rows})
    else:
        columns = ("Account", "Wallet", "Balance", "Currency", "Alert below", "Problem")
        print_table(columns, [tuple(row.values()) for row in rows])
    if any(row["problem"] for row in rows):
        raise typer.Exit(1)


async def _ask(settings: Settings, providers: ProvidersConfig, names: list[str]) -> _Answers:
    async with open_registry(settings, providers) as registry:
        with_balances = registry.with_balances()
        asked = [name for name in names if name in with_balances]
        found = await asyncio.gather(*(with_balances[name].balances() for name in asked))
    answers = dict(zip(asked, found, strict=True))
    return {name: answers.get(name) for name in names}


def _rows(
    providers: ProvidersConfig, name: str, answer: list[FloatBalance] | Unknown | None
) -> list[dict[str, object]]:
    """One for each balance; one without an amount where there is none."""
    bounds = providers.accounts[name].float_alert_below
    if not answer or isinstance(answer, Unknown):
        problem = f"cannot be read: {answer.raw}" if isinstance(answer, Unknown) else None
        return [_row(name, None, None, None, None, problem)]
    rows = []
    for balance in answer:
        bound = bounds.get(balance.wallet, bounds.get(""))
        problem = "too low" if bound is not None and balance.amount < bound else None
        below = None if bound is None else plain(bound)
        rows.append(_row(name, balance.wallet, plain(balance.amount), balance.currency, below, problem))
    return rows


def _row(
    name: str, wallet: str | None, amount: str | None, currency: str | None, below: str | None, problem: str | None
) -> dict[str, object]:
    """Amounts are texts in main units."""
    return {
        "provider_account": name,
        "wallet": wallet,
        "balance": amount,
        "currency": currency,
        "alert_below": below,
        "problem": problem,
    }
