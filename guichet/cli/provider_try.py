"""`guichet providers try`: one real payment through one account and its refund, step by step.

Nothing of it stands in the ledger. So each reference is printed before the request that carries it is sent, and what is
open is known at any moment.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Final, Literal

import typer
from msgspec import structs
from rich.text import Text

from guichet.cli.arguments import Json
from guichet.cli.console import console, error_console, print_json
from guichet.cli.provider_accounts import chosen_accounts, load_providers, open_registry
from guichet.cli.provider_setup import Yes, confirm
from guichet.cli.runner import load_settings
from guichet.clock import SECOND, Clock, SystemClock, later
from guichet.db.references import new_reference
from guichet.domain.money import CURRENCIES, Hundredths, plain
from guichet.domain.payments import unstored_payment
from guichet.merchants.catalogue_file import load_catalogue
from guichet.printable import printable
from guichet.providers.base import (
    CARDS,
    Accepted,
    Charge,
    InitiationResult,
    NotFound,
    Provider,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.capabilities import SendsOtpCodes
from guichet.providers.provider_types import served_operators
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings

Result = InitiationResult | StatusResult | RefundInitiationResult | RefundStatusResult


@dataclass(slots=True)
class Movement:
    """The payment or the refund as far as it came. It is open from before its request is sent."""

    what: str
    reference: str
    state: Literal["open", "succeeded", "failed"] = "open"
    provider_reference: str | None = None
    detail: str = ""


@dataclass(slots=True)
class Trial:
    """`say` prints a step, `progress` replaces the line of progress. `every` and `wait` are seconds: between two status
    calls, and until the payment or the refund is given up and stays open."""

    account: str
    provider: Provider
    clock: Clock
    say: Callable[[str], None]
    progress: Callable[[str], None]
    every: float
    wait: float
    movements: list[Movement]
    #: What `Accepted.provider_data` held, by our reference; and the pages that were shown.
    _data: dict[str, dict[str, str]] = field(default_factory=dict)
    _shown_urls: set[str] = field(default_factory=set)

    async def run(self, charge: Charge) -> bool:
        """Whether the payment was made with the right amount, and given back as far as the account can."""
        amount = f"{plain(charge.amount)} {charge.payment.currency}"
        payment = self._start("payment", charge.payment.reference, f"asking {self.account} for {amount}")
        result = await self._until_final(
            payment,
            await self.provider.initiate(charge),
            lambda: self.provider.status(self._as_known(charge, payment)),
        )
        if not isinstance(result, Succeeded):
            return False
        if (result.amount, result.currency) != (charge.amount, charge.payment.currency):
            result_amount = "no amount" if result.amount is None else f"{plain(result.amount)} {result.currency}"
            self.say(f"✗ The provider states {result_amount} instead of {amount}: nothing is given back automatically.")
            return False
        self.say(f"✓ The provider states {amount}, as we asked for.")
        return await self._give_back(
            self._as_known(charge, payment), result.payer_number or charge.payment.phone_number
        )

    async def _give_back(self, charge: Charge, payee: str | None) -> bool:
        """`payee`: who paid as the provider states it, else the number of the person who tries the account."""
        if not self.provider.can_refund(charge.payment.operator, collected_here=True):
            self.say("– This account cannot refund: give it back by hand, or through another provider's payout.")
            return True
        reference = new_reference(self.clock.now())
        sent_at = self.clock.now()
        refund_request = RefundRequest(
            reference, charge, charge.amount, charge.payment.currency, payee_number=payee, sent_at=sent_at
        )
        refund_request = structs.replace(refund_request, provider_data=self.provider.prepare_refund(refund_request))
        refund = self._start("refund", reference, f"giving it back through {self.account}")

        def status() -> Awaitable[RefundStatusResult]:
            data = {**refund_request.provider_data, **self._data.get(refund.reference, {})}
            sent = structs.replace(refund_request, provider_reference=refund.provider_reference, provider_data=data)
            return self.provider.refund_status(sent)

        result = await self._until_final(refund, await self.provider.refund(refund_request), status)
        if refund.state == "failed":
            self.say(f"! The customer still has to get {plain(charge.amount)} {charge.payment.currency} back, by hand.")
        return isinstance(result, Succeeded)

    def _start(self, what: str, reference: str, sentence: str) -> Movement:
        movement = Movement(what, reference)
        self.movements.append(movement)
        self.say(f"{len(self.movements)}. {what.capitalize()} {reference}: {sentence}…")
        return movement

    async def _until_final(
        self, movement: Movement, first: Result, ask: Callable[[], Awaitable[Result]]
    ) -> Result | None:
        """The final result; None when it is still open after `wait` seconds. `first`: the answer to the initiation,
        which alone can say that nothing was processed."""
        began = self.clock.now()
        deadline, result = later(began, int(self.wait * SECOND)), first
        while isinstance(result, Accepted | Unknown | NotFound):
            self._learn(movement, result)
            if self.clock.now() >= deadline:
                self.say(f"– The {movement.what} is still open after {self.wait:g} s.")
                return None
            self.progress(f"The {movement.what} is open, {(self.clock.now() - began) // SECOND} s… {movement.detail}")
            await self.clock.sleep(self.every)
            result = await ask()
        if isinstance(result, Succeeded):
            movement.state = "succeeded"
            movement.provider_reference = result.provider_reference or movement.provider_reference
            self.say(f"✓ The {movement.what} succeeded; the provider's reference: {movement.provider_reference}")
            return result
        movement.state, movement.detail = "failed", f"{_name(result)}: {result.raw}"
        self.say(f"✗ The {movement.what} failed. {movement.detail}")
        return result

    def _learn(self, movement: Movement, result: Accepted | Unknown | NotFound) -> None:
        """Keeps what the provider told; the customer's page is shown once."""
        if isinstance(result, Unknown | NotFound):
            movement.detail = f"unknown: {result.raw}"
            return
        movement.detail = ""
        movement.provider_reference = result.provider_reference or movement.provider_reference
        self._data.setdefault(movement.reference, {}).update(result.provider_data)
        if result.redirect_url and result.redirect_url not in self._shown_urls:
            self._shown_urls.add(result.redirect_url)
            self.say(f"   The customer confirms on this page: {result.redirect_url}")

    def _as_known(self, charge: Charge, payment: Movement) -> Charge:
        data = {**charge.provider_data, **self._data.get(payment.reference, {})}
        sent_payment = structs.replace(charge.payment, provider_reference=payment.provider_reference)
        return structs.replace(charge, payment=sent_payment, provider_data=data)


