"""What is known of every HTTP request before its route: its id, whom it counts for, its log line and its metrics."""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet import metrics
from guichet.domain.errors import ServerError
from guichet.domain.merchants import Caller
from guichet.domain.records import Record
from guichet.domain.token_buckets import TokenBuckets
from guichet.logs import RequestLine, log, request_id_of_line, without_emails
from guichet.merchants.request_log import RequestLog
from guichet.printable import printable
from guichet.server.error_handler import ERROR_CODE, STATUS, error_response
from guichet.settings import Network, Settings

#: How the route of a provider's callback begins.
_CALLBACKS: Final = "/providers/"
_UNKNOWN: Final = "unknown"
#: Where the scope of a request has the caller of its key (a `Caller`), once it is known.
CALLER: Final = "guichet.caller"
#: Headers (names in lower case, as ASGI has them) that are added to the response, whatever answers.
RESPONSE_HEADERS: Final = "guichet.response_headers"
#: For a year browsers ask this host by TLS only (RFC 6797), whatever proxy stands in front. Other hosts of the domain
#: are not ours to decide about.
_HSTS: Final = ((b"strict-transport-security", b"max-age=31536000"),)
_ACCEPTED_ID: Final = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestContext:
    """The outermost middleware: gives the request an id (the caller's own if it is well formed), which is returned as
    `X-Request-Id` and stands on every log line.

    Routing sees the path percent-encoded as it was sent, so that an `external_id` may hold a slash (D10).
    """

    def __init__(self, app: ASGIApp, request_log: RequestLog, public_url: str) -> None:
        self._app = app
        self._added = _HSTS if public_url.startswith("https://") else ()
        self._request_log = request_log
        #: The lines of requests that anybody can send without a key, of all addresses together.
        self._strangers_lines = TokenBuckets(burst=200, per_second=10)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("ascii", "replace")
        started_at = time.perf_counter()
        request_id = _request_id(scope)
        token = request_id_of_line.set(request_id)
        scope[STATUS] = 0
        added = scope[RESPONSE_HEADERS] = [(b"x-request-id", request_id.encode("ascii")), *self._added]

        def send_completed(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                scope[STATUS] = message["status"]
                message["headers"] += added
            return send(message)

        try:
            await self._app(scope, receive, send_completed)
        except asyncio.CancelledError:  # The service stops and does not wait any longer for this request.
            if scope[STATUS]:
                raise
            await error_response(ServerError())(scope, receive, send_completed)
        except Exception as error:  # A bug.
            log.error("request.crashed", error=repr(error), exc_info=True)
            if not scope[STATUS]:
                await error_response(ServerError())(scope, receive, send_completed)
        finally:
            self._record(scope, request_id, scope[STATUS], time.perf_counter() - started_at)
            request_id_of_line.reset(token)

    def _record(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        """Counts the request and logs it. Not all requests without a key are logged (those that match no route or were
        refused by the rate limit, and callbacks): anybody could fill the disk with them."""
        method, route = scope["method"], route_template(scope)
        metrics.request(method, route, status, seconds)
        caller: Caller | None = scope.get(CALLER)
        if caller is not None and caller.key_id is not None:
            code = scope.get(ERROR_CODE)
            self._request_log.add(caller, caller.key_id, method, scope["path"], status, seconds, code)
        if not log.takes_info:
            return
        strangers = status < 500 and (route is None or route.startswith(_CALLBACKS))
        if strangers and not self._strangers_lines.take("all", time.monotonic_ns() // 1000):
            return
        path = route or _first_segment(scope["path"])
        whose = (None, None) if caller is None else (caller.merchant.id, caller.env)
        log.request(RequestLine(method, path, status, round(seconds * 1000, 1), request_id, *whose))


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of this name, which is in lower case, as ASGI has it."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return None


def _request_id(scope: Scope) -> str:
    """The caller's own, or a new one, which is unique but no secret."""
    request_id = header(scope, b"x-request-id")
    return request_id if request_id and _ACCEPTED_ID.fullmatch(request_id) else f"{random.getrandbits(128):032x}"


def _first_segment(path: str) -> str:
    """`/v1/*` of a path that no route serves: the rest may hold what no log may, such as a phone number."""
    first, slash, _ = path[1:].partition("/")
    return without_emails(printable(f"/{first[:200]}{slash and '/*'}"))


def route_template(scope: Scope) -> str | None:
    """`/v1/payments/{reference}` rather than the path, which may open a hosted page and belongs in no log.

    `/pay/*` when a mount matched and no route in it; None when nothing matched.
    """
    route = scope.get("route")
    if isinstance(route, Mount):
        return f"{scope['root_path']}/*"
    path = getattr(route, "path", None)
    return f"{scope['root_path']}{path}" if path else None


class ClientAddresses(Record, frozen=True):
    """Whom a limit counts, the same for every limit: behind a trusted proxy, the address that the proxy names.

    `ipv6_prefix`: bits of an IPv6 address that are counted as one client. A subscriber has 2⁶⁴ addresses or more, so a
    limit for single ones would be no limit.
    """

    trusted_proxies: Sequence[Network]
    ipv6_prefix: int

    @classmethod
    def of(cls, settings: Settings) -> "ClientAddresses":
        return cls(settings.trusted_proxies, settings.ipv6_prefix)

    def counted(self, scope: Scope) -> str:
        """What limits of requests count by: `203.0.113.7`, or `2001:db8:0:1::/64`."""
        return counted_address(self._client(scope), self.ipv6_prefix)

    def is_within(self, scope: Scope, networks: Sequence[Network]) -> bool:
        """Whether the client is in one of them, judged by its whole address."""
        address = _parse(self._client(scope))
        return address is not None and any(address in network for network in networks)

    def counted_peer(self, peer: str) -> str | None:
        """What limits of connections count by; None for a trusted proxy, which is not limited."""
        return None if self._is_trusted(peer) else counted_address(peer, self.ipv6_prefix)

    def _client(self, scope: Scope) -> str:
        """The peer's address; behind trusted proxies, the nearest in `X-Forwarded-For` that is not one of them."""
        client = scope.get("client")
        address: str = client[0] if client else _UNKNOWN
        if not self._is_trusted(address):
            return address
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        for hop in reversed([part.strip() for line in forwarded for part in line.split(",")]):
            if _parse(hop) is None:
                return address
            address = hop
            if not self._is_trusted(hop):
                return hop
        return address

    def _is_trusted(self, text: str) -> bool:
        if not self.trusted_proxies:
            return False
        address = _parse(text)
        return address is not None and any(address in network for network in self.trusted_proxies)


@lru_cache(maxsize=4096)
def counted_address(text: str, ipv6_prefix: int) -> str:
    """IPv4 as it is, also when it is written as IPv6 (`::ffff:203.0.113.7`); of IPv6 the network of `ipv6_prefix`."""
    address = _parse(text)
    if address is None:
        return text
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((int(address), ipv6_prefix), strict=False))


@lru_cache(maxsize=4096)
def _parse(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
