"""Wave's payouts: money to a number, once per Idempotency-Key (docs/providers/wave.md, "Refunds", "Other calls")."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator import idempotency
from guichet_simulator.http_helpers import ErrorResponse, hundredths, json_object, json_response, new_uuid
from guichet_simulator.models import Transaction
from guichet_simulator.scenarios import ResponseKind, Scenario
from guichet_simulator.wave.api import WaveApi
from guichet_simulator.wave.merchants import WaveMerchants
from guichet_simulator.wave.payloads import error, payout_object
from guichet_simulator.wave.wallets import Wallet, wallet_of

_MAX_PAYMENT_REASON: Final = 40
#: The name of every simulated customer.
_NAME: Final = "Awa Diop"


class WavePayouts:
    def __init__(self, api: WaveApi, merchants: WaveMerchants) -> None:
        self._api = api
        self._merchants = merchants
        self._ctx = api.ctx

    async def create(self, request: Request) -> Response:
        api = self._api
        wallet, body = wallet_of(request), await json_object(request) or {}
        if refusal := self._refusal(request, body):
            return refusal
        key = request.headers["idempotency-key"]
        key, fingerprint = f"{wallet.name}:{key}", idempotency.fingerprint("payout", body)
        try:
            stored = idempotency.stored_response(self._ctx.store, api.name, key=key, fingerprint=fingerprint)
        except idempotency.IdempotencyKeyReused:
            return error(409, "idempotency-mismatch").response()
        if stored:
            return stored
        scenario = self._ctx.choose_scenario(api.name, "credit", _mobile(body))
        empty, refused = api.float_is_empty("payout"), scenario.response is ResponseKind.REFUSED
        if empty or refused:
            return api.error(ResponseKind.FLOAT_EMPTY if empty else ResponseKind.REFUSED, "payout")

        def create() -> Response:
            response = json_response(payout_object(create_payout(api, scenario, body, wallet)))
            return idempotency.store_response(self._ctx.store, api.name, response, key=key, fingerprint=fingerprint)

        return await api.respond("credit", scenario, create)

    def _refusal(self, request: Request, body: Mapping[str, Any]) -> Response | None:
        """The response to a request without a key, or with a wrong credential or field."""
        if refusal := self._api.check_access(request):
            return refusal
        if not request.headers.get("idempotency-key"):
            return self._api.error(ResponseKind.REFUSED)
        invalid = payout_error(body, wallet_of(request))
        return invalid.response() if invalid else self._merchants.refuse_unknown(request, body)

    async def read(self, request: Request) -> Response:
        found = self._find(request)
        if isinstance(found, Response):
            return found
        return await self._api.respond_to_status(found, lambda: json_response(payout_object(found)))

    async def search(self, request: Request) -> Response:
        return await self._api.search(request, "credit", "payout", payout_object)

    async def reverse(self, request: Request) -> Response:
        """Always refused, as if the recipient had spent the money."""
        found = self._find(request)
        if isinstance(found, Response):
            return found
        return error(409, "payout-reversal-recipient-insufficient-funds").response()

    def _find(self, request: Request) -> Transaction | Response:
        if refusal := self._api.check_access(request):
            return refusal
        found = self._api.find_own(request, "credit", request.path_params["id"], "payout")
        return found or error(404, "payout-not-found").response()

    async def verify_recipient(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        body = await json_object(request) or {}
        if not _mobile(body).isdigit():
            return self._api.error(ResponseKind.REFUSED)
        name = body.get("name")
        name_match = ("MATCH" if name == _NAME else "NO_MATCH") if name else "NAME_NOT_KNOWN"
        return json_response({"within_limits": True, "name_match": name_match})


def payout_error(body: Mapping[str, Any], wallet: Wallet) -> ErrorResponse | None:
    """What is wrong with the fields of a payout out of this wallet."""
    if body.get("currency") != wallet.currency:
        return error(400, "currency-mismatch")
    mobile, reason = _mobile(body), str(body.get("payment_reason", ""))
    amount = hundredths(body.get("receive_amount"), wallet.currency)
    if amount is None or not mobile.isdigit() or len(reason) > _MAX_PAYMENT_REASON:
        return error(400, "request-validation-error")
    return None if wallet.serves(mobile) else error(400, "country-mismatch")


def create_payout(
    api: WaveApi, scenario: Scenario, body: Mapping[str, Any], wallet: Wallet, batch_id: str | None = None
) -> Transaction:
    """Store a payout whose fields are right."""
    amount = hundredths(body["receive_amount"], wallet.currency)
    assert amount is not None
    return api.ctx.create_transaction(
        api.name,
        "credit",
        scenario,
        operator=wallet.name,
        ref="pt-" + new_uuid().replace("-", "")[:16],
        resource="payout",
        client_ref=body.get("client_reference"),
        phone=_mobile(body),
        amount=amount,
        currency=wallet.currency,
        lifetime=api.lifetime,
        detail={"batch_id": batch_id, "aggregated_merchant_id": body.get("aggregated_merchant_id")},
    )


def _mobile(body: Mapping[str, Any]) -> str:
    return str(body.get("mobile", "")).removeprefix("+")
