"""Calls to Wave's API (the key and, for a key that was made with signing, the signature of every request), and the
aggregated merchants, under each of which an aggregator collects for one of its merchants.

Source: docs/providers/wave.md, "Addresses and credentials", "Aggregated merchants".
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from guichet.clock import SECOND, Clock
from guichet.http_client import MAX_BODY
from guichet.providers.base import NotProcessed, Refused, Unknown
from guichet.providers.shared import signatures
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderClient, ProviderResponse
from guichet.providers.shared.fields import text_or_none
from guichet.providers.wave.responses import read_refusal

_PATH: Final = "/v1/aggregated_merchants"
#: Rows of one page, and pages that are read at most.
_PAGE: Final = 100
_MAX_PAGES: Final = 1000


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


class WaveMerchants:
    """The aggregated merchants of one wallet. `guichet providers setup wave-merchants` makes them."""

    max_length = 255

    def __init__(self, client: WaveClient) -> None:
        self._client = client

    async def ids_by_name(self) -> dict[str, str] | Unknown:
        """Costs a call for each hundred."""
        ids: dict[str, str] = {}
        after: str | None = None
        for _ in range(_MAX_PAGES):
            query = {"first": str(_PAGE)} | ({"after": after} if after else {})
            result = await self._client.get(_PATH, query)
            if not result.ok:
                return Unknown(result.raw)
            body = result.object() or {}
            rows = body.get("items")
            if not isinstance(rows, list):
                return Unknown(result.raw)
            ids |= {str(row["name"]): str(row["id"]) for row in rows if _is_merchant(row)}
            after = _next_page(body)
            if after is None:
                return ids
        return Unknown(ProviderAnswer.TOO_MANY_MERCHANTS(count=_PAGE * _MAX_PAGES))

    async def create(self, name: str) -> str | NotProcessed | Refused | Unknown:
        body = {
            "name": name[: self.max_length],
            "business_type": "other",
            "business_description": f"Paiements de {name}"[:255],
        }
        result = await self._client.post(_PATH, body)
        if not result.ok:
            return read_refusal(result)
        return text_or_none(result.ok_object().get("id")) or Unknown(result.raw)


def _is_merchant(row: object) -> bool:
    return isinstance(row, dict) and bool(row.get("name")) and bool(row.get("id"))


def _next_page(body: Mapping[str, Any]) -> str | None:
    page = body.get("page_info")
    return (
        text_or_none(page.get("end_cursor")) if isinstance(page, dict) and page.get("has_next_page") is True else None
    )
