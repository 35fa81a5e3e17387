"""Outgoing HTTP: aiohttp behind an address guard, with deadlines and sizes (D38; docs/decisions.md, "Outgoing HTTP").

Of aiohttp its connector is used, without its `ClientSession`, its request and its response. Connecting and sending are
two steps here, so that it is known which of them failed, and nothing repeats a request.

aiohttp, 120 modules and 10 MB, is imported when the first request leaves or in `open`, and not at the start of a
command or before a server listens: what needs it stands in `connector.py` and `failures.py`.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from guichet.http_client.address_guard import Address, AddressGuard, Network, is_loopback_host, is_public
from guichet.http_client.outcomes import MAX_BODY, CallFailure, Forbidden, NotSent, Response

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver
    from yarl import URL

    from guichet.http_client.connector import Connection, GuardedConnector, Origin, TlsContext
    from guichet.http_client.failures import NameControl

#: How often the time limits of running requests are looked at, in seconds.
_WATCH_INTERVAL: Final = 0.05
#: What `open` imports.
_WITH_AIOHTTP: Final = "guichet.http_client.failures"
#: Hosts that are remembered, to have a name that is known to exist.
_REACHED: Final = 8
#: Methods that say nothing about a body when they have none.
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

RuleName = Literal["public", "any", "loopback"]


class _Rule(NamedTuple):
    permits: Callable[[Address], bool]
    context: "Callable[[], TlsContext]"


class Target(NamedTuple):
    """What a URL says. `path` and `host_header` are written as they are sent."""

    url: "URL"
    rule: RuleName
    origin: "Origin"
    host: str
    host_header: str
    path: str


@lru_cache(maxsize=1024)
def target_of(url: str, guarded: bool, loopback: bool) -> Target:
    """See `HttpClient` for the rules. Raises Forbidden."""
    from yarl import URL

    try:
        target = URL(url)
        host, port = target.raw_host, target.port
    except ValueError as error:
        raise Forbidden(CallFailure.URL_UNREADABLE()) from error
    if target.scheme not in ("http", "https") or not host or not port:
        raise Forbidden(CallFailure.NOT_HTTP())
    if target.raw_user is not None or target.raw_password is not None:
        raise Forbidden(CallFailure.USER_IN_URL(host=host))
    is_secure = target.scheme == "https"
    rule: RuleName = "loopback" if loopback and is_loopback_host(host) else "public" if guarded else "any"
    if rule == "public" and not is_secure:
        raise Forbidden(CallFailure.HTTPS_ONLY(host=host))
    return Target(
        target, rule, (host, port, is_secure), host, target.host_port_subcomponent or host, target.raw_path_qs
    )


def request_bytes(method: str, target: Target, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """The request as it is sent. Raises Forbidden when a header could end early and begin another."""
    lines = [f"{method} {target.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in {"Host": target.host_header, **headers}.items()]
    if body or method not in _WITHOUT_BODY:
        lines.append(f"Content-Length: {len(body or b'')}")
    text = "".join(lines)
    if "\n" in text or "\r" in text or "\0" in text:
        raise Forbidden(CallFailure.LINE_BREAK())
    lines += ("", "")
    return "\r\n".join(lines).encode() + (body or b"")


@cache
def tls_context(ca_file: Path | None) -> "TlsContext":
    """Trusts the system's authorities, and those in `ca_file` (PEM). Raises ValueError when the file cannot be read.
    Without one it is aiohttp's own, which has read the system's authorities already: 20 to 90 ms and a megabyte."""
    if ca_file is None:
        return True
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise ValueError(f"GUICHET_EGRESS_CA_FILE: {ca_file} is not a readable PEM file of certificates") from error
    return context


class _Deadlines:
    """The time limits of all requests that are running, watched by one timer.

    `asyncio.timeout` makes a timer for each request, which costs 8 % of a webhook's delivery (bench/README.md).
    """

    def __init__(self) -> None:
        self._running: set[_Deadline] = set()
        self._watching = False

    def after(self, seconds: float) -> "_Deadline":
        """A block that is cancelled, and raises TimeoutError, `seconds` from now (at most _WATCH_INTERVAL later)."""
        loop = asyncio.get_running_loop()
        if not self._watching:
            self._watching = True
            loop.call_later(_WATCH_INTERVAL, self._watch, loop)
        task = asyncio.current_task(loop)
        assert task is not None
        return _Deadline(self._running, task, loop.time() + seconds)

    def expire_unconnected(self, tasks: Collection[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
        unconnected = [deadline for deadline in self._running if deadline.connection is None and deadline.task in tasks]
        for deadline in unconnected:
            deadline.expire()
        return {deadline.task for deadline in unconnected}

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for deadline in [deadline for deadline in self._running if deadline.at <= now]:
            deadline.expire()
        self._watching = bool(self._running)
        if self._watching:
            loop.call_later(_WATCH_INTERVAL, self._watch, loop)


class _Deadline:
    """One request under a time limit. It treats cancellation as `asyncio.Timeout` does."""

    __slots__ = ("_cancelling", "_expired", "_running", "at", "connection", "task")

    def __init__(self, running: "set[_Deadline]", task: asyncio.Task[Any], at: float) -> None:
        self._running = running
        self._cancelling = task.cancelling()
        self._expired = False
        self.task = task
        self.at = at
        #: From then on the request may have been sent.
        self.connection: Connection | None = None

    def __enter__(self) -> None:
        self._running.add(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._running.discard(self)
        if self._expired and self.task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        self._running.discard(self)
        self._expired = True
        self.task.cancel()


class HttpClient:
    """Three rules with a pool of connections each, so that no connection is ever reused under another rule.

    `public` reaches public addresses and `allow`. `any` reaches every address; it is for addresses that staff
    configured. `loopback` exists in the development profile, reaches loopback only and does not verify certificates.
    It serves hosts that are loopback by their spelling; another name that leads to loopback is reached in that profile
    too, but its certificate is verified.

    Raises ValueError when `ca_file` (PEM, trusted besides the system's authorities) cannot be read. How many requests
    run at once is the caller's rule: there is no limit here.
    """

    def __init__(
        self,
        *,
        allow: Sequence[Network] = (),
        ca_file: Path | None = None,
        loopback: bool = False,
        user_agent: str = "Guichet/1.0",
        resolver: "AbstractResolver | None" = None,
    ) -> None:
        self._allow = tuple(allow)
        self._loopback = loopback
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity", "Accept": "*/*"}
        self._resolver = resolver
        tls_context(ca_file)
        verifying = partial(tls_context, ca_file)
        self._rules: dict[RuleName, _Rule] = {
            "public": _Rule(self._is_allowed, verifying),
            "any": _Rule(lambda _: True, verifying),
            "loopback": _Rule(lambda address: address.is_loopback, lambda: False),
        }
        self._opening = asyncio.Lock()
        self._is_open = False
        self._connectors: dict[RuleName, GuardedConnector] = {}
        self._deadlines = _Deadlines()
        #: The hosts that were connected to last.
        self._reached = deque(["localhost"], maxlen=_REACHED)
        self._names: NameControl | None = None
        self._stopped: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def open(self) -> None:
        """Imports, in a thread, what the first request would wait for: a tenth of a second."""
        async with self._opening:
            if not self._is_open:
                await asyncio.to_thread(import_module, _WITH_AIOHTTP)
                self._is_open = True

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,
        guarded: bool = True,
        max_bytes: int = MAX_BODY,
    ) -> Response:
        """One request, sent at most once. Any status is a response. Raises NotSent or Lost.

        `timeout`: seconds for everything together, from the name lookup to the last byte of the response.
        `guarded=False` is for addresses that staff configured, never for a merchant's.
        `max_bytes`: of the body; a longer one is cut and the response is not `complete`.
        """
        if not self._is_open:
            await self.open()
        target = target_of(url, guarded, self._loopback)
        content = request_bytes(method, target, {**self._headers, **(headers or {})}, body)
        connector = self._connectors.get(target.rule) or self._new_connector(target.rule)
        deadline = self._deadlines.after(timeout)
        try:
            with deadline:
                connection = connector.kept(target.origin)
                if connection is None:
                    connection = await connector.connected(target.url)
                    if target.host != self._reached[0]:
                        self._reached.appendleft(target.host)
                deadline.connection = connection  # From here on a failure is Lost.
                return await connection.exchange(content, max_bytes)
        except Exception as error:  # Whatever it is: money needs to know whether the request can have been sent.
            from guichet.http_client.failures import failure

            stopped = deadline.task in self._stopped
            raise failure(target.host, deadline.connection, error, stopped=stopped) from error
        except asyncio.CancelledError as error:
            if self._closed and deadline.connection is None and not deadline.task.cancelling():
                raise NotSent(CallFailure.CLOSED(), stopped=True) from error  # aiohttp cancels its lookups of names.
            raise
        finally:
            if deadline.connection is not None:
                connector.give_back(target.origin, deadline.connection)

    def stop_connecting(self, tasks: Collection[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
        """Ends the requests of these tasks that are not connected yet: they raise NotSent. Returns their tasks."""
        self._stopped = self._deadlines.expire_unconnected(tasks)
        return self._stopped

    async def is_own_fault(self, error: NotSent, url: str) -> bool:
        """Whether a request to `url` failed because of a fault on our side. Looks up another name if needed, for
        two seconds at most."""
        await self.open()
        from yarl import URL

        from guichet.http_client.failures import NameControl, is_own_fault

        self._names = self._names or NameControl(self._reached)
        return await is_own_fault(error, URL(url).raw_host or "", self._names, self._names_by())

    async def unreachable_host(self, url: str) -> str | None:
        """The host of `url` if no guarded request would connect now; None when one could, as far as its name tells.
        Looks the name up, for LOOKUP_LIMIT seconds at most."""
        await self.open()
        from guichet.http_client.failures import is_reachable

        try:
            target = target_of(url, True, self._loopback)
        except Forbidden:
            return urlsplit(url).hostname or url
        permits = self._rules[target.rule].permits
        return None if await is_reachable(target.host, permits, self._names_by()) else target.host

    async def aclose(self) -> None:
        """Close every connection. Nothing can be sent afterwards."""
        self._closed = True
        connectors, self._connectors = self._connectors, {}
        for connector in connectors.values():
            await connector.aclose()
        if self._resolver is not None:
            await self._resolver.close()
        await asyncio.sleep(0)  # Aborted connections are reported as lost in the next turn of the loop.

    def _is_allowed(self, address: Address) -> bool:
        if any(address in network for network in self._allow) or (self._loopback and address.is_loopback):
            return True
        return is_public(address)

    def _new_connector(self, rule: RuleName) -> "GuardedConnector":
        """At the first use of the rule: it belongs to the running event loop."""
        if self._closed:
            raise NotSent(CallFailure.CLOSED(), stopped=True)
        from guichet.http_client.connector import GuardedConnector

        permits, context = self._rules[rule]
        self._connectors[rule] = connector = GuardedConnector(AddressGuard(permits), context(), self._names_by())
        return connector

    def _names_by(self) -> "AbstractResolver":
        """Created at its first use too."""
        if self._resolver is None:
            from aiohttp import AsyncResolver

            self._resolver = AsyncResolver()
        return self._resolver
