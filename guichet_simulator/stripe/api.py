"""What all calls of the simulated Stripe share (the key, errors, idempotent POSTs), and those that only read.

Source: docs/providers/stripe.md.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import (
    Refused,
    acceptable,
    basic_credential,
    credential,
    json_response,
)
from guichet_simulator.idempotency import IdempotencyKey
from guichet_simulator.models import EXPIRED, Kind, Transaction
from guichet_simulator.scenarios import ResponseKind
from guichet_simulator.stripe.payloads import (
    balance_movements,
    charge_object,
    dispute_object,
    error,
    intent_object,
    invalid_request,
    missing,
)

_MAX_KEY: Final = 255
_OTHER_PARAMETERS: Final = error(
    400, "idempotency_error", "Keys for idempotent requests can only be used with the same parameters."
)


class StripeApi(SimulatedProvider):
    name = "stripe"
    signing_key = "whsec_simulator"
    not_shown: ClassVar[Mapping[str, str]] = {
        "duplicate": "a repeat gets the first response again, by Idempotency-Key",
    }
    title = "Stripe"
    has_disputes = True
    retries = (5, 60, 300, 3600)
    #: A declined card leaves the session open. The real one stays open for a day.
    second_chance = 5.0
    ends_as = EXPIRED
    errors = {
        ResponseKind.UNAUTHORIZED: error(401, "invalid_request_error", "Invalid API Key provided: sk_****"),
        ResponseKind.RATE_LIMITED: error(
            429, "rate_limit_error", "Too many requests.", code="rate_limit", headers={"Retry-After": "2"}
        ),
        ResponseKind.UNAVAILABLE: error(503, "api_error", "Stripe is temporarily unavailable."),
        ResponseKind.NOT_CONFIGURED: error(403, "invalid_request_error", "This account cannot make live charges."),
        ResponseKind.REFUSED: invalid_request("Invalid integer.", code="parameter_invalid_integer"),
        ("credit", ResponseKind.REFUSED): invalid_request("Charge is disputed.", code="charge_disputed"),
        ("credit", ResponseKind.AMBIGUOUS): invalid_request("Insufficient balance.", code="balance_insufficient"),
        ResponseKind.SERVER_ERROR: error(500, "api_error", "An unknown error occurred."),
    }

    async def check_access(self, request: Request) -> None:
        """The key is a bearer token, or the user name of HTTP Basic."""
        if not acceptable(_key(request)):
            raise Refused(self.error(ResponseKind.UNAUTHORIZED))

    def float_refusal(self, call: str) -> ResponseKind | None:
        """Refunds are kept until the balance covers them, unless the dashboard wants an error."""
        return super().float_refusal(call) if self.dashboard.float_ambiguous else None

    def is_live(self, request: Request) -> bool:
        """Whether the request's key is one of the live mode, which shares nothing with the test mode."""
        return "_live_" in _key(request)

    def find_own(self, request: Request, kind: Kind, resource: str) -> Transaction:
        """The session or the refund of the key's mode that the path names. Raises Refused."""
        ref = request.path_params["id"]
        tx = self.find(kind, ref)
        if tx is None or tx.detail["live"] is not self.is_live(request):
            raise Refused(missing(resource, ref))
        return tx

    def find_by_intent(self, request: Request, intent: str) -> Transaction:
        """The session of the key's mode that has this payment intent. Raises Refused."""
        sessions = self.select("kind = 'debit' AND json_extract(detail, '$.payment_intent') = ?", intent)
        if not sessions or sessions[0].detail["live"] is not self.is_live(request):
            raise Refused(missing("payment_intent", intent))
        return sessions[0]

    # Idempotent POSTs

    def idempotency_key(self, request: Request, call: str, form: Mapping[str, str]) -> IdempotencyKey:
        """Raises Refused for one that is too long or empty."""
        key = request.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= _MAX_KEY:
            raise Refused(invalid_request("Invalid Idempotency-Key."))
        return IdempotencyKey(self, key, call, form, _OTHER_PARAMETERS)

    # What is only read

    async def account(self, request: Request) -> Response:
        name = f"acct_{self.dashboard.company or 'simulator'}"
        return json_response({"id": name, "country": "FR", "default_currency": "eur", "charges_enabled": True})

    async def webhook_endpoints(self, request: Request) -> Response:
        url = self.dashboard.callback_url
        rows = [{"id": "we_1", "url": url, "enabled_events": ["*"], "status": "enabled"}] if url else []
        return json_response({"object": "list", "data": rows, "has_more": False})

    async def payment_intent(self, request: Request) -> Response:
        """What a session made of the customer's payment."""
        return json_response(intent_object(self.find_by_intent(request, request.path_params["id"])))

    async def list_disputes(self, request: Request) -> Response:
        """Newest first, page by page. The control API opens disputes, and decides them later."""
        query = request.query_params
        where = "kind = 'debit' AND json_extract(detail, '$.dispute.created') >= ?"
        disputed = self.select(where, int(query.get("created[gte]", "0")))
        # Written as `expand[]` by some clients, and as `expand[0]` by Stripe's own library.
        expansions = [value for name, value in query.multi_items() if name.startswith("expand[")]
        own = [tx for tx in disputed if tx.detail["live"] is self.is_live(request)]
        rows = [dispute_object(tx, expanded="data.payment_intent" in expansions) for tx in own]
        return json_response(_page("/v1/disputes", rows, request))

    async def charge(self, request: Request) -> Response:
        intent = "pi_" + request.path_params["id"].removeprefix("ch_")
        return json_response(charge_object(self.find_by_intent(request, intent)))

    async def balance_transactions(self, request: Request) -> Response:
        """Every movement, newest first, page by page."""
        query, live, held_in = request.query_params, self.is_live(request), self.dashboard.held_in
        held = self.select("json_extract(detail, '$.live') = ?", live)
        first, last = int(query.get("created[gte]", "0")), int(query.get("created[lte]", str(2**62)))
        moved = [row for tx in held for row in balance_movements(tx, held_in) if first <= row["created"] <= last]
        rows = sorted(moved, key=lambda row: row["created"], reverse=True)
        return await self.respond_to_status(None, _page("/v1/balance_transactions", rows, request))

    async def balance(self, request: Request) -> Response:
        live, dashboard, totals = self.is_live(request), self.dashboard, Counter[str]()
        for tx in self.select("state = 'succeeded' AND json_extract(detail, '$.live') = ?", live):
            for row in balance_movements(tx, dashboard.held_in):
                totals[row["currency"]] += 0 if dashboard.float_empty else row["net"]
        available = [{"amount": total, "currency": name} for name, total in totals.items()]
        return json_response({"object": "balance", "available": available, "pending": [], "livemode": live})


def _page(url: str, rows: list[dict[str, Any]], request: Request) -> dict[str, Any]:
    """At most `limit` of the rows after `starting_after`."""
    limit, after = int(request.query_params.get("limit", "10")), request.query_params.get("starting_after")
    rest = rows[[row["id"] for row in rows].index(after) + 1 :] if after else rows
    return {"object": "list", "url": url, "has_more": len(rest) > limit, "data": rest[:limit]}


def _key(request: Request) -> str:
    """The API key; empty when it is absent."""
    return credential(request) or basic_credential(request).partition(":")[0]
