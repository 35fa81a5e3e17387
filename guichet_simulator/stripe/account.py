"""What Stripe tells about the account of a key: charges, and the webhook endpoint of the dashboard."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet_simulator.http_helpers import json_response
from guichet_simulator.stripe.api import StripeApi


def routes(api: StripeApi) -> list[BaseRoute]:
    async def account(request: Request) -> Response:
        if refusal := api.check_access(request):
            return refusal
        return json_response(
            {"id": "acct_simulator", "country": "FR", "default_currency": "eur", "charges_enabled": True}
        )

    async def webhook_endpoints(request: Request) -> Response:
        if refusal := api.check_access(request):
            return refusal
        url = api.ctx.dashboard(api.name).callback_url
        rows = [{"id": "we_1", "url": url, "enabled_events": ["*"], "status": "enabled"}] if url else []
        return json_response({"object": "list", "data": rows, "has_more": False})

    return [Route("/v1/account", account), Route("/v1/webhook_endpoints", webhook_endpoints)]
