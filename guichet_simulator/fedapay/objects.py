"""What FedaPay's transactions and payouts have in common: made under a reference of the client's that is used once, and
read by their id, by that reference, or in pages."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.fedapay.payloads import error, page_of, without_currency
from guichet_simulator.fedapay.records import Record, Records
from guichet_simulator.http_helpers import ErrorResponse, Refused, json_response
from guichet_simulator.models import Kind


class FedaPayObjects(ABC):
    kind: ClassVar[Kind]
    name: ClassVar[str]
    missing: ClassVar[ErrorResponse]

    def __init__(self, api: SimulatedProvider, records: Records) -> None:
        self._api = api
        self._records = records

    @abstractmethod
    def object(self, record: Record) -> dict[str, Any]: ...

    def add(self, request: Request, body: Mapping[str, Any], values: Mapping[str, Any]) -> Response:
        reference = body.get("merchant_reference")
        if reference and self._records.by_reference(self.kind, str(reference)):
            raise Refused(error(422, "Validation échouée", {"merchant_reference": ["est déjà utilisé"]}))
        names = ("amount", "description", "merchant_reference", "custom_metadata")
        record = self._records.add(self.kind, {**{name: body.get(name) for name in names}, **values})
        return json_response(self._shown(record, request))

    async def read(self, request: Request) -> Response:
        return await self._read(self.find(request), request)

    async def read_by_reference(self, request: Request) -> Response:
        record = self._records.by_reference(self.kind, request.path_params["reference"])
        if record is None:
            raise Refused(self.missing)
        return await self._read(record, request)

    async def search(self, request: Request) -> Response:
        """Newest first, which is not documented."""
        records = sorted(self._records.all(self.kind), key=lambda record: -record["id"])
        include = request.query_params.get("include")
        rows = [without_currency(self.object(record), include) for record in records]
        return await self._api.respond_to_status(None, page_of(rows, request.query_params, f"{self.name}s"))

    def find(self, request: Request) -> Record:
        record = self._records.get(self.kind, request.path_params["id"])
        if record is None:
            raise Refused(self.missing)
        return record

    async def _read(self, record: Record, request: Request) -> Response:
        tx, shown = self._records.transaction(record), self._shown(record, request)
        return json_response(shown) if tx is None else await self._api.respond_to_status(tx, shown)

    def _shown(self, record: Record, request: Request) -> dict[str, Any]:
        include = request.query_params.get("include")
        return {f"v1/{self.name}": without_currency(self.object(record), include)}
