"""`guichet providers setup`: what must be made once with a provider before an account can be used."""

from collections.abc import Sequence
from typing import Annotated, Final
from urllib.parse import urlsplit
from uuid import uuid4

import typer
from msgspec import structs
from rich.prompt import Confirm
from rich.text import Text

from guichet.back_office.aggregated_merchants import AggregationError, NamedMerchant, aggregating, name_merchants
from guichet.cli.arguments import Json
from guichet.cli.console import console, error_console, print_json
from guichet.cli.errors import CommandError
from guichet.cli.provider_accounts import chosen_accounts, load_providers, open_registry
from guichet.cli.runner import load_settings, run, run_async
from guichet.context import AppContext
from guichet.db.references import parse_reference
from guichet.http_client import HttpClient
from guichet.printable import printable
from guichet.provider_accounts import USER_AGENT
from guichet.providers.mtn.setup import SANDBOX_ADDRESS, ApiUsers
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.shared.account_checks import AccountSetup
from guichet.providers.shared.client import ProviderClient
from guichet.providers.sonatel.provider import Sonatel, callback_url
from guichet.settings import Settings

setup = typer.Typer(help="What must be made once with a provider.", no_args_is_help=True)
_PRODUCTS: Final = {"collection": "", "disbursement": "disbursement_"}
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking; for scripts.")]


def confirm(question: str, *, yes: bool) -> None:
    """Ends the command with exit code 1 unless a person agrees. `yes`: they did on the command line."""
    try:
        agreed = yes or Confirm.ask(Text(printable(question)), console=error_console, default=False)
    except EOFError:
        agreed = False
    if not agreed:
        error_console.print(Text("\nNothing was done; --yes does it without a question."))
        raise typer.Exit(1)


def step(text: str) -> None:
    """Prints one step, on a line of its own however long it is."""
    console.print(text, soft_wrap=True)


@setup.command(epilog="Example: `guichet providers setup wave-merchants --account wave_senegal`")
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

    async def work(ctx: AppContext) -> list[NamedMerchant]:
        return [merchant for name in names for merchant in await _set_up(ctx, name, quiet=as_json)]

    merchants = run(work, message=None, providers=providers)
    if as_json:
        print_json({"aggregated_merchants": [structs.asdict(merchant) for merchant in merchants]})
    else:
        step(f"Done: {sum(merchant.made for merchant in merchants)} aggregated merchants were made.")


def _aggregating(providers: ProvidersConfig, names: Sequence[str] | None) -> list[str]:
    """A name of an account that does not aggregate is a misuse of the command."""
    chosen, able = chosen_accounts(providers, names), aggregating(providers.accounts)
    accounts = [name for name in chosen if name in able]
    if names and (wrong := sorted({*names} - {*accounts})):
        raise typer.BadParameter(f"{wrong[0]} is no Wave account with aggregated_merchants = true.")
    if not accounts:
        raise typer.BadParameter("no account of the providers' file has aggregated_merchants = true.")
    return accounts


async def _set_up(ctx: AppContext, account: str, *, quiet: bool) -> list[NamedMerchant]:
    """The merchants that had no valid id, each shown unless `quiet` as soon as it is known."""
    merchants: list[NamedMerchant] = []
    try:
        async for row in name_merchants(ctx, account):
            merchants.append(row)
            if not quiet:
                step(f"{account}: merchant {row.merchant_id}, “{row.name}”, is {row.provider_merchant_id}")
    except AggregationError as error:
        name, raw = error.at.name, error.at.raw
        if name is None:
            raise CommandError(f"The aggregated merchants of {account} cannot be listed: {raw}.") from None
        raise CommandError(f"{account} did not make “{name}”: {raw}. Run it again: it looks first.") from None
    return merchants


