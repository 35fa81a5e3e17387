"""Wave's aggregated merchants: the merchants of an aggregator (docs/providers/wave.md, "Addresses and credentials")."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import Refused, json_object, json_response, new_uuid
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave.payloads import error, page_of
from guichet_simulator.wave.wallets import wallet_of

_MAX_NAME: Final = 255
_REQUIRED: Final = ("name", "business_type", "business_description")
_OPTIONAL: Final = ("business_registration_identifier", "business_sector", "website_url", "manager_name")

Merchants = dict[str, dict[str, Any]]


class WaveMerchants:
    def __init__(self, api: SimulatedProvider) -> None:
        self._api = api
        self._store = api.ctx.store

    async def create(self, request: Request) -> Response:
        return await self._save(request, "am-" + new_uuid().replace("-", "")[:13])

    async def read_all(self, request: Request) -> Response:
        return json_response(page_of(self._merchants(request), request.query_params))

    async def read(self, request: Request) -> Response:
        return json_response(self._find(request))

    async def update(self, request: Request) -> Response:
        return await self._save(request, self._find(request)["id"])

    async def delete(self, request: Request) -> Response:
        found = self._find(request)
        kept = {ref: each for ref, each in self._merchants(request).items() if ref != found["id"]}
        self._store.set_setting(_setting(request), kept)
        return Response(status_code=204)

    async def _save(self, request: Request, merchant_id: str) -> Response:
        """Names are unique within the wallet; which error Wave answers to a second one is not published."""
        body = await json_object(request) or {}
        if invalid := _invalid_fields(body):
            details = [{"loc": [name], "msg": "invalid value"} for name in invalid]
            return self._api.error(ResponseKind.REFUSED, echo={"details": details})
        merchants = self._merchants(request)
        if any(each["name"] == body["name"] and ref != merchant_id for ref, each in merchants.items()):
            raise Refused(error(400, "merchant-name-already-exists"))
        fields = {name: body.get(name) for name in (*_REQUIRED, *_OPTIONAL)}
        merchant = {"id": merchant_id, **fields, "is_locked": False}
        self._store.set_setting(_setting(request), {**merchants, merchant_id: merchant})
        return json_response(merchant)

    def refuse_unknown(self, request: Request, body: Mapping[str, Any]) -> None:
        """A session or payout may name only an aggregated merchant that exists; else this raises Refused."""
        wanted = body.get("aggregated_merchant_id")
        if wanted is not None and wanted not in self._merchants(request):
            raise Refused(error(400, "aggregated-merchant-not-found"))

    def _find(self, request: Request) -> dict[str, Any]:
        found = self._merchants(request).get(request.path_params["id"])
        if found is None:
            raise Refused(error(404, "aggregated-merchant-not-found"))
        return found

    def _merchants(self, request: Request) -> Merchants:
        """By id, oldest first."""
        saved: Merchants | None = self._store.setting(_setting(request))
        return saved or {}


def _setting(request: Request) -> str:
    return f"wave:merchants:{wallet_of(request).name}"


def _invalid_fields(body: Mapping[str, Any]) -> list[str]:
    missing = [name for name in _REQUIRED if not isinstance(body.get(name), str) or not body[name]]
    valid = {
        "name": len(str(body.get("name"))) <= _MAX_NAME,
        "business_type": body.get("business_type") in ("fintech", "other"),
    }
    return missing or [name for name, is_valid in valid.items() if not is_valid]
