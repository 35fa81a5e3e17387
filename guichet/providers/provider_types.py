"""The types of providers there are, and where an account with one leads."""

import re
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Final
from urllib.parse import urlsplit

from guichet.domain.messages import Message
from guichet.http_client import is_loopback_host
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.client import ProviderAccount
from guichet.providers.shared.provider_type import ProviderType

#: A new provider is a folder here, a folder in the simulator, a page in docs/providers, and its name in this line.
NAMES: Final = ("mtn", "wave", "pawapay", "feexpay", "orange", "sonatel", "stripe", "coris", "paydunya", "fedapay")
SIMULATOR_PATH: Final = "/simulator/"
_SANDBOX: Final = "sandbox"
#: Words by which hosts of test environments are called.
_TEST_WORDS: Final = frozenset({"test", "testbed", _SANDBOX, "staging", "preprod", "demo", "uat"})


class _ProviderTypes(Mapping[str, ProviderType]):
    """By name. A folder is imported when its type is looked up: a process imports those of its accounts only."""

    def __getitem__(self, name: str) -> ProviderType:
        if name not in NAMES:
            raise KeyError(name)
        declared: ProviderType = import_module(f"guichet.providers.{name}").TYPE
        return declared

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


PROVIDER_TYPES: Final[Mapping[str, ProviderType]] = _ProviderTypes()


def served_operators(account: ProviderAccount) -> Collection[str] | None:
    """The operators that the account can serve; None for any. A route of another one is a mistake in the file."""
    return PROVIDER_TYPES[account.provider].operators(account.settings)


def sandbox_reason(account: ProviderAccount) -> Message | None:
    """Why an account must not be used in production: it leads to a sandbox, where no money moves, or its host reads
    like a test environment and no `live_host` says that it is none. None when nothing is known against it."""
    if reason := _known_sandbox(account):
        return reason
    host = _host(account)
    if leads_to_simulator(account) or host == account.live_host or _TEST_WORDS.isdisjoint(_words(host)):
        return None
    return AccountFinding.TEST_HOST(host=host)


def _known_sandbox(account: ProviderAccount) -> Message | None:
    """How the provider, or the word itself in the host, marks a sandbox."""
    host, declared = _host(account), PROVIDER_TYPES.get(account.provider)
    named = _SANDBOX in host.split(".") and host != account.live_host
    if named or (declared and host in declared.sandbox_hosts):
        return AccountFinding.SANDBOX_HOST(host=host)
    return declared.sandbox(account.settings) if declared else None


def _host(account: ProviderAccount) -> str:
    return urlsplit(account.base_url).hostname or ""


def _words(host: str) -> set[str]:
    """`uat2-api.example.com` → uat, api, example, com."""
    return {word for label in host.split(".") for word in re.split(r"[-\d]+", label)}


def leads_to_simulator(account: ProviderAccount) -> bool:
    return SIMULATOR_PATH in account.base_url + "/"


def is_real(account: ProviderAccount) -> bool:
    """Whether money may move there: it is not on this machine, not a simulator, and not known as a sandbox. A host that
    only reads like a test environment may be real."""
    host = _host(account)
    here = not host or is_loopback_host(host) or leads_to_simulator(account)
    return not here and _known_sandbox(account) is None


def may_be_real(account: ProviderAccount) -> bool:
    """As `is_real`, but False where settings are missing that alone tell it: such an account cannot be used either."""
    declared = PROVIDER_TYPES.get(account.provider)
    return (declared is None or declared.tells_sandbox(account.settings)) and is_real(account)
