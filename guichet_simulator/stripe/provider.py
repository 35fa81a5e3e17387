"""Stripe Checkout: hosted sessions, signed events, idempotent POSTs (docs/providers/stripe.md)."""

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import DAY, HOUR, MINUTE, SECOND, Instant
from guichet.domain import money
from guichet_simulator import idempotency
from guichet_simulator.context import SimulatorContext
from guichet_simulator.http_helpers import (
    form_fields,
    json_bytes,
    json_response,
    new_uuid,
    smallest_unit,
)
from guichet_simulator.models import EXPIRED, PENDING, CallbackRequest, QueuedCallback, Transaction
from guichet_simulator.scenarios import Scenario
from guichet_simulator.signatures import hmac_signature_header
from guichet_simulator.stripe import account as stripe_account
from guichet_simulator.stripe import intents as stripe_intents
from guichet_simulator.stripe.api import StripeApi
from guichet_simulator.stripe.disputes import StripeDisputes
from guichet_simulator.stripe.payloads import event_payload, hundredths, invalid_request, missing, session_object
from guichet_simulator.stripe.refunds import StripeRefunds

_MAX_REFERENCE: Final = 200
_MAX_DIGITS: Final = 8
_PRICE: Final = "line_items[0][price_data]"


class Stripe(StripeApi):
    def __init__(self, ctx: SimulatorContext) -> None:
        super().__init__(ctx)
        self._refunds = StripeRefunds(self)
        self._disputes = StripeDisputes(self)

    def routes(self) -> list[BaseRoute]:
        sessions = "/v1/checkout/sessions"
        return [
            Route(sessions, self.create, methods=["POST"]),
            Route(f"{sessions}/{{id}}", self.read),
            Route(f"{sessions}/{{id}}/expire", self.expire, methods=["POST"]),
            Route("/v1/refunds", self._refunds.create, methods=["POST"]),
            Route("/v1/refunds/{id}", self._refunds.read),
            Route("/v1/disputes", self._disputes.list_disputes),
            *stripe_intents.routes(self),
            Route("/v1/balance", self.balance),
            *stripe_account.routes(self),
            Route("/c/pay/{id}", self.hosted_page),
        ]

    async def create(self, request: Request) -> Response:
        if refusal := self.check_access(request):
            return refusal
        form, key = await form_fields(request), request.headers.get("idempotency-key")
        fingerprint = idempotency.fingerprint("sessions", form)
        if stored := self.stored_response(key, fingerprint):
            return stored
        if param := _invalid_parameter(form, self.ctx.clock.now()):
            return invalid_request(f"Invalid value: {param}", param=param).response()
        scenario = self.ctx.choose_scenario(self.name, "debit", form[f"{_PRICE}[unit_amount]"])
        live = self.is_live(request)

        def create() -> Response:
            tx = self._create_session(form, scenario, live=live)
            return self.store_response(key, fingerprint, session_object(tx))

        return await self.respond("debit", scenario, create)

    def _create_session(self, form: Mapping[str, str], scenario: Scenario, *, live: bool) -> Transaction:
        now = self.ctx.clock.now()
        currency = form[f"{_PRICE}[currency]"].upper()
        ref = f"cs_{'live' if live else 'test'}_{new_uuid().replace('-', '')}"
        expires = int(form["expires_at"]) if "expires_at" in form else (now + DAY) // SECOND
        metadata = {name[9:-1]: value for name, value in form.items() if name.startswith("metadata[")}
        of_intent = "payment_intent_data[metadata]["
        intent_metadata = {name[len(of_intent) : -1]: text for name, text in form.items() if name.startswith(of_intent)}
        return self.ctx.create_transaction(
            self.name,
            "debit",
            scenario,
            operator="card",
            ref=ref,
            client_ref=form.get("client_reference_id"),
            amount=hundredths(int(form[f"{_PRICE}[unit_amount]"]), currency),
            currency=currency,
            lifetime=expires - now / SECOND,
            detail={
                "digits": form[f"{_PRICE}[unit_amount]"],
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

    def _find_session(self, request: Request) -> Transaction | Response:
        if refusal := self.check_access(request):
            return refusal
        ref = request.path_params["id"]
        return self.find_own(request, "debit", ref) or missing("checkout.session", ref).response()

    async def read(self, request: Request) -> Response:
        found = self._find_session(request)
        if isinstance(found, Response):
            return found
        return await self.respond_to_status(found, lambda: json_response(session_object(found)))

    async def expire(self, request: Request) -> Response:
        found = self._find_session(request)
        if isinstance(found, Response):
            return found
        if found.state != PENDING:
            return invalid_request("Only open sessions can be expired.").response()
        self.ctx.decide(found, EXPIRED, "expired")
        return json_response(session_object(self.ctx.store.get(found.id)))

    async def balance(self, request: Request) -> Response:
        if refusal := self.check_access(request):
            return refusal
        totals: dict[str, int] = {}
        live = self.is_live(request)
        where = "provider = 'stripe' AND state = 'succeeded' AND json_extract(detail, '$.live') = ?"
        for tx in self.ctx.store.select(where, live):
            totals[tx.currency] = totals.get(tx.currency, 0) + (tx.amount if tx.kind == "debit" else -tx.amount)
        available = [{"amount": smallest_unit(total, name), "currency": name.lower()} for name, total in totals.items()]
        return json_response({"object": "balance", "available": available, "pending": [], "livemode": live})

    def callback_request(self, tx: Transaction, queued: QueuedCallback) -> CallbackRequest | None:
        dashboard, now = self.ctx.dashboard(self.name), self.ctx.clock.now()
        event = event_payload(tx, queued, now // SECOND)
        if dashboard.callback_url is None or event is None:
            return None
        body = json_bytes(event)
        signature = hmac_signature_header(body, queued, secret=dashboard.secret or "", separator=b".", now=now)
        return CallbackRequest(dashboard.callback_url, body, {"Stripe-Signature": signature})


def _invalid_parameter(form: Mapping[str, str], now: Instant) -> str | None:
    """The name of the first invalid parameter."""
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
