"""`guichet providers setup wave-merchants`: an aggregated merchant of Wave for each of our merchants."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from guichet.back_office.aggregated_merchants import (
    MerchantNotMade,
    MerchantsUnlisted,
    NamedMerchant,
    aggregating,
    name_merchants,
)
from guichet.bootstrap import Service
from guichet.cli.arguments import Json
from guichet.cli.console import print_json
from guichet.cli.errors import CommandError
from guichet.cli.provider_accounts import chosen_accounts, load_providers
from guichet.cli.provider_setup import Yes, confirm, step
from guichet.cli.runner import load_settings, run
from guichet.providers.providers_file import ProvidersConfig


def wave_merchants(
    account: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A Wave account; by default every one that aggregates.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Make an aggregated merchant of Wave for each active merchant that has none, and remember its id.

    It may be run again at any time, also after it was interrupted: it looks at Wave first.
    """
    providers = load_providers(load_settings())
    names = _aggregating(providers, account)
    confirm(f"Make the aggregated merchants that are missing at {', '.join(names)}?", yes=yes)

    async def work(opened: Service) -> list[NamedMerchant]:
        return [named for name in names for named in await _set_up(opened, name, quiet=as_json)]

    named = run(work, message=None, providers=providers)
    if as_json:
        print_json({"aggregated_merchants": [asdict(each) for each in named]})
    else:
        step(f"Done: {sum(each.made for each in named)} aggregated merchants were made.")


def _aggregating(providers: ProvidersConfig, names: Sequence[str] | None) -> list[str]:
    """A name of an account that does not aggregate is a misuse of the command."""
    chosen, able = chosen_accounts(providers, names), aggregating(providers.accounts)
    found = [name for name in chosen if name in able]
    if names and (wrong := sorted({*names} - {*found})):
        raise typer.BadParameter(f"{wrong[0]} is no Wave account with aggregated_merchants = true.")
    if not found:
        raise typer.BadParameter("no account of the providers' file has aggregated_merchants = true.")
    return found


async def _set_up(opened: Service, account: str, *, quiet: bool) -> list[NamedMerchant]:
    """The merchants that had no valid id, each shown unless `quiet` as soon as it is known."""
    named: list[NamedMerchant] = []
    try:
        async for each in name_merchants(opened.ctx, account):
            named.append(each)
            if not quiet:
                step(f"{account}: merchant {each.merchant_id}, “{each.name}”, is {each.provider_merchant_id}")
    except MerchantsUnlisted as error:
        raise CommandError(f"The aggregated merchants of {account} cannot be listed: {error.raw}.") from None
    except MerchantNotMade as error:
        raise CommandError(
            f"{account} did not make “{error.name}”: {error.raw}. Run it again: it looks first."
        ) from None
    return named
