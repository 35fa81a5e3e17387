"""Stripe Checkout: hosted sessions, refunds, signed events, idempotent POSTs (docs/providers/stripe.md)."""

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import DAY, HOUR, MINUTE, SECOND, Instant
from guichet.domain import money
from guichet_simulator import replays
from guichet_simulator.base import Family, acceptable, credential, json_answer, json_bytes, new_uuid
from guichet_simulator.context import Notification
from guichet_simulator.scenarios import Answer, Scenario
from guichet_simulator.signatures import timestamped
from guichet_simulator.store import EXPIRED, PENDING, SUCCEEDED, QueuedCallback, Transaction
from guichet_simulator.stripe_payloads import event_of, fault, refund_object, session_object

_LONGEST_KEY: Final = 255
_LONGEST_REFERENCE: Final = 200
_MOST_DIGITS: Final = 8
_PRICE: Final = "line_items[0][price_data]"
_REASONS: Final = ("", "duplicate", "fraudulent", "requested_by_customer")


class Stripe(Family):
    name = "stripe"
    title = "Stripe"
    retries = (5, 60, 300, 3600)
    #: A declined card leaves the session open; nobody here waits a whole day until it expires.
    second_chance = 5.0
    ends_as = EXPIRED
    faults = {
        Answer.UNAUTHORIZED: fault(401, "invalid_request_error", None, "Invalid API Key provided: sk_****"),
        Answer.RATE_LIMITED: fault(429, "rate_limit_error", "rate_limit", "Too many requests.", {"Retry-After": "2"}),
        Answer.UNAVAILABLE: fault(503, "api_error", None, "Stripe is temporarily unavailable."),
        Answer.NOT_CONFIGURED: fault(403, "invalid_request_error", None, "This account cannot make live charges."),
        Answer.REFUSED: fault(400, "invalid_request_error", "parameter_invalid_integer", "Invalid integer."),
        ("credit", Answer.REFUSED): fault(400, "invalid_request_error", "charge_disputed", "Charge is disputed."),
        Answer.BROKEN: fault(500, "api_error", None, "An unknown error occurred."),
    }

    def routes(self) -> list[BaseRoute]:
        sessions = "/v1/checkout/sessions"
        return [
            Route(sessions, self.create, methods=["POST"]),
            Route(f"{sessions}/{{id}}", self.read),
            Route(f"{sessions}/{{id}}/expire", self.expire, methods=["POST"]),
            Route("/v1/refunds", self.refund, methods=["POST"]),
            Route("/v1/refunds/{id}", self.read_refund),
            Route("/v1/balance", self.balance),
            Route("/c/pay/{id}", self.hosted_page),
        ]

    def _refused_access(self, request: Request) -> Response | None:
        """The key is a bearer, or the user name of HTTP Basic."""
        known = credential(request) or credential(request, "Basic")
        return None if acceptable(known) else self.fault(Answer.UNAUTHORIZED)

    def _earlier(self, key: str | None, mark: str) -> Response | None:
        """What this idempotency key was answered the first time, even if that answer was lost on its way."""
        if key is None:
            return None
        if not 0 < len(key) <= _LONGEST_KEY:
            return fault(400, "invalid_request_error", None, "Invalid Idempotency-Key.").answer()
        try:
            return replays.replayed(self.desk.store, self.name, key, mark)
        except replays.KeyReused:
            said = "Keys for idempotent requests can only be used with the same parameters."
            return fault(400, "idempotency_error", None, said).answer()

    def _remember(self, key: str | None, mark: str, answer: Response) -> Response:
        return replays.remember(self.desk.store, self.name, key, mark, answer) if key else answer

    # Checkout

    async def create(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        form, key = await _form(request), request.headers.get("idempotency-key")
        mark = replays.fingerprint("sessions", form)
        if earlier := self._earlier(key, mark):
            return earlier
        if param := _fault_in(form, self.desk.clock.now()):
            return fault(400, "invalid_request_error", None, f"Invalid value: {param}", param=param).answer()
        scenario = self.desk.choose(self.name, "debit", form[f"{_PRICE}[unit_amount]"])
        live = "live" in str(credential(request))

        def take() -> Response:
            return self._remember(key, mark, json_answer(session_object(self._take(form, scenario, live=live))))

        return await self.respond("debit", scenario, take)

    def _take(self, form: Mapping[str, str], scenario: Scenario, *, live: bool) -> Transaction:
        now = self.desk.clock.now()
        currency = form[f"{_PRICE}[currency]"].upper()
        ref = f"cs_{'live' if live else 'test'}_{new_uuid().replace('-', '')}"
        expires = int(form["expires_at"]) if "expires_at" in form else (now + DAY) // SECOND
        metadata = {name[9:-1]: value for name, value in form.items() if name.startswith("metadata[")}
        return self.desk.take(
            self.name,
            "debit",
            scenario,
            operator="card",
            ref=ref,
            client_ref=form.get("client_reference_id"),
            amount=_hundredths(int(form[f"{_PRICE}[unit_amount]"]), currency),
            currency=currency,
            lifetime=expires - now / SECOND,
            detail={
                "digits": form[f"{_PRICE}[unit_amount]"],
                "live": live,
                "expires_at": expires,
                "metadata": metadata,
                "payment_intent": f"pi_{new_uuid().replace('-', '')[:24]}",
                "page_url": f"{self.address}/c/pay/{ref}",
                "success_url": form["success_url"].replace("{CHECKOUT_SESSION_ID}", ref),
                "cancel_url": form.get("cancel_url"),
            },
        )

    def _session(self, request: Request) -> Transaction | Response:
        if refusal := self._refused_access(request):
            return refusal
        ref = request.path_params["id"]
        return self.desk.find(self.name, "debit", ref) or _missing("checkout.session", ref)

    async def read(self, request: Request) -> Response:
        found = self._session(request)
        if isinstance(found, Response):
            return found
        return await self.question(found, lambda: json_answer(session_object(found)))

    async def expire(self, request: Request) -> Response:
        found = self._session(request)
        if isinstance(found, Response):
            return found
        if found.state != PENDING:
            return fault(400, "invalid_request_error", None, "Only open sessions can be expired.").answer()
        self.desk.decide(found, EXPIRED, "expired")
        return json_answer(session_object(self.desk.store.get(found.id)))

    # Refunds

    async def refund(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        form, key = await _form(request), request.headers.get("idempotency-key")
        mark = replays.fingerprint("refunds", form)
        if earlier := self._earlier(key, mark):
            return earlier
        found = self._refundable(form)
        if isinstance(found, Response):
            return found
        debit, amount = found
        scenario = self.desk.choose(self.name, "credit", debit.detail["digits"])

        def take() -> Response:
            tx = self.desk.take(
                self.name,
                "credit",
                scenario,
                operator="card",
                ref=f"re_{new_uuid().replace('-', '')[:24]}",
                client_ref=form.get("metadata[reference]") or debit.client_ref,
                parent=debit.ref,
                amount=amount,
                currency=debit.currency,
                lifetime=self.lifetime,
                detail={"payment_intent": debit.detail["payment_intent"], "live": debit.detail["live"]},
            )
            self.desk.queue(tx, "created")
            return self._remember(key, mark, json_answer(refund_object(tx)))

        return await self.respond("credit", scenario, take)

    def _refundable(self, form: Mapping[str, str]) -> tuple[Transaction, int] | Response:
        """The debit and how much of it, in hundredths; or why not."""
        intent = form.get("payment_intent", "")
        self.desk.let_time_pass()
        where = "family = 'stripe' AND kind = 'debit' AND json_extract(detail, '$.payment_intent') = ?"
        debits = self.desk.store.select(where, intent)
        if not debits or debits[0].state != SUCCEEDED:
            return _missing("payment_intent", intent)
        debit = debits[0]
        left = debit.amount - self.desk.store.returned(debit)
        if left <= 0:
            return fault(400, "invalid_request_error", "charge_already_refunded", "Already refunded.").answer()
        text = form.get("amount", str(_smallest(left, debit.currency)))
        amount = _hundredths(int(text), debit.currency) if text.isdigit() else 0
        if not 0 < amount <= left or form.get("reason", "") not in _REASONS:
            return fault(400, "invalid_request_error", None, "Invalid refund.", param="amount").answer()
        return debit, amount

    async def read_refund(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        ref = request.path_params["id"]
        tx = self.desk.find(self.name, "credit", ref)
        if tx is None:
            return _missing("refund", ref)
        return await self.question(tx, lambda: json_answer(refund_object(tx)))

    async def balance(self, request: Request) -> Response:
        if refusal := self._refused_access(request):
            return refusal
        totals: dict[str, int] = {}
        for tx in self.desk.store.select("family = 'stripe' AND state = 'succeeded'"):
            totals[tx.currency] = totals.get(tx.currency, 0) + (tx.amount if tx.kind == "debit" else -tx.amount)
        available = [{"amount": _smallest(total, name), "currency": name.lower()} for name, total in totals.items()]
        return json_answer({"object": "balance", "available": available, "pending": [], "livemode": False})

    def notification(self, tx: Transaction, queued: QueuedCallback) -> Notification | None:
        dashboard = self.desk.dashboard(self.name)
        event = event_of(tx, queued, self.desk.clock.now() // SECOND)
        if dashboard.callback_url is None or event is None:
            return None
        body = json_bytes(event)
        signature = timestamped(dashboard.secret or "", b".", body, self.desk.clock.now(), queued)
        return Notification(dashboard.callback_url, body, {"Stripe-Signature": signature})


def _missing(what: str, ref: str) -> Response:
    return fault(404, "invalid_request_error", "resource_missing", f"No such {what}: '{ref}'", param="id").answer()


async def _form(request: Request) -> dict[str, str]:
    return {name: str(value) for name, value in (await request.form()).items()}


def _fault_in(form: Mapping[str, str], now: Instant) -> str | None:
    """The first parameter that is wrong."""
    amount, currency = form.get(f"{_PRICE}[unit_amount]", ""), form.get(f"{_PRICE}[currency]", "")
    expires = form.get("expires_at", str((now + HOUR) // SECOND))
    earliest, latest = (now + 30 * MINUTE) // SECOND - 60, (now + DAY) // SECOND + 60
    checks = {
        "mode": form.get("mode") == "payment",
        "line_items[0][quantity]": form.get("line_items[0][quantity]") == "1",
        f"{_PRICE}[currency]": currency == currency.lower() and currency.upper() in money.DECIMALS,
        f"{_PRICE}[unit_amount]": amount.isdigit() and len(amount) <= _MOST_DIGITS and int(amount) > 0,
        f"{_PRICE}[product_data][name]": bool(form.get(f"{_PRICE}[product_data][name]")),
        "success_url": form.get("success_url", "").startswith("http"),
        "client_reference_id": len(form.get("client_reference_id", "")) <= _LONGEST_REFERENCE,
        "expires_at": expires.isdigit() and earliest <= int(expires) <= latest,
    }
    return next((param for param, right in checks.items() if not right), None)


def _hundredths(smallest: int, currency: str) -> int:
    return smallest if money.DECIMALS[currency] else smallest * 100


def _smallest(hundredths: int, currency: str) -> int:
    return hundredths if money.DECIMALS[currency] else hundredths // 100
