"""Accounts that lead to a provider's sandbox: no money moves there, so production refuses them (D83)."""

from typing import Final
from urllib.parse import urlsplit

from guichet.providers.client import ProviderAccount

_STRIPE_TEST_KEYS: Final = ("sk_test_", "rk_test_")


def is_test_key(stripe_key: str) -> bool:
    return stripe_key.startswith(_STRIPE_TEST_KEYS)


def sandbox_reason(account: ProviderAccount) -> str | None:
    """How the settings of an account show that it leads to a sandbox, without any secret; None when they do not.

    Source: docs/providers, "Sandbox" of each page.
    """
    host = urlsplit(account.base_url).hostname or ""
    if "sandbox" in host.split("."):
        return f"{host} is a sandbox"
    if account.settings.get("target_env") == "sandbox":
        return 'target_env = "sandbox"'
    if account.provider == "orange" and account.settings.get("country", "").lower() == "dev":
        return 'country = "dev" is the sandbox'
    if is_test_key(account.settings.get("secret_key", "")):
        return "secret_key is a test key"
    return None
