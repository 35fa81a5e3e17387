"""Wave's payouts: money to a number, once per Idempotency-Key (docs/providers/wave.md, "Refunds", "Other calls")."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator import idempotency
from guichet_simulator.http_helpers import hundredths, json_object, json_response, new_uuid
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave_api import WaveApi
from guichet_simulator.wave_payloads import error, payout_object

_MAX_PAYMENT_REASON: Final = 40


class WavePayouts:
    def __init__(self, api: WaveApi) -> None:
        self._api = api
        self._ctx = api.ctx

    async def create(self, request: Request) -> Response:
        api = self._api
        if refusal := api.check_access(request):
            return refusal
        key, body = request.headers.get("idempotency-key"), await json_object(request) or {}
        amount = hundredths(body.get("receive_amount"), str(body.get("currency")))
        mobile = str(body.get("mobile", "")).removeprefix("+")
        reason_valid = len(str(body.get("payment_reason", ""))) <= _MAX_PAYMENT_REASON
        if not key or amount is None or not mobile.isdigit() or not reason_valid:
            return api.error(ResponseKind.REFUSED)
        fingerprint = idempotency.fingerprint("payout", body)
        try:
            stored = idempotency.stored_response(self._ctx.store, api.name, key=key, fingerprint=fingerprint)
        except idempotency.IdempotencyKeyReused:
            return error(409, "idempotency-mismatch").response()
        if stored:
            return stored
        scenario = self._ctx.choose_scenario(api.name, "credit", mobile)
        empty, refused = api.float_is_empty("payout"), scenario.response is ResponseKind.REFUSED
        if empty or refused:
            return api.error(ResponseKind.FLOAT_EMPTY if empty else ResponseKind.REFUSED, "payout")

        def create() -> Response:
            tx = self._ctx.create_transaction(
                api.name,
                "credit",
                scenario,
                operator="wave",
                ref="pt-" + new_uuid().replace("-", "")[:16],
                client_ref=body.get("client_reference"),
                phone=mobile,
                amount=amount,
                currency=str(body["currency"]),
                lifetime=api.lifetime,
            )
            response = json_response(payout_object(tx))
            return idempotency.store_response(self._ctx.store, api.name, response, key=key, fingerprint=fingerprint)

        return await api.respond("credit", scenario, create)

    async def read(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        tx = self._ctx.find(self._api.name, "credit", request.path_params["id"])
        if tx is None:
            return error(404, "payout-not-found").response()
        return await self._api.respond_to_status(tx, lambda: json_response(payout_object(tx)))

    async def reverse(self, request: Request) -> Response:
        """Always refused, as if the recipient had spent the money."""
        if refusal := self._api.check_access(request):
            return refusal
        if self._ctx.find(self._api.name, "credit", request.path_params["id"]) is None:
            return error(404, "payout-not-found").response()
        return error(409, "payout-reversal-recipient-insufficient-funds").response()