_NAMES: Final = {"NotProcessed": "not processed", "FloatEmpty": "our balance does not cover it"}


def _name(result: Result) -> str:
    reason = f" ({result.reason})" if isinstance(result, Refused) else ""
    return _NAMES.get(type(result).__name__, type(result).__name__.lower()) + reason


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
    currency_code = currency or _CURRENCIES.get(code, "XOF")
    if currency_code not in CURRENCIES:
        raise typer.BadParameter(f"--currency must be one of {', '.join(CURRENCIES)}.")
    now = SystemClock().now()
    reference = new_reference(now)
    payment = unstored_payment(
        reference=reference,
        operator=code,
        total_amount=Hundredths(amount * 100),
        currency=next(name for name in CURRENCIES if name == currency_code),
        description="Essai",
        created_at=now,
        phone_number=phone,
        firstname="Essai",
        lastname="Guichet",
    )
    charge = Charge(
        payment,
        payment.total_amount,
        otp=otp,
        notify_url=f"{settings.public_url}/providers/{account}/callback/{reference}",
        provider_merchant_id=aggregated_merchant,
    )
    address = providers.accounts[account].base_url
    payer = f"the customer {phone}" if phone else "a card"
    price = f"{amount} {currency_code}"
    confirm(f"Take {price} from {payer} by {code} through {account} ({address}), and give it back?", yes=yes)
    _run(settings, providers, account, charge, every=every, wait=wait, as_json=as_json)


def _operator(providers: ProvidersConfig, account: str, operator: str | None) -> str:
    """The operator to pay with: the one that was asked for, or the only one that the account serves."""
    served = served_operators(providers.accounts[account])
    routed = [code for code, names in providers.routes.items() if account in names]
    operators = sorted(served if served is not None else routed)
    if operator is None and len(operators) == 1:
        return operators[0]
    if operator is None or (served is not None and operator not in served):
        raise typer.BadParameter(f"--operator must be one of {', '.join(operators) or 'the operator codes'}.")
    return operator


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
    movements: list[Movement] = []

    def say(text: str) -> None:
        printer.print(text, soft_wrap=True)

    def show(text: str) -> None:
        status.update(Text(printable(text)))  # A str would be read as markup.

    async def main() -> bool:
        async with open_registry(settings, providers) as registry:
            provider = registry.provider(account)
            charge_with_code = await _with_code(settings, provider, charge, say)
            if charge_with_code is None:
                return False
            with status:
                trial = Trial(account, provider, SystemClock(), say, show, every, wait, movements)
                return await trial.run(charge_with_code)

    try:
        code = 0 if asyncio.run(main()) else 1
    except KeyboardInterrupt:
        code = _INTERRUPTED
    finally:
        _say_what_is_open(account, movements, say)
    if as_json:
        print_json({"provider_account": account, "ok": code == 0, "movements": [asdict(row) for row in movements]})
    elif code == 0:
        say("Done. Callbacks about it are in `guichet incidents` as unmatched, which shows that they arrive.")
    if code:
        raise typer.Exit(code)


def _say_what_is_open(account: str, movements: Sequence[Movement], say: Callable[[str], None]) -> None:
    """What may have moved money, and whose end is not known."""
    for movement in movements:
        if movement.state != "open":
            continue
        detail = f", their reference {movement.provider_reference}" if movement.provider_reference else ""
        say(f"! The {movement.what} {movement.reference} is open at {account}{detail}: look it up with the provider.")
