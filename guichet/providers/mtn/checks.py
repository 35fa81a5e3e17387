"""What MTN tells about an account, and the API users of its sandbox, which anybody with a subscription key may make.

Source: docs/providers/mtn.md, "Addresses and credentials".
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from guichet.domain.messages import Answer, verbatim
from guichet.providers.shared.account_checks import AccountSetup, Finding, answered, no_call, ok, wrong
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import ProviderClient, ProviderResponse
from guichet.providers.shared.fields import text_or_none

_SANDBOX: Final = "sandbox"
SANDBOX_ADDRESS: Final = "https://sandbox.momodeveloper.mtn.com"
_CONFLICT: Final = 409


async def check_products(products: Mapping[str, Callable[[], Awaitable[ProviderResponse]]]) -> list[Finding]:
    """Asks each product for its balance, which needs the token, the subscription key and the target environment."""
    return [
        answered(AccountSubject.PRODUCT_KEYS(product=name), await balance(), AccountFinding.KEYS_ACCEPTED())
        for name, balance in products.items()
    ]


async def check_callback_host(setup: AccountSetup, api_user: Callable[[], Awaitable[ProviderResponse]]) -> Finding:
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


class ApiUsers:
    """The sandbox as one subscription key sees it."""

    def __init__(self, client: ProviderClient, subscription_key: str) -> None:
        self._client = client
        self._headers = {"Ocp-Apim-Subscription-Key": subscription_key}

    async def create(self, user: str, callback_host: str) -> Answer | None:
        """Makes the API user `user`, a UUID of ours. None when it exists now; else what went wrong."""
        headers = {**self._headers, "X-Reference-Id": user}
        body = {"providerCallbackHost": callback_host}
        result = await self._client.send("POST", "/v1_0/apiuser", json=body, headers=headers)
        exists = result.ok or result.status == _CONFLICT
        return None if exists else result.raw

    async def create_key(self, user: str) -> tuple[str | None, ProviderResponse]:
        """A new key of the user, which replaces the one before; None when there is none in the answer."""
        result = await self._client.send("POST", f"/v1_0/apiuser/{user}/apikey", headers=self._headers)
        key = text_or_none(result.ok_object().get("apiKey"))
        return key, result
