"""`guichet providers try`: one real payment through one account, and its refund."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Final

import typer
from msgspec import structs
from rich.text import Text

from guichet.cli.arguments import Json
from guichet.cli.console import console, error_console, print_json
from guichet.cli.provider_accounts import chosen_accounts, load_providers, open_registry
from guichet.cli.provider_setup import Yes, confirm
from guichet.cli.provider_trial import Trial, trial_charge
from guichet.cli.runner import load_settings
from guichet.clock import SystemClock
from guichet.domain.money import CURRENCIES
from guichet.merchants.catalogue_file import load_catalogue
from guichet.printable import printable
from guichet.providers.base import CARDS, Accepted, Charge, Provider
from guichet.providers.capabilities import SendsOtpCodes
from guichet.providers.provider_types import served_operators
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings

#: The operators that do not settle in XOF.
_CURRENCIES: Final = {"mtn_cg": "XAF"}
_INTERRUPTED: Final = 130


def try_account(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account of the providers' file.")],
    phone: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Who pays: digits with the country code. Not for cards.")
    ] = None,
    amount: Annotated[int, typer.Option(min=1, help="In main units, such as 100 for 100 F.")] = 100,
    operator: Annotated[
        str | None, typer.Option(metavar="CODE", help="Needed when the account serves several operators.")
    ] = None,
    currency: Annotated[
        str | None, typer.Option(metavar="|".join(CURRENCIES), help="By default that of the operator.")
    ] = None,
    otp: Annotated[str | None, typer.Option(metavar="CODE", help="The customer's code, where one is needed.")] = None,
    aggregated_merchant: Annotated[
        str | None, typer.Option(metavar="am-…", help="For a Wave account with aggregated_merchants.")
    ] = None,
    every: Annotated[float, typer.Option(min=0.05, help="Seconds between two questions to the provider.")] = 3.0,
    wait: Annotated[float, typer.Option(min=1, help="Seconds until the payment or the refund is left open.")] = 600.0,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Make ONE REAL payment through an account and give it back, and print each step.

    It is not in the ledger: callbacks about it become unmatched callbacks. Exit code 1 when it did not go as it should,
    130 when it was interrupted; what is open then is printed with its references.
    """
    settings = load_settings()
    providers = load_providers(settings)
    chosen_accounts(providers, [account])
    code = _operator(providers, account, operator)
    if phone is None and code not in CARDS:
        raise typer.BadParameter("--phone is needed: the number that pays.")
    wanted = currency or _CURRENCIES.get(code, "XOF")
    if wanted not in CURRENCIES:
        raise typer.BadParameter(f"--currency must be one of {', '.join(CURRENCIES)}.")
    charge = trial_charge(
        now=SystemClock().now(),
        operator=code,
        amount=amount,
        currency=wanted,
        phone=phone,
        otp=otp,
        public_url=settings.public_url,
        account=account,
        provider_merchant_id=aggregated_merchant,
    )
    address = providers.accounts[account].base_url
    payer = f"the customer {phone}" if phone else "a card"
    confirm(f"Take {amount} {wanted} from {payer} by {code} through {account} ({address}), and give it back?", yes=yes)
    _run(settings, providers, account, charge, every=every, wait=wait, as_json=as_json)


def _operator(providers: ProvidersConfig, account: str, wanted: str | None) -> str:
    """The operator to pay with: the one that was asked for, or the only one that the account serves."""
    served = served_operators(providers.accounts[account])
    routed = [code for code, names in providers.routes.items() if account in names]
    known = sorted(served if served is not None else routed)
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted is None or (served is not None and wanted not in served):
        raise typer.BadParameter(f"--operator must be one of {', '.join(known) or 'the operator codes'}.")
    return wanted


async def _with_code(
    settings: Settings, provider: Provider, charge: Charge, say: Callable[[str], None]
) -> Charge | None:
    """The charge with the code that the provider texted on our request, where it does so; None when it did not."""
    modes = load_catalogue(settings.catalogue_file).modes
    texts_codes = any(mode.sends_code and mode.operator == charge.payment.operator for mode in modes)
    if charge.otp is not None or not texts_codes or not isinstance(provider, SendsOtpCodes):
        return charge
    say(f"0. Asking for a code by text message to {charge.payment.phone_number}…")
    result = await provider.send_code(charge)
    if not isinstance(result, Accepted):
        say(f"✗ No code was sent: {result.raw}")
        return None
    code = typer.prompt("The code that the customer received", err=True)
    return structs.replace(charge, otp=code)


def _run(
    settings: Settings,
    providers: ProvidersConfig,
    account: str,
    charge: Charge,
    *,
    every: float,
    wait: float,
    as_json: bool,
) -> None:
    printer = error_console if as_json else console
    status = error_console.status("…")
    trials: list[Trial] = []

    def say(text: str) -> None:
        printer.print(text, soft_wrap=True)

    def show(text: str) -> None:
        status.update(Text(printable(text)))  # A str would be read as markup.

    async def main() -> bool:
        async with open_registry(settings, providers) as registry:
            provider = registry.provider(account)
            known = await _with_code(settings, provider, charge, say)
            if known is None:
                return False
            trial = Trial(account, provider, SystemClock(), say, show, every, wait)
            trials.append(trial)
            with status:
                return await trial.run(known)

    try:
        code = 0 if asyncio.run(main()) else 1
    except KeyboardInterrupt:
        code = _INTERRUPTED
    finally:
        _say_what_is_open(account, trials, say)
    if as_json:
        rows = [row for trial in trials for row in trial.as_rows()]
        print_json({"provider_account": account, "ok": code == 0, "movements": rows})
    elif code == 0:
        say("Done. Callbacks about it are in `guichet incidents` as unmatched, which shows that they arrive.")
    if code:
        raise typer.Exit(code)


def _say_what_is_open(account: str, trials: Sequence[Trial], say: Callable[[str], None]) -> None:
    for movement in [each for trial in trials for each in trial.open_movements()]:
        theirs = f", their reference {movement.provider_reference}" if movement.provider_reference else ""
        say(f"! The {movement.what} {movement.reference} is open at {account}{theirs}: look it up with the provider.")
