"""The routes of the API at /v1 (docs/contract.md, "Endpoints").

The checks of a request run in the order of D15: the rate limit (a middleware), route and verb (Starlette's router),
key, account, the key's networks and scopes (`Endpoint`), then body, catalogue, bounds, replay and provider (the
handler).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from starlette.routing import BaseRoute

from guichet.api import endpoint, payments
from guichet.api.http import Endpoint, MethodHandler
from guichet.api.scopes import SCOPES
from guichet.context import AppContext
from guichet.domain.key_access import scope_bits
from guichet.merchants.api_keys import Authenticator
from guichet.server.request_context import ClientAddresses

ROOT: Final = "/v1"


def api_routes(ctx: AppContext) -> list[BaseRoute]:
    """Every endpoint of the contract; errors are raised, and answered by the application's error handler.

    The full paths stand in one flat list: a router of its own, under a mount, costs 4 % of a creation. Only the
    handlers of payments are imported: the others are with the first request to one of them (`_handlers`).
    """
    authenticator, addresses = Authenticator(ctx.db, ctx.clock), ClientAddresses.of(ctx.settings)
    scopes: dict[str, dict[str, int]] = defaultdict(dict)
    for (method, path), opening in SCOPES.items():
        scopes[path][method] = scope_bits(opening)
    known = _by_path(payments.ENDPOINTS)
    return [
        Endpoint(ctx, authenticator, path, known[path], _handlers, by_method, addresses).route(ROOT + path)
        for path, by_method in scopes.items()
    ]


async def _handlers(path: str) -> dict[str, MethodHandler]:
    """By their methods."""
    return _by_path(await asyncio.to_thread(_all_endpoints))[path]


def _all_endpoints() -> Iterable[endpoint.Endpoint]:
    from guichet.api.endpoint_table import ENDPOINTS  # noqa: PLC0415 - a server listens, and takes payments, without

    return ENDPOINTS


def _by_path(endpoints: Iterable[endpoint.Endpoint]) -> defaultdict[str, dict[str, MethodHandler]]:
    handlers: defaultdict[str, dict[str, MethodHandler]] = defaultdict(dict)
    for route in endpoints:
        names = frozenset(parameter.name for parameter in route.parameters if parameter.where == "query")
        handlers[route.path][route.method] = MethodHandler(route.handler, names)
    return handlers
