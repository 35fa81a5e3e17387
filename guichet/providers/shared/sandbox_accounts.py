"""Where an account leads: to a provider's sandbox, where no money moves, so production refuses it (D83); or to a real
provider, which development refuses (D104)."""

from typing import Final
from urllib.parse import urlsplit

from guichet.domain.messages import Message
from guichet.http_client import is_loopback_host
from guichet.providers.shared.account_findings import AccountFinding
from guichet.providers.shared.client import ProviderAccount

SIMULATOR_PATH: Final = "/simulator/"
_STRIPE_TEST_KEYS: Final = ("sk_test_", "rk_test_")


def is_test_key(stripe_key: str) -> bool:
    return stripe_key.startswith(_STRIPE_TEST_KEYS)


def sandbox_reason(account: ProviderAccount) -> Message | None:
    """How the settings of an account show that it leads to a sandbox, without any secret; None when they do not.

    Source: docs/providers, "Sandbox" of each page.
    """
    host = urlsplit(account.base_url).hostname or ""
    if "sandbox" in host.split("."):
        return AccountFinding.SANDBOX_HOST(host=host)
    if account.settings.get("target_env") == "sandbox":
        return AccountFinding.SANDBOX_TARGET()
    if account.provider == "orange" and account.settings.get("country", "").lower() == "dev":
        return AccountFinding.SANDBOX_COUNTRY()
    if is_test_key(account.settings.get("secret_key", "")):
        return AccountFinding.SANDBOX_KEY()
    return None


def leads_to_simulator(account: ProviderAccount) -> bool:
    return SIMULATOR_PATH in account.base_url + "/"


def is_real(account: ProviderAccount) -> bool:
    """Whether money may move there: it is not on this machine, not a simulator, and not known as a sandbox."""
    host = urlsplit(account.base_url).hostname or ""
    here = not host or is_loopback_host(host) or leads_to_simulator(account)
    return not here and sandbox_reason(account) is None
