"""Stripe's payment intents: what a session made of the customer's payment (docs/providers/stripe.md)."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet_simulator.http_helpers import json_response
from guichet_simulator.stripe.api import StripeApi
from guichet_simulator.stripe.payloads import intent_object, missing


def routes(api: StripeApi) -> list[BaseRoute]:
    async def read(request: Request) -> Response:
        if refusal := api.check_access(request):
            return refusal
        ref = request.path_params["id"]
        api.ctx.apply_due_decisions()
        where = "provider = 'stripe' AND kind = 'debit' AND json_extract(detail, '$.payment_intent') = ?"
        found = [tx for tx in api.ctx.store.select(where, ref) if tx.detail["live"] is api.is_live(request)]
        return json_response(intent_object(found[0])) if found else missing("payment_intent", ref).response()

    return [Route("/v1/payment_intents/{id}", read)]
