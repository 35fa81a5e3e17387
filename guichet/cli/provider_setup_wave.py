"""`guichet providers setup wave-merchants`: an aggregated merchant of Wave for each of our merchants."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from guichet.bootstrap import Service
from guichet.cli.arguments import Json
from guichet.cli.console import CommandError, print_json
from guichet.cli.provider_accounts import chosen_accounts, load_providers
from guichet.cli.provider_setup import Yes, confirm, step
from guichet.cli.runner import load_settings, run
from guichet.domain.merchants import Merchant
from guichet.merchants import provider_merchants
from guichet.merchants import repository as merchants
from guichet.payments import incidents
from guichet.providers.base import Unknown
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.wave import Wave
from guichet.providers.wave_merchants import MAX_NAME


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

    async def work(opened: Service) -> list[_Named]:
        active = [each for each in await merchants.everyone(opened.ctx.db) if each.status == "active"]
        return [named for name in names for named in await _set_up(opened, name, active, quiet=as_json)]

    named = run(work, message=None, providers=providers)
    if as_json:
        print_json({"aggregated_merchants": [asdict(each) for each in named]})
    else:
        step(f"Done: {sum(each.made for each in named)} aggregated merchants were made.")


@dataclass(frozen=True, slots=True)
class _Named:
    """A merchant that has its id now; `made`: by this run, not found at Wave."""

    provider_account: str
    merchant_id: int
    name: str
    provider_merchant_id: str
    made: bool


def _aggregating(providers: ProvidersConfig, names: Sequence[str] | None) -> list[str]:
    """The Wave accounts with `aggregated_merchants = true`; a name of another account is a misuse of the command."""
    chosen = chosen_accounts(providers, names)
    found = [name for name in chosen if providers.accounts[name].settings.get("aggregated_merchants") == "yes"]
    if names and (wrong := sorted({*names} - {*found})):
        raise typer.BadParameter(f"{wrong[0]} is no Wave account with aggregated_merchants = true.")
    if not found:
        raise typer.BadParameter("no account of the providers' file has aggregated_merchants = true.")
    return found


async def _set_up(opened: Service, account: str, active: Sequence[Merchant], *, quiet: bool) -> list[_Named]:
    """The merchants that had no valid id. Each id is stored, and unless `quiet` shown, as soon as it is known."""
    provider, db = opened.ctx.registry.provider(account), opened.ctx.db
    assert isinstance(provider, Wave)
    at_wave = await provider.merchants.ids_by_name()
    if isinstance(at_wave, Unknown):
        raise CommandError(f"The aggregated merchants of {account} cannot be listed: {at_wave.raw}.")
    known, existing = await provider_merchants.ids_of(db, account), {*at_wave.values()}
    named: list[_Named] = []
    for merchant in active:
        if known.get(merchant.id) in existing:
            continue
        name = merchant_name(merchant)
        found = at_wave.get(name)
        wave_id = found or await provider.merchants.create(name)
        if not isinstance(wave_id, str):
            # Also after an unknown result: the next run finds the name in Wave's list.
            raise CommandError(f"{account} did not make “{name}”: {wave_id.raw}. Run it again: it looks first.")
        named.append(_Named(account, merchant.id, name, wave_id, made=found is None))
        if not quiet:
            step(f"{account}: merchant {merchant.id}, “{name}”, is {wave_id}")
        now = opened.ctx.clock.now()
        async with db.transaction() as tx:
            await provider_merchants.remember(tx, account, merchant.id, wave_id, now)
            await incidents.close_of_merchant(tx, merchant.id, incidents.MISSING_AGGREGATED_MERCHANT, account, now)
    return named


def merchant_name(merchant: Merchant) -> str:
    """What Wave shows to customers: unique, because our id ends it, and the same again after a crash."""
    suffix = f" ({merchant.id})"
    return merchant.name[: MAX_NAME - len(suffix)] + suffix
