"""What `guichet providers check --deep` finds out about an account: findings, and those that need no call."""

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable
from urllib.parse import urlsplit

from guichet.domain.messages import Amount, Answer, Message, verbatim
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import CallResult, ProviderAccount, ProviderResponse
from guichet.providers.shared.sandbox_accounts import sandbox_reason

#: `unchecked`: nothing is known to be wrong, but a person must look, or there is nothing to check.
FindingState = Literal["ok", "wrong", "unchecked"]

_SIMULATOR: Final = "/simulator/"
#: For each provider the settings that it works without, and what is then missing.
_SECRETS: Final[dict[str, dict[str, AccountFinding]]] = {
    "mtn": {"disbursement_subscription_key": AccountFinding.CANNOT_REFUND},
    "wave": {
        "webhook_secret": AccountFinding.CALLBACKS_UNCHECKED,
        "signing_secret": AccountFinding.SIGNING_NEEDED,
    },
    "pawapay": {
        "signing_key": AccountFinding.REQUESTS_UNSIGNED,
        "callback_public_key": AccountFinding.CALLBACKS_UNCHECKED,
    },
    "sonatel": {
        "webhook_secret": AccountFinding.CALLBACKS_UNCHECKED,
        "retailer_msisdn": AccountFinding.CANNOT_REFUND,
        "retailer_pin": AccountFinding.CANNOT_REFUND,
    },
    "stripe": {"webhook_secret": AccountFinding.CALLBACKS_UNCHECKED},
}
#: Providers that take the callback address with each payment; Coris has no callbacks, the others have one address.
_ADDRESS_IN_EACH_CALL: Final = ("mtn", "orange")
_NO_CALLBACKS: Final = ("coris",)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and a sentence about it."""

    subject: Message
    state: FindingState
    sentence: Message


@dataclass(frozen=True, slots=True)
class AccountSetup:
    """The account, the operators whose routes lead to it, and our own address."""

    account: ProviderAccount
    operators: Collection[str]
    public_url: str

    @property
    def callback_addresses(self) -> tuple[str, str]:
        """Either may be entered where the provider has one address: of all accounts of its type, or of this one."""
        names = (self.account.provider, self.account.name)
        return (f"{self.public_url}/providers/{names[0]}/callback", f"{self.public_url}/providers/{names[1]}/callback")


@runtime_checkable
class ChecksAccount(Protocol):
    """A provider that tells about its account through calls that move no money."""

    async def check_account(self, setup: AccountSetup) -> list[Finding]: ...


def ok(subject: Message, sentence: Message) -> Finding:
    return Finding(subject, "ok", sentence)


def wrong(subject: Message, sentence: Message) -> Finding:
    return Finding(subject, "wrong", sentence)


def unchecked(subject: Message, sentence: Message) -> Finding:
    return Finding(subject, "unchecked", sentence)


def no_call(subject: Message, sentence: Message) -> Finding:
    """The provider has no call that tells it."""
    return unchecked(subject, AccountFinding.NO_CALL(why=sentence))


def answered(subject: Message, result: CallResult, sentence: Message) -> Finding:
    """`sentence` after a 2xx; else what came back."""
    is_ok = isinstance(result, ProviderResponse) and result.ok
    return ok(subject, sentence) if is_ok else wrong(subject, verbatim(result.raw))


def probed(answer: Answer, sentence: Message) -> Finding:
    """`sentence` after a probe that was answered `ok`; else what came back."""
    subject = AccountSubject.CREDENTIALS()
    return ok(subject, sentence) if answer == "ok" else wrong(subject, verbatim(answer))


def balances_read(found: list[FloatBalance] | Unknown) -> Finding:
    if isinstance(found, Unknown):
        return wrong(AccountSubject.BALANCES(), verbatim(found.raw))
    if not found:
        return ok(AccountSubject.BALANCES(), AccountFinding.NO_BALANCE())
    return ok(AccountSubject.BALANCES(), AccountFinding.BALANCES(balances=[_balance(each) for each in found]))


def _balance(found: FloatBalance) -> Message | Amount:
    balance = Amount(found.amount, found.currency)
    return AccountFinding.BALANCE_OF(wallet=found.wallet, balance=balance) if found.wallet else balance


def callback_address_is_ours(subject: Message, address: object, setup: AccountSetup) -> Finding:
    """The address that the provider has is one of ours."""
    ours = setup.callback_addresses[0]
    if not isinstance(address, str) or not address:
        return wrong(subject, AccountFinding.ADDRESS_UNSET(address=ours))
    if address.rstrip("/") in setup.callback_addresses:
        return ok(subject, AccountFinding.ADDRESS_SET(address=address))
    return wrong(subject, AccountFinding.ADDRESS_WRONG(other=address, address=ours))


def findings_without_a_call(setup: AccountSetup) -> list[Finding]:
    return [_environment(setup.account), *_secrets(setup.account), _callback_address(setup), _routes(setup)]


def _environment(account: ProviderAccount) -> Finding:
    subject = AccountSubject.ENVIRONMENT()
    if _SIMULATOR in account.base_url:
        return unchecked(subject, AccountFinding.SIMULATOR())
    reason = sandbox_reason(account)
    return unchecked(subject, AccountFinding.SANDBOX(why=reason)) if reason else ok(subject, AccountFinding.LIVE())


def _secrets(account: ProviderAccount) -> list[Finding]:
    wanted: Mapping[str, AccountFinding] = _SECRETS.get(account.provider, {})
    return [
        ok(verbatim(name), AccountFinding.SET())
        if account.settings.get(name)
        else unchecked(verbatim(name), AccountFinding.NOT_SET(without=without()))
        for name, without in wanted.items()
    ]


def _callback_address(setup: AccountSetup) -> Finding:
    """Whether a provider can reach our address at all."""
    subject, provider = AccountSubject.OUR_CALLBACK(), setup.account.provider
    if provider in _NO_CALLBACKS:
        return unchecked(subject, AccountFinding.NO_CALLBACKS())
    of_all, of_account = setup.callback_addresses
    address = f"{of_account}/…" if provider in _ADDRESS_IN_EACH_CALL else of_all
    if not is_public(setup.public_url):
        private = AccountFinding.NOT_PUBLIC(address=address)
        simulated = _SIMULATOR in setup.account.base_url
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
