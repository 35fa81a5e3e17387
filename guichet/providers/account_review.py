"""What `guichet providers check` and `balances` ask of accounts, what `guichet reconcile --fetch` reads of their
history, and so do the pages of the back office. No call moves money."""

import asyncio
import ipaddress
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from guichet.clock import Instant
from guichet.domain.messages import Answer, Message, verbatim
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import Line
from guichet.domain.records import Record
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.provider_types import PROVIDER_TYPES, leads_to_simulator, sandbox_reason
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.registry import Registry
from guichet.providers.shared.account_checks import AccountSetup, ChecksAccount, Finding, ok, unchecked, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject, BalanceProblem
from guichet.providers.shared.client import ProviderAccount


class BalanceLine(Record, frozen=True):
    """One of our balances with a provider; without an amount for an account that states none, or whose balance cannot
    be read. `problem`: None if there is none."""

    provider_account: str
    wallet: str | None = None
    balance: Hundredths | None = None
    currency: str | None = None
    alert_below: Hundredths | None = None
    problem: Message | None = None


async def probe_accounts(registry: Registry, names: Sequence[str]) -> dict[str, Answer]:
    """`ok` or what is wrong, by account."""
    results = await asyncio.gather(*(registry.provider(name).probe() for name in names))
    return dict(zip(names, results, strict=True))


async def findings_of(
    registry: Registry, providers: ProvidersConfig, names: Sequence[str], public_url: str
) -> dict[str, list[Finding]]:
    async def find(name: str) -> list[Finding]:
        operators = [code for code, route in providers.routes.items() if name in route]
        setup = AccountSetup(providers.accounts[name], operators, public_url)
        provider = registry.provider(name)
        called = await provider.check_account(setup) if isinstance(provider, ChecksAccount) else []
        return [*findings_without_a_call(setup), *called]

    return dict(zip(names, await asyncio.gather(*map(find, names)), strict=True))


async def balance_lines(registry: Registry, providers: ProvidersConfig, names: Sequence[str]) -> list[BalanceLine]:
    """Our balances with these accounts, asked for now: at least one line for each account."""
    with_balances = registry.with_balances()
    accounts = [name for name in names if name in with_balances]
    balances = await asyncio.gather(*(with_balances[name].balances() for name in accounts))
    answers = dict(zip(accounts, balances, strict=True))
    return [line for name in names for line in _lines(providers, name, answers.get(name))]


def _lines(providers: ProvidersConfig, name: str, answer: list[FloatBalance] | Unknown | None) -> list[BalanceLine]:
    if isinstance(answer, Unknown):
        return [BalanceLine(name, problem=BalanceProblem.UNREADABLE(answer=answer.raw))]
    if not answer:
        return [BalanceLine(name)]
    bounds, lines = providers.accounts[name].float_alert_below, []
    for balance in answer:
        bound = bounds.get(balance.wallet, bounds.get(""))
        problem = BalanceProblem.TOO_LOW() if bound is not None and balance.amount < bound else None
        lines.append(BalanceLine(name, balance.wallet, balance.amount, balance.currency, bound, problem))
    return lines


def findings_without_a_call(setup: AccountSetup) -> list[Finding]:
    return [_environment(setup.account), *_secrets(setup.account), _callback_address(setup), _routes(setup)]


def _environment(account: ProviderAccount) -> Finding:
    subject = AccountSubject.ENVIRONMENT()
    if leads_to_simulator(account):
        return unchecked(subject, AccountFinding.SIMULATOR())
    reason = sandbox_reason(account)
    return unchecked(subject, AccountFinding.SANDBOX(why=reason)) if reason else ok(subject, AccountFinding.LIVE())


def _secrets(account: ProviderAccount) -> list[Finding]:
    return [
        ok(verbatim(name), AccountFinding.SET())
        if account.settings.get(name)
        else unchecked(verbatim(name), AccountFinding.NOT_SET(without=without()))
        for name, without in PROVIDER_TYPES[account.provider].without.items()
    ]


def _callback_address(setup: AccountSetup) -> Finding:
    """Whether a provider can reach our address at all."""
    subject, callbacks = AccountSubject.OUR_CALLBACK(), PROVIDER_TYPES[setup.account.provider].callbacks
    if callbacks == "none":
        return unchecked(subject, AccountFinding.NO_CALLBACKS())
    of_all, of_account = setup.callback_addresses
    address = f"{of_account}/…" if callbacks == "each call" else of_all
    if not is_public(setup.public_url):
        private = AccountFinding.NOT_PUBLIC(address=address)
        simulated = leads_to_simulator(setup.account)
        return unchecked(subject, private) if simulated else wrong(subject, private)
    return ok(subject, verbatim(address))


def is_public(url: str) -> bool:
    """An https address whose host is no private IP address and no name of this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        return parts.scheme == "https" and ipaddress.ip_address(host).is_global
    except ValueError:
        return parts.scheme == "https" and "." in host and not host.endswith((".localhost", ".local", ".internal"))


def _routes(setup: AccountSetup) -> Finding:
    subject, routed = AccountSubject.ROUTES(), ", ".join(setup.operators)
    return ok(subject, verbatim(routed)) if routed else unchecked(subject, AccountFinding.NO_ROUTE())


class HistoryError(Exception):
    """No history can be had of this account."""

    def __init__(self, provider_account: str) -> None:
        super().__init__(provider_account)
        self.provider_account = provider_account


class NoHistory(HistoryError):
    """Its provider lists nothing: it exports files instead."""


class UnreadableHistory(HistoryError):
    """Its provider did not give the whole list. `raw`: what it answered instead."""

    def __init__(self, provider_account: str, raw: Answer) -> None:
        super().__init__(provider_account)
        self.raw = raw


async def histories_of(
    registry: Registry, names: Sequence[str], since: Instant, until: Instant, callback_url: Callable[[str], str]
) -> list[Line]:
    """Every transaction of these accounts from `since` to `until`, asked for now. `callback_url`: of an account.

    Raises NoHistory, UnreadableHistory.
    """
    lines: list[Line] = []
    histories = registry.histories()
    for name in names:
        if name not in histories:
            raise NoHistory(name)
        history = await histories[name].history(since, until, callback_url(name))
        if isinstance(history, Unknown):
            raise UnreadableHistory(name, history.raw)
        lines += history
    return lines
