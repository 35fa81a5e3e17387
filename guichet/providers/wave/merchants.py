"""Wave's aggregated merchants: an aggregator collects under one for each of its merchants (docs/providers/wave.md,
"Aggregated merchants")."""

from typing import Final

from guichet.providers.base import NotProcessed, Refused, Unknown
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderClient
from guichet.providers.shared.fields import text_or_none
from guichet.providers.wave.responses import page_in, read_refusal

_PATH: Final = "/v1/aggregated_merchants"
#: Rows of one page, and pages that are read at most.
_PAGE: Final = 100
_MAX_PAGES: Final = 1000


class WaveMerchants:
    """The aggregated merchants of one wallet. `guichet providers setup wave-merchants` makes them."""

    max_length = 255

    def __init__(self, http: ProviderClient) -> None:
        self._http = http

    async def ids_by_name(self) -> dict[str, str] | Unknown:
        """Costs a call for each hundred."""
        ids: dict[str, str] = {}
        after: str | None = None
        for _ in range(_MAX_PAGES):
            query = {"first": str(_PAGE)} | ({"after": after} if after else {})
            result = await self._http.get(_PATH, query)
            page = page_in(result.ok_object(), "id")
            if page is None:
                return Unknown(result.raw)
            rows, after = page
            ids |= {str(row["name"]): str(row["id"]) for row in rows if row.get("name")}
            if after is None:
                return ids
        return Unknown(ProviderAnswer.TOO_MANY_MERCHANTS(count=_PAGE * _MAX_PAGES))

    async def create(self, name: str) -> str | NotProcessed | Refused | Unknown:
        body = {
            "name": name[: self.max_length],
            "business_type": "other",
            "business_description": f"Paiements de {name}"[:255],
        }
        result = await self._http.post(_PATH, body)
        if not result.ok:
            return read_refusal(result)
        return text_or_none(result.ok_object().get("id")) or Unknown(result.raw)
