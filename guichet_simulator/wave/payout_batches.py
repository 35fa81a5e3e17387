"""Wave's batches of payouts: taken at once, paid afterwards (docs/providers/wave.md, "Refunds")."""

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.http_helpers import json_object, json_response, new_uuid
from guichet_simulator.models import PENDING
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave.api import WaveApi
from guichet_simulator.wave.merchants import WaveMerchants
from guichet_simulator.wave.payloads import error, payout_object
from guichet_simulator.wave.payouts import create_payout, payout_error
from guichet_simulator.wave.wallets import wallet_of


class WavePayoutBatches:
    def __init__(self, api: WaveApi, merchants: WaveMerchants) -> None:
        self._api = api
        self._merchants = merchants
        self._ctx = api.ctx

    async def create(self, request: Request) -> Response:
        """All payouts or, where one of them is invalid, none. The same Idempotency-Key gives the same batch."""
        api, wallet = self._api, wallet_of(request)
        if refusal := api.check_access(request):
            return refusal
        payouts = (await json_object(request) or {}).get("payouts")
        key = request.headers.get("idempotency-key")
        if not key or not isinstance(payouts, list) or not all(isinstance(body, dict) for body in payouts):
            return api.error(ResponseKind.REFUSED)
        if invalid := next(filter(None, (payout_error(body, wallet) for body in payouts)), None):
            return invalid.response()
        if refused := next(filter(None, (self._merchants.refuse_unknown(request, body) for body in payouts)), None):
            return refused
        name = f"wave:batch:{wallet.name}:{key}"
        batch_id = self._ctx.store.setting(name)
        if batch_id is None:
            batch_id = "pb-" + new_uuid().replace("-", "")[:13]
            self._ctx.store.set_setting(name, batch_id)
            for body in payouts:
                scenario = self._ctx.choose_scenario(api.name, "credit", str(body["mobile"]))
                create_payout(api, scenario, body, wallet, batch_id)
        return json_response({"id": batch_id})

    async def read(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        self._ctx.apply_due_decisions()
        batch_id = request.path_params["id"]
        where = "provider = 'wave' AND resource = 'payout' AND operator = ? AND json_extract(detail, '$.batch_id') = ?"
        found = self._ctx.store.select(where, wallet_of(request).name, batch_id)
        if not found:
            return error(404, "payout-batch-not-found").response()
        status = "processing" if any(tx.state == PENDING for tx in found) else "complete"
        return json_response({"id": batch_id, "status": status, "payouts": [payout_object(tx) for tx in found]})
