"""Which provider serves which payment: the sandbox in the test environment, the configured routes in live."""

from collections.abc import Mapping, Sequence
from typing import Final

from guichet.clock import Clock
from guichet.domain import posting_rules
from guichet.domain.merchants import Environment
from guichet.domain.messages import Answer
from guichet.domain.money import Currency
from guichet.domain.payments import Payment, Refund
from guichet.domain.reconciliation import REFUND, Ours
from guichet.providers.base import (
    Charge,
    InitiationResult,
    NotProcessed,
    OtpRequestResult,
    Provider,
    Refused,
    Reversal,
    StatusResult,
    Unknown,
)
from guichet.providers.capabilities import Balances, HasDisputes, History, StatesAvailability
from guichet.providers.sandbox.provider import Sandbox
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderBase

#: Names of accounts that are in no file. They are stored with payments like the others.
SANDBOX: Final = "sandbox"
UNCONNECTED: Final = "unconnected"


class Unconnected(ProviderBase):
    """The provider of an operator without a route: it refuses at once, so that nobody waits for nothing."""

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        return False

    async def probe(self) -> Answer:
        return ProviderAnswer.NOT_CONNECTED()

    def takes(self, operator: str, currency: Currency) -> bool:
        return False

    async def initiate(self, charge: Charge) -> InitiationResult:
        return Refused("not_connected")

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        return Refused("not_connected")

    async def status(self, charge: Charge) -> StatusResult:
        return Refused("not_connected")

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return Refused("not_connected")

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return Refused("not_connected")


class MissingAccount(Unconnected):
    """An account that payments still name but the providers' file no longer has: nothing can be concluded."""

    remote = True

    def __init__(self, name: str) -> None:
        self._problem = ProviderAnswer.ACCOUNT_GONE(account=name)

    async def initiate(self, charge: Charge) -> InitiationResult:
        return NotProcessed("configuration", self._problem)

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        return NotProcessed("configuration", self._problem)

    async def status(self, charge: Charge) -> StatusResult:
        return Unknown(self._problem)

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return NotProcessed("configuration", self._problem)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return Unknown(self._problem)


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
        taken = self._taken_live.get((operator, currency))
        if taken is None:  # Every payment in test asks.
            route = self._routes.get(operator, ())
            taken = not route or any(self.provider(account).takes(operator, currency) for account in route)
            self._taken_live[operator, currency] = taken
        return taken

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

    def float_of_ours(self, ours: Ours) -> str:
        """As `float_account`, of a line of a statement."""
        provider = self.provider(ours.provider_account or "")
        wallet = provider.payout_wallet if ours.kind == REFUND else provider.collection_wallet
        return posting_rules.float_account(ours.provider_account or "", wallet(ours.operator), ours.currency)

    def names(self) -> list[str]:
        """The names of all accounts."""
        return list(self._accounts)

    def with_disputes(self) -> dict[str, HasDisputes]:
        """The accounts whose payers can contest a payment with their bank."""
        return {name: each for name, each in self._accounts.items() if isinstance(each, HasDisputes)}

    def with_balances(self) -> dict[str, Balances]:
        """The accounts that state our balances with them, by name."""
        return {name: each for name, each in self._accounts.items() if isinstance(each, Balances)}

    def histories(self) -> dict[str, History]:
        """The accounts whose provider lists its own transactions."""
        return {name: each for name, each in self._accounts.items() if isinstance(each, History)}

    def stating_availability(self) -> dict[str, tuple[StatesAvailability, list[str]]]:
        """The accounts whose provider states the availability of operators, each with the operators whose payments go
        over it first."""
        stating = {name: each for name, each in self._accounts.items() if isinstance(each, StatesAvailability)}
        first = [(route[0], operator) for operator, route in self._routes.items() if route]
        found = {name: (each, [code for account, code in first if account == name]) for name, each in stating.items()}
        return {name: pair for name, pair in found.items() if pair[1]}

    def callback_providers(self, name: str) -> Mapping[str, Provider]:
        """Who may have sent a callback to this address: the account of that name, or every account of that type."""
        if name in self._accounts:
            return {name: self._accounts[name]}
        return {each: self._accounts[each] for each in self._accounts_by_type.get(name, ())}
