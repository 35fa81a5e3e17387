"""What MTN tells about an account (docs/providers/mtn.md, "Addresses and credentials")."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from guichet.domain.messages import verbatim
from guichet.providers.shared.account_checks import AccountSetup, Finding, answered, no_call, ok, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import CallResult, ProviderResponse

_SANDBOX: Final = "sandbox"


async def check_products(products: Mapping[str, Callable[[], Awaitable[CallResult]]]) -> list[Finding]:
    """Asks each product for its balance, which needs the token, the subscription key and the target environment."""
    return [
        answered(AccountSubject.PRODUCT_KEYS(product=name), await balance(), AccountFinding.KEYS_ACCEPTED())
        for name, balance in products.items()
    ]


async def check_callback_host(setup: AccountSetup, api_user: Callable[[], Awaitable[CallResult]]) -> Finding:
    """MTN calls back only the host that the API user was made with; only the sandbox tells which one that is."""
    subject, ours = AccountSubject.CALLBACK_HOST(), urlsplit(setup.public_url).hostname or ""
    if setup.account.settings["target_env"] != _SANDBOX:
        return no_call(subject, AccountFinding.HOST_IN_PORTAL(host=ours))
    result = await api_user()
    if not isinstance(result, ProviderResponse) or not result.ok:
        return wrong(subject, verbatim(result.raw))
    host = result.ok_object().get("providerCallbackHost")
    if host == ours:
        return ok(subject, verbatim(str(host)))
    return wrong(subject, AccountFinding.HOST_WRONG(other=str(host), host=ours))
