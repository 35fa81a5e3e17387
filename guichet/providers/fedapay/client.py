"""Calls to one account of FedaPay: a transaction or a payout by its id, by our reference, and what makes them.

Source: docs/providers/fedapay.md, "Initiating a payment", "Lost answers".
"""

from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import quote

from guichet.providers.fedapay.responses import object_in
from guichet.providers.shared.client import ProviderClient, ProviderResponse

Kind = Literal["transaction", "payout"]
#: Else the currency is a number.
_WITH_CURRENCY: Final = {"include": "currency"}
#: Bytes. A page of a hundred transactions is longer than other responses.
_MAX_LIST: Final = 1024 * 1024


class FedaPayClient:
    def __init__(self, http: ProviderClient) -> None:
        self._http = http

    async def by_id(self, kind: Kind, fedapay_id: str) -> ProviderResponse:
        return await self._http.get(f"/v1/{kind}s/{quote(fedapay_id, safe='')}", _WITH_CURRENCY, max_bytes=_MAX_LIST)

    async def by_reference(self, kind: Kind, reference: str) -> ProviderResponse:
        return await self._http.get(
            f"/v1/{kind}s/merchant/{quote(reference, safe='')}", _WITH_CURRENCY, max_bytes=_MAX_LIST
        )

    async def rows(self, kind: Kind, page: int, per_page: int) -> ProviderResponse:
        query = {"search": "*", "page": str(page), "per_page": str(per_page), **_WITH_CURRENCY}
        return await self._http.get(f"/v1/{kind}s/search", query, max_bytes=_MAX_LIST)

    async def create_payout(self, body: Mapping[str, object]) -> ProviderResponse:
        return await self._http.post("/v1/payouts", body)

    async def start(self, payout_id: str) -> ProviderResponse:
        """Sends a payout at once. Whether a second start of one payout pays twice is not known."""
        body = {"payouts": [{"id": int(payout_id) if payout_id.isdecimal() else payout_id}]}
        return await self._http.send("PUT", "/v1/payouts/start", json=body)


def id_of(result: ProviderResponse, kind: Kind) -> str | None:
    entity = object_in(result, kind)
    return str(entity["id"]) if entity else None
