"""Wave's aggregated merchants: made by an aggregator, named in its sessions and payouts (docs/providers/wave.md)."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.http_helpers import json_object, json_response, new_uuid
from guichet_simulator.wave_api import Endpoint, WaveApi
from guichet_simulator.wave_payloads import error

_SETTING: Final = "wave:aggregated_merchants"
_BUSINESS_TYPES: Final = ("fintech", "other")
_MAX_TEXT: Final = 255
#: Rows of a page when the client asks for none.
_PAGE: Final = 50


class WaveMerchants:
    def __init__(self, api: WaveApi) -> None:
        self._api = api
        self._store = api.ctx.store

    async def read_all(self, request: Request) -> Response:
        """A page, oldest first: `first` rows behind the cursor `after`, which is an id."""
        if refusal := self._api.check_access(request):
            return refusal
        everyone, first = self._everyone(), int(request.query_params.get("first", _PAGE))
        ids = [merchant["id"] for merchant in everyone]
        after = request.query_params.get("after")
        start = ids.index(after) + 1 if after in ids else 0
        items = everyone[start : start + first]
        page_info = {
            "start_cursor": items[0]["id"] if items else None,
            "end_cursor": items[-1]["id"] if items else None,
            "has_next_page": start + first < len(everyone),
        }
        return json_response({"page_info": page_info, "items": items})

    async def create(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        body = await json_object(request) or {}
        texts = [body.get(field) for field in ("name", "business_description")]
        valid = all(isinstance(text, str) and 0 < len(text) <= _MAX_TEXT for text in texts)
        everyone = self._everyone()
        if not valid or body.get("business_type") not in _BUSINESS_TYPES:
            return error(400, "request-validation-error").response()
        if body["name"] in [merchant["name"] for merchant in everyone]:
            return error(400, "merchant-name-already-exists").response()
        merchant = {**body, "id": "am-" + new_uuid().replace("-", "")[:11], "is_locked": False}
        self._store.set_setting(_SETTING, [*everyone, merchant])
        return json_response(merchant)

    async def read(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        found = [each for each in self._everyone() if each["id"] == request.path_params["id"]]
        return json_response(found[0]) if found else error(404, "aggregated-merchant-not-found").response()

    def named(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint of a session or payout, which may name only an aggregated merchant that exists."""

        async def checked(request: Request) -> Response:
            wanted = (await json_object(request) or {}).get("aggregated_merchant_id")
            known = wanted is None or wanted in [merchant["id"] for merchant in self._everyone()]
            if known or self._api.check_access(request):
                return await endpoint(request)
            return error(400, "aggregated-merchant-not-found").response()

        return checked

    def _everyone(self) -> list[dict[str, Any]]:
        return self._store.setting(_SETTING) or []
