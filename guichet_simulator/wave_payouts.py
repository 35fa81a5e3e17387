"""Wave's payouts: money to a number, once per Idempotency-Key (docs/providers/wave.md, "Refunds", "Other calls")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator import idempotency
from guichet_simulator.http_helpers import hundredths, json_object, json_response, new_uuid
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave_payloads import error, payout_object

if TYPE_CHECKING:
    from guichet_simulator.wave import Wave

_MAX_PAYMENT_REASON: Final = 40


class WavePayouts:
    def __init__(self, wave: Wave) -> None:
        self._wave = wave
        self._ctx = wave.ctx

    async def create(self, request: Request) -> Response:
        wave = self._wave
        if refusal := wave.check_access(request):
            return refusal
        key, body = request.headers.get("idempotency-key"), await json_object(request) or {}
        amount = hundredths(body.get("receive_amount"), str(body.get("currency")))
        mobile = str(body.get("mobile", "")).removeprefix("+")
        reason_valid = len(str(body.get("payment_reason", ""))) <= _MAX_PAYMENT_REASON
        if not key or amount is None or not mobile.isdigit() or not reason_valid:
            return wave.error(ResponseKind.REFUSED)
        fingerprint = idempotency.fingerprint("payout", body)
        try:
            stored = idempotency.stored_response(self._ctx.store, wave.name, key=key, fingerprint=fingerprint)
        except idempotency.IdempotencyKeyReused:
            return error(409, "idempotency-mismatch").response()
        if stored:
            return stored
        scenario = self._ctx.choose_scenario(wave.name, "credit", mobile)
        if scenario.response is ResponseKind.REFUSED:
            return wave.error(ResponseKind.REFUSED, "payout")

        def create() -> Response:
            tx = self._ctx.create_transaction(
                wave.name,
                "credit",
                scenario,
                operator="wave",
                ref="pt-" + new_uuid().replace("-", "")[:16],
                client_ref=body.get("client_reference"),
                phone=mobile,
                amount=amount,
                currency=str(body["currency"]),
                lifetime=wave.lifetime,
            )
            response = json_response(payout_object(tx))
            return idempotency.store_response(self._ctx.store, wave.name, response, key=key, fingerprint=fingerprint)

        return await wave.respond("credit", scenario, create)

    async def read(self, request: Request) -> Response:
        if refusal := self._wave.check_access(request):
            return refusal
        tx = self._ctx.find(self._wave.name, "credit", request.path_params["id"])
        if tx is None:
            return error(404, "payout-not-found").response()
        return await self._wave.respond_to_status(tx, lambda: json_response(payout_object(tx)))

    async def reverse(self, request: Request) -> Response:
        """Always refused, as if the recipient had spent the money."""
        if refusal := self._wave.check_access(request):
            return refusal
        if self._ctx.find(self._wave.name, "credit", request.path_params["id"]) is None:
            return error(404, "payout-not-found").response()
        return error(409, "payout-reversal-recipient-insufficient-funds").response()
