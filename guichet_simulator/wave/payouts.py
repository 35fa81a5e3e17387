"""Wave's payouts: money to a number, once per Idempotency-Key, alone or in a batch that is paid afterwards.

Source: docs/providers/wave.md, "Refunds", "Other calls".
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import Refused, hundredths, json_object, json_response, new_uuid
from guichet_simulator.idempotency import IdempotencyKey
from guichet_simulator.models import PENDING, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.transactions import NewTransaction
from guichet_simulator.wave.merchants import Wallet, WaveMerchants, find_own, search, wallet_of
from guichet_simulator.wave.payloads import error, payout_object

_MAX_PAYMENT_REASON: Final = 40
#: The name of every simulated customer.
_NAME: Final = "Awa Diop"


class WavePayouts:
    def __init__(self, api: SimulatedProvider, merchants: WaveMerchants) -> None:
        self._api = api
        self._merchants = merchants

    async def create(self, request: Request) -> Response:
        api = self._api
        wallet, body = wallet_of(request), await json_object(request)
        if not request.headers.get("idempotency-key"):
            raise Refused(api.error(ResponseKind.REFUSED))
        _check_payout(body, wallet)
        self._merchants.refuse_unknown(request, body)
        name = f"{wallet.name}:{request.headers['idempotency-key']}"
        key = IdempotencyKey(api, name, "payout", body, error(409, "idempotency-mismatch"))
        if first := key.first_response():
            return first
        new = _new_payout(api, body, wallet)
        refused = ResponseKind.REFUSED if new.scenario.response is ResponseKind.REFUSED else None
        if refusal := api.float_refusal("payout") or refused:
            return api.error(refusal, "payout")
        return await api.take(new, lambda tx: key.respond(payout_object(tx)))

    async def read(self, request: Request) -> Response:
        payout = self._find(request)
        return await self._api.respond_to_status(payout, payout_object(payout))

    async def search(self, request: Request) -> Response:
        return await search(self._api, request, "credit", "payout", payout_object)

    def _find(self, request: Request) -> Transaction:
        return find_own(self._api, request, "credit", "payout", "payout-not-found")

    async def verify_recipient(self, request: Request) -> Response:
        body = await json_object(request)
        if not _mobile(body).isdigit():
            return self._api.error(ResponseKind.REFUSED)
        name = body.get("name")
        name_match = ("MATCH" if name == _NAME else "NO_MATCH") if name else "NAME_NOT_KNOWN"
        return json_response({"within_limits": True, "name_match": name_match})


class WavePayoutBatches:
    def __init__(self, api: SimulatedProvider, merchants: WaveMerchants) -> None:
        self._api = api
        self._merchants = merchants

    async def create(self, request: Request) -> Response:
        """All payouts or, where one of them is invalid, none. The same Idempotency-Key gives the same batch."""
        api, wallet = self._api, wallet_of(request)
        payouts = (await json_object(request)).get("payouts")
        key = request.headers.get("idempotency-key")
        if not key or not isinstance(payouts, list) or not all(isinstance(body, dict) for body in payouts):
            return api.error(ResponseKind.REFUSED)
        for body in payouts:
            _check_payout(body, wallet)
        for body in payouts:
            self._merchants.refuse_unknown(request, body)
        name = f"wave:batch:{wallet.name}:{key}"
        batch_id = api.ctx.store.setting(name)
        if batch_id is None:
            batch_id = "pb-" + new_uuid().replace("-", "")[:13]
            api.ctx.store.set_setting(name, batch_id)
            for body in payouts:
                api.create(_new_payout(api, body, wallet, batch_id))
        return json_response({"id": batch_id})

    async def read(self, request: Request) -> Response:
        batch_id = request.path_params["id"]
        where = "resource = 'payout' AND operator = ? AND json_extract(detail, '$.batch_id') = ?"
        payouts = self._api.select(where, wallet_of(request).name, batch_id)
        if not payouts:
            raise Refused(error(404, "payout-batch-not-found"))
        status = "processing" if any(tx.state == PENDING for tx in payouts) else "complete"
        return json_response({"id": batch_id, "status": status, "payouts": [payout_object(tx) for tx in payouts]})


def _check_payout(body: Mapping[str, Any], wallet: Wallet) -> None:
    """Raises Refused when a field of a payout out of this wallet is wrong."""
    if body.get("currency") != wallet.currency:
        raise Refused(error(400, "currency-mismatch"))
    mobile, reason = _mobile(body), str(body.get("payment_reason", ""))
    amount = hundredths(body.get("receive_amount"), wallet.currency)
    if amount is None or not mobile.isdigit() or len(reason) > _MAX_PAYMENT_REASON:
        raise Refused(error(400, "request-validation-error"))
    if not wallet.serves(mobile):
        raise Refused(error(400, "country-mismatch"))


def _new_payout(
    api: SimulatedProvider, body: Mapping[str, Any], wallet: Wallet, batch_id: str | None = None
) -> NewTransaction:
    amount = hundredths(body["receive_amount"], wallet.currency)
    assert amount is not None
    return NewTransaction(
        "credit",
        api.choose_scenario("credit", _mobile(body)),
        operator=wallet.name,
        ref="pt-" + new_uuid().replace("-", "")[:16],
        resource="payout",
        client_ref=body.get("client_reference"),
        phone=_mobile(body),
        amount=amount,
        currency=wallet.currency,
        detail={"batch_id": batch_id, "aggregated_merchant_id": body.get("aggregated_merchant_id")},
    )


def _mobile(body: Mapping[str, Any]) -> str:
    return str(body.get("mobile", "")).removeprefix("+")
