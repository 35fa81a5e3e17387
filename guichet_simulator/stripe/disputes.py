"""Stripe's disputes: listed newest first, page by page (docs/providers/stripe.md, "Disputes").

`POST /simulator/control/transactions/{id}/dispute` opens one, and decides it later.
"""

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.http_helpers import json_response
from guichet_simulator.stripe.api import StripeApi
from guichet_simulator.stripe.payloads import dispute_object


class StripeDisputes:
    def __init__(self, api: StripeApi) -> None:
        self._api = api
        self._ctx = api.ctx

    async def list_disputes(self, request: Request) -> Response:
        if refusal := self._api.check_access(request):
            return refusal
        query = request.query_params
        limit = int(query.get("limit", "10"))
        disputed = self._ctx.store.select(
            "provider = 'stripe' AND kind = 'debit' AND json_extract(detail, '$.dispute.created') >= ?",
            int(query.get("created[gte]", "0")),
        )
        # Written as `expand[]` by some clients, and as `expand[0]` by Stripe's own library.
        wanted = [value for name, value in query.multi_items() if name.startswith("expand[")]
        own = [tx for tx in disputed if tx.detail["live"] is self._api.is_live(request)]
        rows = [dispute_object(tx, expanded="data.payment_intent" in wanted) for tx in own]
        if after := query.get("starting_after"):
            rows = rows[[row["id"] for row in rows].index(after) + 1 :]
        return json_response(
            {"object": "list", "url": "/v1/disputes", "has_more": len(rows) > limit, "data": rows[:limit]}
        )
