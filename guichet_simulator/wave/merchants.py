"""Wave's wallets, each with a key in one country, and the merchants of an aggregator (docs/providers/wave.md,
"Addresses and credentials")."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import Refused, credential, json_object, json_response, new_uuid
from guichet_simulator.models import Kind, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.store import undocumented_order
from guichet_simulator.wave.payloads import error, page_of


class Wallet(NamedTuple):
    """`dial`: what the numbers of its country begin with."""

    name: str
    dial: str
    currency: str = "XOF"

    def serves(self, mobile: str) -> bool:
        """`mobile` without its `+`."""
        return mobile.startswith(self.dial)


_WALLETS: Final = {
    wallet.name: wallet
    for wallet in (
        Wallet("wave_sn", "221"),
        Wallet("wave_ci", "225"),
        Wallet("wave_bf", "226"),
        Wallet("wave_ml", "223"),
    )
}
#: The wallet of a key that names no country, which no real one does: it serves every country.
_NO_COUNTRY: Final = Wallet("wave", "")


def wallet_of(request: Request) -> Wallet:
    """The wallet of the request's key: `wave_sn_prod_…` is a key of Sénégal."""
    country = "_".join((credential(request) or "").split("_")[:2])
    return _WALLETS.get(country, _NO_COUNTRY)


def find_own(wave: SimulatedProvider, request: Request, kind: Kind, resource: str, missing: str) -> Transaction:
    """What the path names and the wallet of the request's key made. Raises Refused with the code `missing`."""
    tx = wave.find(kind, request.path_params["id"], resource)
    if tx is None or tx.operator != wallet_of(request).name:
        raise Refused(error(404, missing))
    return tx


async def search(
    wave: SimulatedProvider,
    request: Request,
    kind: Kind,
    resource: str,
    payload: Callable[[Transaction], dict[str, Any]],
) -> Response:
    """What was made under the client's reference."""
    where = "kind = ? AND resource = ? AND operator = ? AND client_ref = ?"
    reference = request.query_params.get("client_reference")
    transactions = wave.select(where, kind, resource, wallet_of(request).name, reference)
    return await wave.respond_to_status(None, {"result": [payload(tx) for tx in undocumented_order(transactions)]})


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
        merchant = self._find(request)
        kept = {ref: fields for ref, fields in self._merchants(request).items() if ref != merchant["id"]}
        self._store.set_setting(_setting(request), kept)
        return Response(status_code=204)

    async def _save(self, request: Request, merchant_id: str) -> Response:
        """Names are unique within the wallet; which error Wave answers to a second one is not published."""
        body = await json_object(request)
        if invalid := _invalid_fields(body):
            details = [{"loc": [name], "msg": "invalid value"} for name in invalid]
            return self._api.error(ResponseKind.REFUSED, echo={"details": details})
        merchants = self._merchants(request)
        if any(other["name"] == body["name"] and ref != merchant_id for ref, other in merchants.items()):
            raise Refused(error(400, "merchant-name-already-exists"))
        fields = {name: body.get(name) for name in (*_REQUIRED, *_OPTIONAL)}
        merchant = {"id": merchant_id, **fields, "is_locked": False}
        self._store.set_setting(_setting(request), {**merchants, merchant_id: merchant})
        return json_response(merchant)

    def refuse_unknown(self, request: Request, body: Mapping[str, Any]) -> None:
        """A session or payout may name only an aggregated merchant that exists; else this raises Refused."""
        merchant_id = body.get("aggregated_merchant_id")
        if merchant_id is not None and merchant_id not in self._merchants(request):
            raise Refused(error(400, "aggregated-merchant-not-found"))

    def _find(self, request: Request) -> dict[str, Any]:
        merchant = self._merchants(request).get(request.path_params["id"])
        if merchant is None:
            raise Refused(error(404, "aggregated-merchant-not-found"))
        return merchant

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
