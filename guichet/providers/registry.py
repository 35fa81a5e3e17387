"""Which provider serves which payment: the sandbox in the test environment, the configured routes in live. The debit
that it is asked for, and the call: its time limit, its metrics, its trace."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from guichet import metrics, tracing
from guichet.clock import Clock
from guichet.domain import posting_rules
from guichet.domain.merchants import Environment
from guichet.domain.messages import Answer
from guichet.domain.money import Currency, Hundredths, round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.domain.reconciliation import REFUND, ComparedSubject
from guichet.providers.base import (
    PROVIDER_TIMEOUT,
    Accepted,
    AlreadyRefunded,
    AmbiguousRefusal,
    Charge,
    FloatEmpty,
    InitiationResult,
    NotFound,
    NotProcessed,
    OtpRequestResult,
    Provider,
    RefundRequest,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.capabilities import Balances, HasDisputes, History, StatesAvailability
from guichet.providers.sandbox.provider import Sandbox
from guichet.providers.shared.answers import ProviderAnswer

T = TypeVar("T")

#: Names of accounts that are in no file. They are stored with payments like the others.
SANDBOX: Final = "sandbox"
UNCONNECTED: Final = "unconnected"
_RESULT_NAMES: Final[dict[type, str]] = {
    Accepted: "accepted",
    Succeeded: "succeeded",
    Refused: "refused",
    AmbiguousRefusal: "refused",
    Unknown: "unknown",
    NotFound: "not_found",
    NotProcessed: "not_processed",
    FloatEmpty: "float_empty",
    AlreadyRefunded: "already_refunded",
}


class Unconnected(Provider):
    """The provider of an operator without a route: it refuses at once, so that nobody waits for nothing."""

    #: To every request, and to every status call.
    answer: Refused | NotProcessed = Refused("not_connected")
    state: Refused | Unknown = Refused("not_connected")

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        return False

    async def probe(self) -> Answer:
        return ProviderAnswer.NOT_CONNECTED()

    def takes(self, operator: str, currency: Currency) -> bool:
        return False

    async def initiate(self, charge: Charge) -> InitiationResult:
        return self.answer

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        return self.answer

    async def status(self, charge: Charge) -> StatusResult:
        return self.state

    async def refund(self, request: RefundRequest) -> InitiationResult:
        return self.answer

    async def refund_status(self, request: RefundRequest) -> StatusResult:
        return self.state


class MissingAccount(Unconnected):
    """An account that payments still name but the providers' file no longer has: nothing can be concluded."""

    remote = True

    def __init__(self, name: str) -> None:
        problem = ProviderAnswer.ACCOUNT_GONE(account=name)
        self.answer, self.state = NotProcessed("configuration", problem), Unknown(problem)


