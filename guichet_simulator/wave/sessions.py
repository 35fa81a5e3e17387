"""Wave's checkout sessions and their refund (docs/providers/wave.md, "Initiating a payment", "Refunds")."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.http_helpers import hundredths, json_object, json_response, new_uuid
from guichet_simulator.models import EXPIRED, FAILED, PENDING, SUCCEEDED, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.wave.api import WaveApi
from guichet_simulator.wave.merchants import WaveMerchants
from guichet_simulator.wave.payloads import error, session_object
from guichet_simulator.wave.wallets import Wallet, wallet_of

_MAX_REFERENCE: Final = 255


class WaveSessions:
    def __init__(self, api: WaveApi, merchants: WaveMerchants) -> None:
        self._api = api
        self._merchants = merchants
        self._ctx = api.ctx

    async def create(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        body = await json_object(request)
        if body is None:
            return error(400, "request-not-json").response()
        wallet = wallet_of(request)
        if invalid := _invalid_fields(body, wallet):
            details = [{"loc": [name], "msg": "invalid value"} for name in invalid]
            return self._api.error(ResponseKind.REFUSED, echo={"details": details})
        if refusal := self._merchants.refuse_unknown(request, body):
            return refusal
        mobile = str(body.get("restrict_payer_mobile") or "").removeprefix("+") or None
        scenario = self._ctx.choose_scenario(self._api.name, "debit", mobile or body["amount"])
        amount = hundredths(body["amount"], wallet.currency)
        assert amount is not None

        def create() -> Response:
            ref = "cos-" + new_uuid().replace("-", "")[:16]
            tx = self._ctx.create_transaction(
                self._api.name,
                "debit",
                scenario,
                operator=wallet.name,
                ref=ref,
                client_ref=body.get("client_reference"),
                phone=mobile,
                amount=amount,
                currency=wallet.currency,
                lifetime=self._api.lifetime,
                detail={
                    "digits": mobile or body["amount"],
                    "page_url": f"{self._api.address}/c/{ref}",
                    "success_url": body["success_url"],
                    "cancel_url": body["error_url"],
                    "aggregated_merchant_id": body.get("aggregated_merchant_id"),
                    "transaction_id": "T_" + new_uuid().replace("-", "")[:12].upper(),
                },
            )
            return json_response(session_object(tx))

        return await self._api.respond("debit", scenario, create)

    async def read(self, request: Request) -> Response:
        found = self._find_session(request)
        if isinstance(found, Response):
            return found
        return await self._api.respond_to_status(found, lambda: json_response(session_object(found)))

    def _find_session(self, request: Request) -> Transaction | Response:
        if refusal := self._api.check_access(request):
            return refusal
        tx = self._api.find_own(request, "debit", request.path_params["id"])
        return tx or error(404, "checkout-session-not-found").response()

    async def by_transaction(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        found = self.paid_by(request, request.query_params.get("transaction_id"))
        return json_response(session_object(found)) if found else error(404, "checkout-session-not-found").response()

    def paid_by(self, request: Request, transaction_id: str | None) -> Transaction | None:
        """The session that Wave's transaction paid."""
        self._ctx.apply_due_decisions()
        found = self._ctx.store.select(
            "provider = 'wave' AND kind = 'debit' AND operator = ? AND state = 'succeeded'"
            " AND json_extract(detail, '$.transaction_id') = ?",
            wallet_of(request).name, transaction_id,
        )  # fmt: skip
        return found[0] if found else None

    async def search(self, request: Request) -> Response:
        return await self._api.search(request, "debit", "", session_object)

    async def expire(self, request: Request) -> Response:
        found = self._find_session(request)
        if isinstance(found, Response):
            return found
        if found.state != PENDING:
            return error(409, "checkout-session-not-open").response()
        self._ctx.decide(found, EXPIRED, "expired")
        return Response(status_code=200)

    async def refund(self, request: Request) -> Response:
        found = self._find_session(request)
        return found if isinstance(found, Response) else await self.refund_session(found)

    async def refund_session(self, found: Transaction) -> Response:
        """Refunds the whole session at once. It may be repeated: only the first one moves money."""
        if found.state != SUCCEEDED:
            return error(409, "checkout-refund-failed").response()
        if self._ctx.store.refunded_amount(found):
            return Response(status_code=200)
        scenario = self._ctx.choose_scenario(self._api.name, "credit", found.phone or found.detail["digits"])

        def create() -> Response:
            credit = self._ctx.create_transaction(
                self._api.name,
                "credit",
                scenario,
                operator=found.operator,
                ref="rf-" + new_uuid(),
                resource="refund",
                client_ref=found.client_ref,
                phone=found.phone,
                parent=found.ref,
                amount=found.amount,
                currency=found.currency,
                lifetime=self._api.lifetime,
            )
            refused = scenario.final_state in (FAILED, EXPIRED)
            self._ctx.decide(credit, FAILED if refused else SUCCEEDED, scenario.reason)
            return self._api.error(ResponseKind.REFUSED, "credit") if refused else Response(status_code=200)

        return await self._api.respond("credit", scenario, create)


def _invalid_fields(body: Mapping[str, Any], wallet: Wallet) -> list[str]:
    mobile = str(body.get("restrict_payer_mobile") or "")
    valid = {
        "amount": isinstance(body.get("amount"), str) and hundredths(body["amount"], wallet.currency) is not None,
        "currency": body.get("currency") == wallet.currency,
        "success_url": str(body.get("success_url", "")).startswith("http"),
        "error_url": str(body.get("error_url", "")).startswith("http"),
        "client_reference": len(str(body.get("client_reference") or "")) <= _MAX_REFERENCE,
        "restrict_payer_mobile": not mobile
        or (mobile[0] == "+" and mobile[1:].isdigit() and wallet.serves(mobile[1:])),
    }
    return [name for name, is_valid in valid.items() if not is_valid]
