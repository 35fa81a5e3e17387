"""Stripe's refunds of a payment intent (docs/providers/stripe.md, "Refunds")."""

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator import idempotency
from guichet_simulator.http_helpers import ErrorResponse, form_fields, json_response, new_uuid, smallest_unit
from guichet_simulator.models import SUCCEEDED, Transaction
from guichet_simulator.stripe.api import StripeApi
from guichet_simulator.stripe.payloads import hundredths, invalid_request, missing, refund_object

_REASONS: Final = ("", "duplicate", "fraudulent", "requested_by_customer")


class StripeRefunds:
    def __init__(self, api: StripeApi) -> None:
        self._api = api
        self._ctx = api.ctx

    async def create(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        form, key = await form_fields(request), request.headers.get("idempotency-key")
        fingerprint = idempotency.fingerprint("refunds", form)
        if stored := self._api.stored_response(key, fingerprint):
            return stored
        found = self._refundable(form, live=self._api.is_live(request))
        if isinstance(found, ErrorResponse):
            return found.response()
        debit, amount = found
        scenario = self._ctx.choose_scenario(self._api.name, "credit", debit.detail["digits"])

        def create() -> Response:
            tx = self._ctx.create_transaction(
                self._api.name,
                "credit",
                scenario,
                operator="card",
                ref=f"re_{new_uuid().replace('-', '')[:24]}",
                client_ref=form.get("metadata[reference]") or debit.client_ref,
                parent=debit.ref,
                amount=amount,
                currency=debit.currency,
                lifetime=self._api.lifetime,
                detail={"payment_intent": debit.detail["payment_intent"], "live": debit.detail["live"]},
            )
            self._ctx.queue_callback(tx, "created")
            return self._api.store_response(key, fingerprint, refund_object(tx))

        return await self._api.respond("credit", scenario, create)

    def _refundable(self, form: Mapping[str, str], *, live: bool) -> tuple[Transaction, int] | ErrorResponse:
        """The debit to refund and how much of it, in hundredths."""
        intent = form.get("payment_intent", "")
        self._ctx.apply_due_decisions()
        where = "provider = 'stripe' AND kind = 'debit' AND json_extract(detail, '$.payment_intent') = ?"
        debits = self._ctx.store.select(where, intent)
        if not debits or debits[0].state != SUCCEEDED or debits[0].detail["live"] is not live:
            return missing("payment_intent", intent)
        debit = debits[0]
        left = debit.amount - self._ctx.store.refunded_amount(debit)
        if left <= 0:
            return invalid_request("Already refunded.", code="charge_already_refunded")
        text = form.get("amount", str(smallest_unit(left, debit.currency)))
        amount = hundredths(int(text), debit.currency) if text.isdigit() else 0
        if not 0 < amount <= left or form.get("reason", "") not in _REASONS:
            return invalid_request("Invalid refund.", param="amount")
        return debit, amount

    async def read(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        ref = request.path_params["id"]
        tx = self._api.find_own(request, "credit", ref)
        if tx is None:
            return missing("refund", ref).response()
        return await self._api.respond_to_status(tx, lambda: json_response(refund_object(tx)))
