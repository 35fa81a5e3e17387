"""The API users of MTN's sandbox, which anybody with a subscription key may make (docs/providers/mtn.md, "Addresses and
credentials")."""

from typing import Final

from guichet.domain.messages import Answer
from guichet.providers.shared.client import ProviderClient, ProviderResponse
from guichet.providers.shared.fields import text_or_none

SANDBOX_ADDRESS: Final = "https://sandbox.momodeveloper.mtn.com"
_CONFLICT: Final = 409


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
