"""Stripe's disputes: a card holder takes a payment back (docs/providers/stripe.md).

**Control**: `POST /simulator/control/disputes {"transaction", "status"?, "reason"?}` opens the dispute of a session
that was paid (`needs_response` unless `status` says otherwise), or moves it to another status, and sends the event. A
payment has one dispute at most here.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import DAY, SECOND
from guichet_simulator.context import SimulatorContext
from guichet_simulator.http_helpers import json_object, json_response, new_uuid
from guichet_simulator.models import SUCCEEDED, Transaction
from guichet_simulator.stripe_api import StripeApi
from guichet_simulator.stripe_payloads import dispute_object, intent_object, missing

#: While it has one of these, the money is not ours.
WITHDRAWN: Final = ("needs_response", "under_review", "lost")
_STATUSES: Final = (
    *WITHDRAWN, "won", "warning_needs_response", "warning_under_review", "warning_closed", "prevented",
)  # fmt: skip
_FINAL: Final = ("won", "lost", "warning_closed", "prevented")
#: Days in which evidence may be given.
_EVIDENCE_DAYS: Final = 9
_PAGE: Final = 10


class StripeDisputes:
    def __init__(self, api: StripeApi) -> None:
        self._api = api
        self._ctx = api.ctx

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/disputes", self.list_all),
            Route("/v1/disputes/{id}", self.read),
            Route("/v1/disputes/{id}/close", self.close, methods=["POST"]),
            Route("/v1/payment_intents/{id}", self.read_intent),
        ]

    async def list_all(self, request: Request) -> Response:
        """Newest first, in pages: `limit`, `starting_after`, `created[gte]`, `expand[]=data.payment_intent`."""
        if refusal := self._api.check_access(request):
            return refusal
        query = request.query_params
        since, limit = int(query.get("created[gte]", 0)), int(query.get("limit", _PAGE))
        found = [tx for tx in self._disputed(request) if tx.detail["dispute"]["created"] >= since]
        found.sort(key=lambda tx: (-tx.detail["dispute"]["created"], -tx.id))
        ids = [tx.detail["dispute"]["id"] for tx in found]
        start = ids.index(query["starting_after"]) + 1 if query.get("starting_after") in ids else 0
        expanded = "data.payment_intent" in query.getlist("expand[]") + query.getlist("expand[0]")
        rows = [dispute_object(tx, expanded=expanded) for tx in found[start : start + limit]]
        more = start + limit < len(found)
        return json_response({"object": "list", "url": "/v1/disputes", "has_more": more, "data": rows})

    async def read(self, request: Request) -> Response:
        found = self._find(request)
        return found if isinstance(found, Response) else json_response(dispute_object(found))

    async def close(self, request: Request) -> Response:
        """The dispute is not contested: it is lost."""
        found = self._find(request)
        if isinstance(found, Response):
            return found
        return json_response(dispute_object(move_dispute(self._ctx, found, {"status": "lost"})))

    def _find(self, request: Request) -> Transaction | Response:
        if refusal := self._api.check_access(request):
            return refusal
        ref = request.path_params["id"]
        found = [tx for tx in self._disputed(request) if tx.detail["dispute"]["id"] == ref]
        return found[0] if found else missing("dispute", ref).response()

    def _disputed(self, request: Request) -> list[Transaction]:
        """The sessions of the key's mode that have a dispute."""
        where = "provider = 'stripe' AND json_extract(detail, '$.dispute.id') IS NOT NULL"
        live = self._api.is_live(request)
        return [tx for tx in self._ctx.store.select(where) if tx.detail["live"] is live]

    async def read_intent(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        ref, live = request.path_params["id"], self._api.is_live(request)
        self._ctx.apply_due_decisions()
        where = "provider = 'stripe' AND kind = 'debit' AND json_extract(detail, '$.payment_intent') = ?"
        found = [tx for tx in self._ctx.store.select(where, ref) if tx.detail["live"] is live]
        return json_response(intent_object(found[0])) if found else missing("payment_intent", ref).response()


def move_dispute(ctx: SimulatorContext, tx: Transaction, changes: Mapping[str, Any]) -> Transaction:
    """Open or change the dispute of a session, and send its event."""
    now = ctx.clock.now() // SECOND
    opened = {
        "id": f"du_{new_uuid().replace('-', '')[:24]}",
        "created": now,
        "due_by": now + _EVIDENCE_DAYS * DAY // SECOND,
        "status": "needs_response",
        "reason": "fraudulent",
    }
    known = tx.detail.get("dispute")
    changed = ctx.store.patch_detail(tx, dispute={**(known or opened), **changes})
    closed = changed.detail["dispute"]["status"] in _FINAL
    ctx.queue_callback(changed, "dispute_closed" if closed else "dispute_updated" if known else "dispute_opened")
    return changed


def control_routes(ctx: SimulatorContext) -> list[BaseRoute]:
    async def dispute(request: Request) -> Response:
        body = await json_object(request) or {}
        ctx.apply_due_decisions()
        found = ctx.store.select("provider = 'stripe' AND kind = 'debit' AND id = ?", body.get("transaction"))
        if not found or found[0].state != SUCCEEDED or body.get("status", "needs_response") not in _STATUSES:
            return json_response({"error": f"transaction: a paid session of stripe; status: {_STATUSES}"}, 422)
        changes: dict[str, str] = {name: str(body[name]) for name in ("status", "reason") if name in body}
        return json_response(dispute_object(move_dispute(ctx, found[0], changes)), 201)

    return [Route("/control/disputes", dispute, methods=["POST"])]
