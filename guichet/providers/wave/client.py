"""Calls to Wave's API: the key and, for a key that was made with signing, the signature of every request
(docs/providers/wave.md, "Addresses and credentials")."""

from collections.abc import Mapping

import msgspec

from guichet.clock import SECOND, Clock
from guichet.http_client import MAX_BODY
from guichet.providers.shared import signatures
from guichet.providers.shared.client import ProviderClient, ProviderResponse


class WaveClient:
    def __init__(self, http: ProviderClient, settings: Mapping[str, str], clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._headers = {"Authorization": f"Bearer {settings['api_key']}"}
        self._signing_secret = settings.get("signing_secret")

    async def get(
        self, path: str, query: Mapping[str, str] | None = None, *, max_bytes: int = MAX_BODY
    ) -> ProviderResponse:
        headers = {**self._headers, **self._signature(b"")}
        return await self._http.send("GET", path, query=query, headers=headers, max_bytes=max_bytes)

    async def post(
        self, path: str, body: Mapping[str, str] | None, more_headers: Mapping[str, str] | None = None
    ) -> ProviderResponse:
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = {**self._headers, "Content-Type": "application/json", **(more_headers or {}), **self._signature(raw)}
        return await self._http.send("POST", path, body=raw, headers=headers)

    def _signature(self, body: bytes) -> dict[str, str]:
        """A key with a `signing_secret` must sign every request, GETs too; otherwise Wave answers 401."""
        if not self._signing_secret:
            return {}
        timestamp = str(self._clock.now() // SECOND)
        digest = signatures.hmac_sha256_hex(self._signing_secret, timestamp.encode() + body)
        return {"Wave-Signature": f"t={timestamp},v1={digest}"}
