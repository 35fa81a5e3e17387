"""What `guichet providers check --deep` finds out about an account: findings, and those that need no call."""

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable
from urllib.parse import urlsplit

from guichet.domain.money import plain
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.client import CallResult, ProviderAccount, ProviderResponse
from guichet.providers.sandbox_accounts import sandbox_reason

#: `unchecked`: nothing is known to be wrong, but a person must look, or there is nothing to check.
FindingState = Literal["ok", "wrong", "unchecked"]

_SIMULATOR: Final = "/simulator/"
#: For each provider the settings that it works without, and what is then missing.
_SECRETS: Final[dict[str, dict[str, str]]] = {
    "mtn": {"disbursement_subscription_key": "this account cannot refund"},
    "wave": {
        "webhook_secret": "signatures of callbacks are not checked",
        "signing_secret": "requests are not signed, which a key made with signing needs",
    },
    "pawapay": {
        "signing_key": "requests are not signed",
        "callback_public_key": "signatures of callbacks are not checked",
    },
    "sonatel": {
        "webhook_secret": "signatures of callbacks are not checked",
        "retailer_msisdn": "this account cannot refund",
        "retailer_pin": "this account cannot refund",
    },
    "stripe": {"webhook_secret": "signatures of callbacks are not checked"},
}
#: Providers that take the callback address with each payment; Coris has no callbacks, the others have one address.
_ADDRESS_IN_EACH_CALL: Final = ("mtn", "orange")
_NO_CALLBACKS: Final = ("coris",)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and a sentence about it."""

    subject: str
    state: FindingState
    sentence: str


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


def ok(subject: str, sentence: str) -> Finding:
    return Finding(subject, "ok", sentence)


def wrong(subject: str, sentence: str) -> Finding:
    return Finding(subject, "wrong", sentence)


def unchecked(subject: str, sentence: str) -> Finding:
    return Finding(subject, "unchecked", sentence)


def no_call(subject: str, sentence: str) -> Finding:
    """The provider has no call that tells it."""
    return unchecked(subject, f"cannot be checked by a call: {sentence}")


def answered(subject: str, result: CallResult, sentence: str) -> Finding:
    """`sentence` after a 2xx; else what came back."""
    is_ok = isinstance(result, ProviderResponse) and result.ok
    return ok(subject, sentence) if is_ok else wrong(subject, result.raw)


def balances_read(found: list[FloatBalance] | Unknown) -> Finding:
    if isinstance(found, Unknown):
        return wrong("balances", found.raw)
    shown = ", ".join(f"{each.wallet} {plain(each.amount)} {each.currency}".strip() for each in found)
    return ok("balances", shown or "none yet")


def callback_address_is_ours(subject: str, address: object, setup: AccountSetup) -> Finding:
    """The address that the provider has is one of ours."""
    if not isinstance(address, str) or not address:
        return wrong(subject, f"none is set at the provider; it must be {setup.callback_addresses[0]}")
    if address.rstrip("/") in setup.callback_addresses:
        return ok(subject, f"the provider has {address}")
    return wrong(subject, f"the provider has {address}, which must be {setup.callback_addresses[0]}")


def findings_without_a_call(setup: AccountSetup) -> list[Finding]:
    return [_environment(setup.account), *_secrets(setup.account), _callback_address(setup), _routes(setup)]


def _environment(account: ProviderAccount) -> Finding:
    if _SIMULATOR in account.base_url:
        return unchecked("environment", "the simulator: no money moves")
    reason = sandbox_reason(account)
    return unchecked("environment", f"a sandbox, no money moves: {reason}") if reason else ok("environment", "live")


def _secrets(account: ProviderAccount) -> list[Finding]:
    wanted: Mapping[str, str] = _SECRETS.get(account.provider, {})
    return [
        ok(name, "set") if account.settings.get(name) else unchecked(name, f"not set: {without}")
        for name, without in wanted.items()
    ]


def _callback_address(setup: AccountSetup) -> Finding:
    """Whether a provider can reach our address at all."""
    subject, provider = "our callback address", setup.account.provider
    if provider in _NO_CALLBACKS:
        return unchecked(subject, "the provider has no callbacks")
    of_all, of_account = setup.callback_addresses
    address = f"{of_account}/…" if provider in _ADDRESS_IN_EACH_CALL else of_all
    if not is_public(setup.public_url):
        private = f"GUICHET_PUBLIC_URL is no public https address, so no provider reaches {address}"
        simulated = _SIMULATOR in setup.account.base_url
        return unchecked(subject, private) if simulated else wrong(subject, private)
    return ok(subject, address)


def is_public(url: str) -> bool:
    """An https address whose host is no private IP address and no name of this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        return parts.scheme == "https" and ipaddress.ip_address(host).is_global
    except ValueError:
        return parts.scheme == "https" and "." in host and not host.endswith((".localhost", ".local", ".internal"))


def _routes(setup: AccountSetup) -> Finding:
    routed = ", ".join(setup.operators)
    return ok("routes", routed) if routed else unchecked("routes", "no route leads to this account")
