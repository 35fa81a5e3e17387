"""FedaPay's payouts: created, then started, which alone moves money (docs/providers/fedapay.md, "Refunds")."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import DAY
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.fedapay.payloads import (
    MAX_PAYOUT,
    NOT_ALLOWED,
    PAYOUT_MODES,
    SANDBOX_MODE,
    check_creation,
    error,
    page_of,
    payout_object,
    phone_of,
    without_currency,
)
from guichet_simulator.fedapay.records import Record, Records
from guichet_simulator.fedapay.transactions import COUNTRIES, is_sandbox
from guichet_simulator.http_helpers import ErrorResponse, Refused, json_object, json_response
from guichet_simulator.transactions import NewTransaction

#: Payouts to one number in a day.
_MOST_A_DAY: Final = 3


class FedaPayPayouts:
    def __init__(self, api: SimulatedProvider, records: Records) -> None:
        self._api = api
        self._records = records

    async def create(self, request: Request) -> Response:
        body = await json_object(request) or {}
        check_creation(body, 1)
        if not body.get("mode"):
            raise Refused(ErrorResponse(500))
        if body["mode"] not in ((SANDBOX_MODE,) if is_sandbox(request) else PAYOUT_MODES):
            raise Refused(error(400, NOT_ALLOWED))
        if body["amount"] > MAX_PAYOUT:
            raise Refused(error(400, f"Montant au-delà de la limite de {MAX_PAYOUT}"))
        reference = body.get("merchant_reference")
        if reference and self._records.by_reference("credit", str(reference)):
            raise Refused(error(422, "Validation échouée", {"merchant_reference": ["est déjà utilisé"]}))
        digits = phone_of((body.get("customer") or {}).get("phone_number"), COUNTRIES)
        names = ("amount", "mode", "description", "merchant_reference", "custom_metadata")
        record = self._records.add("credit", {**{name: body.get(name) for name in names}, "phone": digits})
        return json_response(self._shown(record, request))

    async def start(self, request: Request) -> Response:
        """Of one payout. A second start of one is refused here; what the real one does is not known."""
        body = await json_object(request) or {}
        items = body.get("payouts")
        if not isinstance(items, list) or len(items) != 1 or not isinstance(items[0], dict):
            raise Refused(error(400, "Paramètre manquant ou la valeur est vide : payouts"))
        if "scheduled_at" in items[0]:
            raise Refused(error(400, "INVALID_PARAMS", {"scheduled_at": ["invalid_datetime"]}))
        record = self._records.get("credit", items[0].get("id"))
        if record is None:
            raise Refused(error(404, "Dépôt introuvable"))
        if self._records.transaction(record) is not None:
            raise Refused(error(400, "Dépôt déjà démarré"))
        self._check_limit(record)
        new = NewTransaction(
            "credit",
            self._api.choose_scenario("credit", record["phone"]),
            operator=record["mode"],
            ref=str(record["id"]),
            client_ref=record["merchant_reference"],
            phone=record["phone"],
            amount=record["amount"] * 100,
        )
        return await self._api.take(new, lambda _: json_response({"v1/payouts": [self._object(record)]}))

    def _check_limit(self, record: Record) -> None:
        """Raises Refused for one more than a number may get in a day."""
        since = self._api.ctx.clock.now() - DAY
        where = "kind = 'credit' AND phone = ? AND created_at > ? AND state != 'failed'"
        if len(self._api.select(where, record["phone"], since)) >= _MOST_A_DAY:
            raise Refused(error(400, "Limite de dépôts par jour atteinte pour ce numéro"))

    async def read(self, request: Request) -> Response:
        return await self._state(self._records.get("credit", request.path_params["id"]), request)

    async def read_by_reference(self, request: Request) -> Response:
        return await self._state(self._records.by_reference("credit", request.path_params["reference"]), request)

    async def search(self, request: Request) -> Response:
        records = sorted(self._records.all("credit"), key=lambda record: -record["id"])
        include = request.query_params.get("include")
        rows = [without_currency(self._object(record), include) for record in records]
        return json_response(page_of(rows, request.query_params, "payouts"))

    async def balances(self, request: Request) -> Response:
        """One for each mode, of what was collected and paid out over it: they do not combine."""
        balances = dict.fromkeys(PAYOUT_MODES, 0)
        if not self._api.dashboard.float_empty:
            for tx in self._api.select("state = 'succeeded'"):
                change = tx.amount if tx.kind == "debit" else -tx.amount
                balances[tx.operator] = balances.get(tx.operator, 0) + change // 100
        rows = [
            {"id": number, "amount": amount, "mode": mode} for number, (mode, amount) in enumerate(balances.items(), 1)
        ]
        return json_response({"v1/balances": rows})

    async def _state(self, record: Record | None, request: Request) -> Response:
        if record is None:
            raise Refused(error(404, "Dépôt introuvable"))
        tx = self._records.transaction(record)
        if tx is None:
            return json_response(self._shown(record, request))
        return await self._api.respond_to_status(tx, self._shown(record, request))

    def _shown(self, record: Record, request: Request) -> dict[str, Any]:
        return {"v1/payout": without_currency(self._object(record), request.query_params.get("include"))}

    def _object(self, record: Record) -> dict[str, Any]:
        return payout_object(record, self._records.transaction(record), self._api.ctx.clock.now())
