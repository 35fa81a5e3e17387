"""The routes of the API at /v1 (docs/contract.md, "Endpoints").

The checks of a request run in the order of D15: the rate limit (a middleware), route and verb (Starlette's router),
key, account, the key's networks and scopes (`Endpoint`), then body, catalogue, bounds, replay and provider (the
handler).
"""

from collections import defaultdict
from typing import Final

from starlette.routing import BaseRoute

from guichet.api.endpoints import ENDPOINTS
from guichet.api.endpoints.endpoint import Handler
from guichet.api.http import Endpoint
from guichet.api.scopes import required_bits
from guichet.context import AppContext
from guichet.merchants.api_keys import Authenticator
from guichet.server.request_context import ClientAddresses

ROOT: Final = "/v1"


def api_routes(ctx: AppContext) -> list[BaseRoute]:
    """Every endpoint of the contract; errors are raised, and answered by the application's error handler.

    The full paths stand in one flat list: a router of its own, under a mount, costs 4 % of a creation.
    """
    authenticator, addresses = Authenticator(ctx.db, ctx.clock), ClientAddresses.of(ctx.settings)
    handlers: dict[str, dict[str, Handler]] = defaultdict(dict)
    parameters: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for endpoint in ENDPOINTS:
        handlers[endpoint.path][endpoint.method] = endpoint.handler
        names = frozenset(each.name for each in endpoint.parameters if each.where == "query")
        parameters[endpoint.path][endpoint.method] = names
    return [
        Endpoint(
            ctx,
            authenticator,
            by_method,
            parameters[path],
            {method: required_bits(method, path) for method in by_method},
            addresses,
        ).route(ROOT + path)
        for path, by_method in handlers.items()
    ]