@setup.command(epilog="Example: `guichet providers setup mtn-sandbox --product collection`")
def mtn_sandbox(
    subscription_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            envvar="MTN_SUBSCRIPTION_KEY",
            help="The primary key of the product, from momodeveloper.mtn.com. Asked for when it is not given.",
        ),
    ] = None,
    product: Annotated[str, typer.Option(metavar="|".join(_PRODUCTS), help="Whose key it is.")] = "collection",
    callback_host: Annotated[
        str | None, typer.Option(metavar="HOST", help="By default the host of GUICHET_PUBLIC_URL.")
    ] = None,
    api_user: Annotated[
        str | None, typer.Option(metavar="UUID", help="Make a new key for this API user instead of a new user.")
    ] = None,
    base_url: Annotated[str, typer.Option(metavar="URL", help="Address of the sandbox.")] = SANDBOX_ADDRESS,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Make an API user and its key in MTN's sandbox, and print the lines for the providers' file.

    The key is shown once: MTN does not tell it again, but a new one can be made with --api-user.
    """
    if product not in _PRODUCTS:
        raise typer.BadParameter(f"--product {' or --product '.join(_PRODUCTS)} is expected.")
    settings, user = load_settings(), api_user or str(uuid4())
    if parse_reference(user) is None:
        raise typer.BadParameter(f"{user} is no UUID.")
    host = callback_host or urlsplit(settings.public_url).hostname or ""
    primary_key = subscription_key or typer.prompt("Primary key of the product", hide_input=True, err=True)
    confirm(f"Make the API user {user} at {base_url}, with callbacks to the host {host}?", yes=yes)
    key = run_async(_make(settings, base_url, primary_key, user, host))
    prefix = _PRODUCTS[product]
    lines = {f"{prefix}api_user": user, f"{prefix}api_key": key}
    if as_json:
        print_json({"product": product, "callback_host": host, **lines})
        return
    step("Put these into the account of the providers' file (secrets better as { env = … }); they are shown once:")
    for name, value in {"provider": "mtn", "base_url": base_url, "target_env": "sandbox", **lines}.items():
        step(f'{name} = "{value}"')
    step(f'{prefix}subscription_key = {{ env = "MTN_SUBSCRIPTION_KEY" }}')


async def _make(settings: Settings, base_url: str, subscription_key: str, user: str, host: str) -> str:
    """The key of the user. Each step is told before it is done, so that nothing that was made is lost."""
    http_client = HttpClient(ca_file=settings.egress_ca_file, loopback=settings.development, user_agent=USER_AGENT)
    try:
        users = ApiUsers(ProviderClient(http_client, base_url), subscription_key)
        error_console.print(f"1. API user {user} with the callback host {host}…")
        if problem := await users.create(user, host):
            raise CommandError(f"MTN did not make the API user: {problem}. Try again with --api-user {user}.")
        error_console.print("2. Its key…")
        key, result = await users.create_key(user)
        if key is None:
            raise CommandError(f"MTN made no key: {result.raw}. Try again with --api-user {user}.")
        return key
    finally:
        await http_client.aclose()


@setup.command(epilog="Example: `guichet providers setup sonatel-callback --yes`")
def sonatel_callback(
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="The account; needed only if there are several of Sonatel.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Register the address of our callbacks for the merchant code of a Sonatel account.

    The `webhook_secret` of the account goes with it. Nothing is sent when that address is registered already.
    """
    settings = load_settings()
    providers = load_providers(settings)
    name = _sonatel_account(providers, account)
    setup = AccountSetup(providers.accounts[name], (), settings.public_url)
    address = setup.callback_addresses[0]
    if not setup.account.settings.get("webhook_secret"):
        raise typer.BadParameter(f"{name} has no webhook_secret: choose one, such as `openssl rand -hex 32` makes.")
    code = setup.account.settings["merchant_code"]
    confirm(f"Register {address} with Sonatel for the merchant code {code}?", yes=yes)
    registered = run_async(_register(settings, providers, name, address))
    if as_json:
        print_json({"provider_account": name, "callback_url": address, "registered_now": registered})
    else:
        step(f"{name}: {address} {'is registered now' if registered else 'was registered already'}.")


def _sonatel_account(providers: ProvidersConfig, name: str | None) -> str:
    names = [account_name for account_name, account in providers.accounts.items() if account.provider == "sonatel"]
    if name is None and len(names) == 1:
        return names[0]
    if name is None or name not in names:
        raise typer.BadParameter(f"--account must be one of {', '.join(names) or 'no account of Sonatel'}.")
    return name


async def _register(settings: Settings, providers: ProvidersConfig, name: str, address: str) -> bool:
    """False when the address was registered already."""
    async with open_registry(settings, providers) as registry:
        provider = registry.provider(name)
        assert isinstance(provider, Sonatel)
        before = await provider.registered_callback()
        if before.ok and callback_url(before) == address:
            return False
        result = await provider.register_callback(address)
        if not result.ok:
            raise CommandError(f"Sonatel did not register the address: {result.raw}.")
        return True
