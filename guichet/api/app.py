"""The routes of the API at /v1 (docs/contract.md, "Endpoints").

The checks of a request run in the order of D15: the rate limit (a middleware), route and verb (Starlette's router),
key and account (here), then body, catalogue, bounds, replay and provider (the handler).
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.api.auth import Authenticator
from guichet.api.endpoints import ENDPOINTS, Handler
from guichet.api.http import Call
from guichet.context import AppContext

ROOT: Final = "/v1"


def api_routes(ctx: AppContext) -> list[BaseRoute]:
    """Every endpoint of the contract; errors are raised, and answered by the application's error handler.

    The full paths stand in one flat list: a router of its own, under a mount, costs 4 % of a creation.
    """
    authenticator = Authenticator(ctx.db, ctx.clock)
    handlers: dict[str, dict[str, Handler]] = defaultdict(dict)
    for endpoint in ENDPOINTS:
        handlers[endpoint.path][endpoint.method] = endpoint.handler
    return [_route(ctx, authenticator, ROOT + path, by_method) for path, by_method in handlers.items()]


def _route(ctx: AppContext, authenticator: Authenticator, path: str, by_method: Mapping[str, Handler]) -> Route:
    async def endpoint(request: Request) -> Response:
        caller = await authenticator.caller(request.headers.get("authorization"))
        return await by_method[request.method](Call(ctx, request, caller))

    route = Route(path, endpoint)
    # One route for all methods of a path, so that a 405 names them all; and without the HEAD that Starlette adds to
    # GET, which the contract does not have.
    route.methods = set(by_method)
    return route
