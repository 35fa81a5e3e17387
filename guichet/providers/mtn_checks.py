"""What MTN tells about an account (docs/providers/mtn.md, "Addresses and credentials")."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from guichet.providers.account_checks import AccountSetup, Finding, answered, no_call, ok, wrong
from guichet.providers.client import CallResult, ProviderResponse

_SANDBOX: Final = "sandbox"


async def check_products(products: Mapping[str, Callable[[], Awaitable[CallResult]]]) -> list[Finding]:
    """Asks each product for its balance, which needs the token, the subscription key and the target environment."""
    return [
        answered(f"{name} keys", await balance(), "the user, the key and the subscription key are accepted")
        for name, balance in products.items()
    ]


async def check_callback_host(setup: AccountSetup, api_user: Callable[[], Awaitable[CallResult]]) -> Finding:
    """MTN calls back only the host that the API user was made with; only the sandbox tells which one that is."""
    subject, ours = "callback host", urlsplit(setup.public_url).hostname
    if setup.account.settings["target_env"] != _SANDBOX:
        return no_call(subject, f"the providerCallbackHost in MTN's portal must be {ours}")
    result = await api_user()
    if not isinstance(result, ProviderResponse) or not result.ok:
        return wrong(subject, result.raw)
    host = result.ok_object().get("providerCallbackHost")
    return ok(subject, f"{host}") if host == ours else wrong(subject, f"the API user was made with {host}, not {ours}")