class Registry:
    """The providers by the names of their accounts, and the routes of the live environment."""

    def __init__(
        self,
        clock: Clock,
        accounts: Mapping[str, Provider],
        routes: Mapping[str, Sequence[str]],
        accounts_by_type: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`routes`: for each operator the accounts to try in order. `accounts_by_type`: for each provider type."""
        self._accounts: dict[str, Provider] = {
            SANDBOX: Sandbox(clock),
            UNCONNECTED: Unconnected(),
            **accounts,
        }
        self._routes = routes
        self._accounts_by_type = accounts_by_type or {}
        self._taken_live: dict[tuple[str, Currency], bool] = {}

    def routes(self, env: Environment, operator: str) -> list[str]:
        """The accounts to try for this operator, in order; never empty."""
        if env == "test":
            return [SANDBOX]
        return list(self._routes.get(operator, ())) or [UNCONNECTED]

    def takes_live(self, operator: str, currency: Currency) -> bool:
        """Whether an account of the live environment debits customers of this operator in this currency. True for an
        operator that has no account yet: there no currency is better than another."""
        is_taken = self._taken_live.get((operator, currency))
        if is_taken is None:  # Every payment in test asks.
            route = self._routes.get(operator, ())
            is_taken = not route or any(self.provider(account).takes(operator, currency) for account in route)
            self._taken_live[operator, currency] = is_taken
        return is_taken

    def refund_routes(self, env: Environment, operator: str, collected_by: str) -> list[str]:
        """The accounts to refund through, in order: the one that collected, then those that can pay out."""
        return [
            name
            for name in dict.fromkeys((collected_by, *self.routes(env, operator)))
            if (provider := self._accounts.get(name))
            and provider.can_refund(operator, collected_here=name == collected_by)
        ]

    def pays_out(self, name: str, operator: str, collected_by: str) -> bool:
        """Whether a refund through this account, one of `refund_routes`, is a payout to a number."""
        return self.provider(name).pays_out(operator, collected_here=name == collected_by)

    def provider(self, name: str) -> Provider:
        """The provider of an account. For an account that left the file every status is unknown."""
        return self._accounts.get(name) or MissingAccount(name)

    def float_account(self, payment: Payment, subject: Payment | Refund) -> str:
        """The wallet whose money the payment, or a refund of it, moves, as postings name it."""
        account = subject.provider_account or ""
        if isinstance(subject, Refund):
            return self.payout_float(account, payment)
        wallet = self.provider(account).collection_wallet(payment.operator)
        return posting_rules.float_account(account, wallet, payment.currency)

    def payout_float(self, account: str, payment: Payment) -> str:
        """The wallet of this account from which the payment is given back."""
        wallet = self.provider(account).payout_wallet(payment.operator)
        return posting_rules.float_account(account, wallet, payment.currency)

    def float_account_of(self, subject: ComparedSubject) -> str:
        """As `float_account`, for what a statement is compared with."""
        provider = self.provider(subject.provider_account or "")
        wallet = provider.payout_wallet if subject.kind == REFUND else provider.collection_wallet
        return posting_rules.float_account(subject.provider_account or "", wallet(subject.operator), subject.currency)

    def names(self) -> list[str]:
        return list(self._accounts)

    def with_disputes(self) -> dict[str, HasDisputes]:
        """The accounts whose payers can contest a payment with their bank."""
        return {name: provider for name, provider in self._accounts.items() if isinstance(provider, HasDisputes)}

    def with_balances(self) -> dict[str, Balances]:
        """The accounts that state our balances with them, by name."""
        return {name: provider for name, provider in self._accounts.items() if isinstance(provider, Balances)}

    def histories(self) -> dict[str, History]:
        return {name: provider for name, provider in self._accounts.items() if isinstance(provider, History)}

    def stating_availability(self) -> dict[str, tuple[StatesAvailability, list[str]]]:
        """The accounts whose provider states the availability of operators, each with the operators whose payments go
        over it first."""
        return {
            name: (provider, operators)
            for name, provider in self._accounts.items()
            if isinstance(provider, StatesAvailability)
            and (operators := [code for code, route in self._routes.items() if route and route[0] == name])
        }

    def callback_providers(self, name: str) -> Mapping[str, Provider]:
        """Who may have sent a callback to this address: the account of that name, or every account of that type."""
        if name in self._accounts:
            return {name: self._accounts[name]}
        return {account: self._accounts[account] for account in self._accounts_by_type.get(name, ())}


async def call_provider(
    provider: Provider,
    call: Awaitable[T],
    provider_account: str,
    operation: str,
    timeout: float = PROVIDER_TIMEOUT,
) -> T | Unknown:
    """The result of `call`, an operation of `provider`; Unknown when it took longer than `timeout` seconds.

    The lease of the row must last longer, so that no other process calls the provider meanwhile.

    Every call is counted and traced.

    `operation`: initiate, status, refund, refund_status, send_code or disputes.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    result: T | Unknown
    try:
        if provider.remote:
            async with asyncio.timeout(timeout):
                result = await call
        else:
            result = await call
    except TimeoutError:
        result = Unknown(ProviderAnswer.NO_ANSWER(seconds=f"{timeout:g}"))
    name, seconds = _RESULT_NAMES.get(type(result), "other"), loop.time() - began
    metrics.provider_call(provider_account, operation, name, seconds)
    tracing.provider_call(provider_account, operation, name, seconds)
    return result


def charge_for(payment: Payment, public_url: str, otp: str | None = None, *, ask_only: bool = False) -> Charge:
    """The debit to request from the provider, or to ask about."""
    return Charge(
        payment,
        requested_amount(payment),
        otp=otp,
        return_url=_return_url(payment, public_url),
        notify_url=notify_url(public_url, payment.provider_account, payment.reference),
        ask_only=ask_only,
        provider_data=decode_provider_data(payment.provider_data),
    )


def requested_amount(subject: Payment | Refund) -> Hundredths:
    """What the provider is asked to move: the total, rounded to the currency's smallest unit (D27)."""
    total = subject.total_amount if isinstance(subject, Payment) else subject.amount
    return round_to_currency(total, subject.currency)


def _return_url(payment: Payment, public_url: str) -> str | None:
    """Where the provider's page sends the customer: to our own address, which goes on to the merchant's page with
    `reference` and `status`. A link's payment comes back to our page of it; a payment that was created before our own
    address existed has no token, and its customer goes straight to the merchant."""
    if payment.return_url is None or payment.link_id is not None or payment.checkout_token is None:
        return payment.return_url
    return f"{public_url}/checkout/{payment.checkout_token}/return"


def notify_url(public_url: str, provider_account: str | None, reference: str) -> str | None:
    if provider_account is None:
        return None
    return f"{public_url}/providers/{provider_account}/callback/{reference}"


def encode_provider_data(data: dict[str, str]) -> str | None:
    """The provider's data as JSON text for its column; None when there is none."""
    return msgspec.json.encode(data).decode() if data else None


def decode_provider_data(text: str | None) -> dict[str, str]:
    return {} if text is None else msgspec.json.decode(text, type=dict[str, str])
