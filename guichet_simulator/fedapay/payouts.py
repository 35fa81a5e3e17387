"""FedaPay's payouts: created, then started, which alone moves money (docs/providers/fedapay.md, "Refunds")."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.clock import DAY
from guichet_simulator.fedapay.objects import FedaPayObjects
from guichet_simulator.fedapay.payloads import (
    MAX_PAYOUT,
    NOT_ALLOWED,
    PAYOUT_MODES,
    SANDBOX_MODE,
    check_creation,
    error,
    payout_object,
    phone_of,
)
from guichet_simulator.fedapay.records import Record
from guichet_simulator.fedapay.transactions import COUNTRIES, is_sandbox
from guichet_simulator.http_helpers import ErrorResponse, Refused, json_object, json_response
from guichet_simulator.transactions import NewTransaction

#: Payouts to one number in a day.
_MOST_A_DAY: Final = 3


class FedaPayPayouts(FedaPayObjects):
    kind = "credit"
    name = "payout"
    missing = error(404, "Dépôt introuvable")

    async def create(self, request: Request) -> Response:
        body = await json_object(request)
        check_creation(body, 1)
        if not body.get("mode"):
            raise Refused(ErrorResponse(500))
        if body["mode"] not in ((SANDBOX_MODE,) if is_sandbox(request) else PAYOUT_MODES):
            raise Refused(error(400, NOT_ALLOWED))
        if body["amount"] > MAX_PAYOUT:
            raise Refused(error(400, f"Montant au-delà de la limite de {MAX_PAYOUT}"))
        digits = phone_of((body.get("customer") or {}).get("phone_number"), COUNTRIES)
        return self.add(request, body, {"mode": body["mode"], "phone": digits})

    async def start(self, request: Request) -> Response:
        """Of one payout. A second start of one is refused here; what the real one does is not known."""
        body = await json_object(request)
        items = body.get("payouts")
        if not isinstance(items, list) or len(items) != 1 or not isinstance(items[0], dict):
            raise Refused(error(400, "Paramètre manquant ou la valeur est vide : payouts"))
        if "scheduled_at" in items[0]:
            raise Refused(error(400, "INVALID_PARAMS", {"scheduled_at": ["invalid_datetime"]}))
        record = self._records.get("credit", items[0].get("id"))
        if record is None:
            raise Refused(self.missing)
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
        return await self._api.take(new, lambda _: json_response({"v1/payouts": [self.object(record)]}))

    def _check_limit(self, record: Record) -> None:
        """Raises Refused for one more than a number may get in a day."""
        since = self._api.ctx.clock.now() - DAY
        where = "kind = 'credit' AND phone = ? AND created_at > ? AND state != 'failed'"
        if len(self._api.select(where, record["phone"], since)) >= _MOST_A_DAY:
            raise Refused(error(400, "Limite de dépôts par jour atteinte pour ce numéro"))

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

    def object(self, record: Record) -> dict[str, Any]:
        return payout_object(record, self._records.transaction(record), self._api.ctx.clock.now())
