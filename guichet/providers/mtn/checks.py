"""What MTN tells about an account (docs/providers/mtn.md, "Addresses and credentials")."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from guichet.domain.messages import verbatim
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.account_checks import AccountSetup, Finding, answered, balances_read, no_call, ok, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import ProviderResponse

Get = Callable[[], Awaitable[ProviderResponse]]
_SANDBOX: Final = "sandbox"


async def check(
    setup: AccountSetup, products: Mapping[str, ProviderResponse], balances: list[FloatBalance] | Unknown, api_user: Get
) -> list[Finding]:
    """`products`: what each returns for its balance, which needs token, subscription key and target environment."""
    return [
        *[
            answered(AccountSubject.PRODUCT_KEYS(product=name), result, AccountFinding.KEYS_ACCEPTED())
            for name, result in products.items()
        ],
        balances_read(balances),
        await _callback_host(setup, api_user),
        no_call(AccountSubject.LIMITS(), AccountFinding.MTN_TELLS_NONE()),
    ]


async def _callback_host(setup: AccountSetup, api_user: Get) -> Finding:
    """MTN calls back only the host that the API user was made with; only the sandbox tells which one that is."""
    subject, our_host = AccountSubject.CALLBACK_HOST(), urlsplit(setup.public_url).hostname or ""
    if setup.account.settings["target_env"] != _SANDBOX:
        return no_call(subject, AccountFinding.HOST_IN_PORTAL(host=our_host))
    result = await api_user()
    if not result.ok:
        return wrong(subject, verbatim(result.raw))
    host = result.ok_object().get("providerCallbackHost")
    if host == our_host:
        return ok(subject, verbatim(str(host)))
    return wrong(subject, AccountFinding.HOST_WRONG(other=str(host), host=our_host))
