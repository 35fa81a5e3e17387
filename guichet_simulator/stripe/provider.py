"""Stripe Checkout: hosted sessions and their refunds, signed events, idempotent POSTs (docs/providers/stripe.md)."""

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import DAY, HOUR, MINUTE, SECOND, Instant
from guichet.domain import money
from guichet_simulator.http_helpers import (
    Refused,
    form_fields,
    json_bytes,
    json_response,
    new_uuid,
    smallest_unit,
)
from guichet_simulator.models import EXPIRED, PENDING, SUCCEEDED, CallbackRequest, QueuedCallback, Transaction
from guichet_simulator.scenarios import BY_NAME
from guichet_simulator.stripe.api import StripeApi
from guichet_simulator.stripe.payloads import (
    event_payload,
    hundredths,
    invalid_request,
    missing,
    refund_object,
    session_object,
)
from guichet_simulator.transactions import NewTransaction

_MAX_REFERENCE: Final = 200
_MAX_DIGITS: Final = 8
_REASONS: Final = ("", "duplicate", "fraudulent", "requested_by_customer")
_PRICE: Final = "line_items[0][price_data]"


class Stripe(StripeApi):
    def routes(self) -> list[BaseRoute]:
        sessions = "/v1/checkout/sessions"
        return [
            self.route(sessions, self.create_session, "POST"),
            self.route(f"{sessions}/{{id}}", self.read),
            self.route(f"{sessions}/{{id}}/expire", self.expire, "POST"),
            self.route("/v1/refunds", self.refund, "POST"),
            self.route("/v1/refunds", self.list_refunds),
            self.route("/v1/refunds/{id}", self.read_refund),
            self.route("/v1/disputes", self.list_disputes),
            self.route("/v1/payment_intents/{id}", self.payment_intent),
            self.route("/v1/balance", self.balance),
            self.route("/v1/balance_transactions", self.balance_transactions),
            self.route("/v1/charges/{id}", self.charge),
            self.route("/v1/account", self.account),
            self.route("/v1/webhook_endpoints", self.webhook_endpoints),
            Route("/c/pay/{id}", self.hosted_page),
        ]

    async def create_session(self, request: Request) -> Response:
        form = await form_fields(request)
        key = self.idempotency_key(request, "sessions", form)
        if first := key.first_response():
            return first
        if param := _invalid_parameter(form, self.ctx.clock.now()):
            raise Refused(invalid_request(f"Invalid value: {param}", param=param))
        new = self._new_session(form, live=self.is_live(request))
        return await self.take(new, lambda tx: key.respond(session_object(tx)))

    def _new_session(self, form: Mapping[str, str], *, live: bool) -> NewTransaction:
        now, digits = self.ctx.clock.now(), form[f"{_PRICE}[unit_amount]"]
        currency = form[f"{_PRICE}[currency]"].upper()
        ref = f"cs_{'live' if live else 'test'}_{new_uuid().replace('-', '')}"
        expires = int(form["expires_at"]) if "expires_at" in form else (now + DAY) // SECOND
        metadata = {name[9:-1]: value for name, value in form.items() if name.startswith("metadata[")}
        of_intent = "payment_intent_data[metadata]["
        intent_metadata = {name[len(of_intent) : -1]: text for name, text in form.items() if name.startswith(of_intent)}
        return NewTransaction(
            "debit",
            self.choose_scenario("debit", digits),
            operator="card",
            ref=ref,
            client_ref=form.get("client_reference_id"),
            amount=hundredths(int(digits), currency),
            currency=currency,
            lifetime=expires - now / SECOND,
            detail={
                "digits": digits,
                "live": live,
                "expires_at": expires,
                "metadata": metadata,
                "intent_metadata": intent_metadata,
                "payment_intent": f"pi_{new_uuid().replace('-', '')[:24]}",
                "page_url": f"{self.address}/c/pay/{ref}",
                "success_url": form["success_url"].replace("{CHECKOUT_SESSION_ID}", ref),
                "cancel_url": form.get("cancel_url"),
            },
        )

    async def read(self, request: Request) -> Response:
        session = self.find_own(request, "debit", "checkout.session")
        return await self.respond_to_status(session, session_object(session))

    async def expire(self, request: Request) -> Response:
        session = self.find_own(request, "debit", "checkout.session")
        if session.state != PENDING:
            raise Refused(invalid_request("Only open sessions can be expired."))
        self.ctx.decide(session, EXPIRED, "expired")
        return json_response(session_object(self.ctx.store.get(session.id)))

    async def refund(self, request: Request) -> Response:
        form = await form_fields(request)
        key = self.idempotency_key(request, "refunds", form)
        if first := key.first_response():
            return first
        debit, amount = self._refundable(request, form)
        scenario, kept = self.choose_scenario("credit", debit.detail["digits"]), self._keeps_refunds()
        new = NewTransaction(
            "credit",
            BY_NAME["never_final"] if kept else scenario,
            operator="card",
            ref=f"re_{new_uuid().replace('-', '')[:24]}",
            client_ref=form.get("metadata[reference]") or debit.client_ref,
            parent=debit.ref,
            amount=amount,
            currency=debit.currency,
            detail={
                "payment_intent": debit.detail["payment_intent"],
                "live": debit.detail["live"],
                "ours": "metadata[reference]" in form,
                "kept": kept,
            },
        )

        def answer(tx: Transaction) -> Response:
            self.ctx.queue_callback(tx, "created")
            return key.respond(refund_object(tx))

        return await self.take(new, answer)

    def _refundable(self, request: Request, form: Mapping[str, str]) -> tuple[Transaction, int]:
        """The debit to refund and how much of it, in hundredths. Raises Refused."""
        intent = form.get("payment_intent", "")
        debit = self.find_by_intent(request, intent)
        if debit.state != SUCCEEDED:
            raise Refused(missing("payment_intent", intent))
        left = debit.amount - self.ctx.store.refunded_amount(debit)
        if left <= 0:
            raise Refused(invalid_request("Already refunded.", code="charge_already_refunded"))
        text = form.get("amount", str(smallest_unit(left, debit.currency)))
        amount = hundredths(int(text), debit.currency) if text.isdigit() else 0
        if not 0 < amount <= left or form.get("reason", "") not in _REASONS:
            raise Refused(invalid_request("Invalid refund.", param="amount"))
        return debit, amount

    def _keeps_refunds(self) -> bool:
        return self.dashboard.float_empty and not self.dashboard.float_ambiguous

    async def read_refund(self, request: Request) -> Response:
        """One that was kept is made as soon as the balance is filled."""
        tx = self.find_own(request, "credit", "refund")
        if tx.detail.get("kept") and not self._keeps_refunds():
            self.ctx.decide(tx, SUCCEEDED)
            tx = self.ctx.store.get(tx.id)
        return await self.respond_to_status(tx, refund_object(tx))

    async def list_refunds(self, request: Request) -> Response:
        """Those of one payment intent, newest first."""
        debit = self.find_by_intent(request, request.query_params.get("payment_intent", ""))
        rows = [refund_object(tx) for tx in self.select("kind = 'credit' AND parent = ?", debit.ref)]
        return json_response({"object": "list", "url": "/v1/refunds", "has_more": False, "data": rows})

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        event = event_payload(tx, queued, self.ctx.clock.now() // SECOND)
        if event is None:
            return None
        body = json_bytes(event)
        return CallbackRequest(url, body, {"Stripe-Signature": self.sign(body, queued, b".")})


def _invalid_parameter(form: Mapping[str, str], now: Instant) -> str | None:
    amount, currency = form.get(f"{_PRICE}[unit_amount]", ""), form.get(f"{_PRICE}[currency]", "")
    expires = form.get("expires_at", str((now + HOUR) // SECOND))
    earliest, latest = (now + 30 * MINUTE) // SECOND - 60, (now + DAY) // SECOND + 60
    valid = {
        "mode": form.get("mode") == "payment",
        "line_items[0][quantity]": form.get("line_items[0][quantity]") == "1",
        f"{_PRICE}[currency]": currency == currency.lower() and currency.upper() in money.DECIMALS,
        f"{_PRICE}[unit_amount]": amount.isdigit() and len(amount) <= _MAX_DIGITS and int(amount) > 0,
        f"{_PRICE}[product_data][name]": bool(form.get(f"{_PRICE}[product_data][name]")),
        "success_url": form.get("success_url", "").startswith("http"),
        "client_reference_id": len(form.get("client_reference_id", "")) <= _MAX_REFERENCE,
        "expires_at": expires.isdigit() and earliest <= int(expires) <= latest,
    }
    return next((name for name, is_valid in valid.items() if not is_valid), None)
