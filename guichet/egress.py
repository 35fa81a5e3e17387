"""The only way out to the network: deadlines, sizes, the address guard, and what is known after a failure.

EgressError
├── NotSent        provably no byte of the request reached the peer: another route may try
│   └── Forbidden  refused on our side: the URL, or every address behind it (D38)
└── Lost           anything else: the request may have been read, acted upon and answered

The line between the two is one event: a connection in hand (TCP and TLS done, or a kept-alive one taken up). Before it
nothing of the request can have left; after it nothing is provable, so everything is `Lost`, a kept-alive connection
that turns out to be dead included. Nothing is ever sent twice, whatever its method, and no redirect is followed.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Permits = Callable[[Address], bool]

#: Bytes of an answer that are read; what follows is thrown away with its connection.
MAX_ANSWER: Final = 64 * 1024
#: Seconds an idle connection is kept. Common servers close theirs after 5; taking one up as it closes is a `Lost`.
KEEP_ALIVE: Final = 4.0
#: Name lookups at once, for each line: a merchant's slow name server must not hold up an operator's.
LOOKUPS: Final = 8

#: What IPv6 routes on the internet. Everything else (mapped and compatible IPv4, NAT64, link-local…) is refused whole.
_GLOBAL_IPV6: Final = ip_network("2000::/3")
#: Addresses that `is_global` lets through in some Python version, or that lead into a private network all the same.
_HOLES: Final = tuple(
    ip_network(text)
    for text in (
        "168.63.129.16/32",  # the host's own agent, on one large cloud
        "192.0.0.0/24",  # protocol assignments, metadata of another cloud
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",  # benchmarks
        "2001::/23",  # Teredo and other assignments
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
)


class EgressError(Exception):
    """A request without a usable answer. The message names the host, never the path, the headers or the body."""


class NotSent(EgressError):
    """Provably no byte of the request reached the peer."""


class Forbidden(NotSent):
    """Refused on our side, before connecting."""


class Lost(EgressError):
    """The request may have arrived. `status` is the HTTP status when the answer's head came but not all of its body."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What the peer said. `headers` ignores case; `body` is raw (never decompressed), `complete` unless it was cut."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    complete: bool = True


@dataclass(slots=True)
class _Trail:
    """How far one request got."""

    connected: bool = False
    status: int | None = None


class _Refused(OSError):
    """The guard's no, shaped so that a connection attempt takes it for one more unreachable address."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "address refused by the guard")


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could reach this address: the only ones a merchant may name (D38)."""
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return False
    return address.is_global and not address.is_multicast and not any(address in hole for hole in _HOLES)


def is_loopback_host(host: str) -> bool:
    """Whether a host means this machine by its spelling alone: `localhost`, `*.localhost` or a loopback literal."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


class Egress:
    """Three lines, each with its own connections, so that none is ever taken up under another's rule.

    `guarded` reaches public addresses and `allow`; `open` reaches any; `loopback` exists in the development profile,
    reaches loopback only and does not verify certificates. It serves hosts that are loopback by their spelling; another
    name that leads to loopback is reached in that profile too, but its certificate is verified.

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
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._allow = tuple(allow)
        self._loopback = loopback
        self._user_agent = user_agent
        self._resolver = resolver
        self._verifying = _context(ca_file)
        self._trusting = _trusting() if loopback else self._verifying
        self._lines: dict[str, _Line] = {}
        self._closed = False

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,
        guarded: bool = True,
        max_bytes: int = MAX_ANSWER,
    ) -> Answer:
        """One request, sent at most once. Any status is an answer. Raises EgressError.

        `timeout`: seconds for everything together, from the name lookup to the last byte of the answer.
        `guarded=False` is for addresses the operator of the service configured, never for a merchant's.
        """
        target = self._target(url, guarded)
        line = self._line(target, guarded)
        trail = _Trail()
        try:
            async with asyncio.timeout(timeout):
                answer = await line.session.request(
                    method, target, headers=headers, data=body, allow_redirects=False, trace_request_ctx=trail
                )
                trail.status = answer.status
                try:
                    received, complete = await _read(answer.content, max_bytes)
                finally:
                    answer.close()  # a fully read answer has given its connection back already
                return Answer(answer.status, answer.headers, received, complete)
        except Exception as fault:  # whatever it is, money needs to know on which side of the line it happened
            raise _error(target, trail, fault) from fault

    async def aclose(self) -> None:
        """Close every connection. Nothing can be sent afterwards."""
        self._closed = True
        lines, self._lines = self._lines, {}
        for line in lines.values():
            await line.aclose()

    def _target(self, url: str, guarded: bool) -> URL:
        """The URL as it will be used: checked on the very object the connection is made from."""
        try:
            target = URL(url)
            host, port = target.raw_host, target.port
        except ValueError as fault:
            raise Forbidden("unreadable URL") from fault
        if target.scheme not in ("http", "https") or not host or not port:
            raise Forbidden("not an http or https URL with a host")
        if target.raw_user is not None or target.raw_password is not None:
            raise Forbidden(f"{host}: user information in the URL")
        if guarded and target.scheme != "https" and not self._local(host):
            raise Forbidden(f"{host}: https only")
        return target

    def _local(self, host: str) -> bool:
        return self._loopback and is_loopback_host(host)

    def _line(self, target: URL, guarded: bool) -> "_Line":
        if self._closed:
            raise NotSent("the way out is closed")
        if self._local(target.raw_host or ""):
            return self._open("loopback", lambda address: address.is_loopback, self._trusting)
        if guarded:
            return self._open("guarded", self._permits, self._verifying)
        return self._open("open", lambda _: True, self._verifying)

    def _open(self, name: str, permits: Permits, context: ssl.SSLContext) -> "_Line":
        """A line is made at its first use: it belongs to the running event loop."""
        if name not in self._lines:
            self._lines[name] = _Line.open(name, permits, context, self._user_agent, self._resolver)
        return self._lines[name]

    def _permits(self, address: Address) -> bool:
        if any(address in network for network in self._allow) or (self._loopback and address.is_loopback):
            return True
        return is_public(address)


@dataclass(frozen=True, slots=True)
class _Line:
    """Connections made under one rule, and the resolver to close with them when it is ours."""

    session: aiohttp.ClientSession
    resolver: "_Resolver | None" = field(default=None)

    @classmethod
    def open(
        cls, name: str, permits: Permits, context: ssl.SSLContext, user_agent: str, given: AbstractResolver | None
    ) -> "_Line":
        own = _Resolver(name) if given is None else None
        connector = aiohttp.TCPConnector(
            limit=0,
            ssl=context,
            resolver=given or own,
            keepalive_timeout=KEEP_ALIVE,
            socket_factory=_guard(permits),
        )
        progress = aiohttp.TraceConfig()
        progress.on_connection_create_end.append(_in_hand)
        progress.on_connection_reuseconn.append(_in_hand)
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": user_agent, "Accept-Encoding": "identity"},
            skip_auto_headers=("Content-Type",),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            auto_decompress=False,
            trust_env=False,
            trace_configs=[progress],
            middlewares=(_once,),
        )
        return cls(session, own)

    async def aclose(self) -> None:
        await self.session.close()
        if self.resolver is not None:
            await self.resolver.close()


class _Resolver(AbstractResolver):
    """The system's lookups in threads of their own: hung ones fill this pool, not the one everybody shares."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(LOOKUPS, f"dns-{name}")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        def lookup() -> list[ResolveResult]:
            found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
            numeric = socket.AI_NUMERICHOST
            return [
                ResolveResult(hostname=host, host=str(address[0]), port=port, family=kind, proto=proto, flags=numeric)
                for kind, _, proto, _, address in found
            ]

        return await asyncio.get_running_loop().run_in_executor(self._pool, lookup)

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _guard(permits: Permits) -> Callable[[aiohttp.AddrInfoType], socket.socket]:
    """Makes the socket for one address, or refuses it: the last thing that happens before that very address is dialled,
    so a name that answers differently from one lookup to the next gains nothing."""

    def make(info: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, proto, _, address = info
        try:
            permitted = permits(ip_address(address[0]))
        except ValueError:
            permitted = False
        if not permitted:
            raise _Refused
        return socket.socket(family=family, type=kind, proto=proto)

    return make


async def _in_hand(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.connected = True


class _Broken(Exception):
    """A broken connection under a name that aiohttp does not take as an invitation to send again."""


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp repeats GET, PUT and DELETE on its own when a kept-alive connection was dead. A payment is not repeated
    behind its caller's back, whatever verb its operator chose."""
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as fault:
        raise _Broken(str(fault)) from fault


async def _read(content: aiohttp.StreamReader, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes, and whether that was all."""
    received = bytearray()
    while len(received) <= limit:
        chunk = await content.read(limit + 1 - len(received))
        if not chunk:
            return bytes(received), True
        received += chunk
    return bytes(received[:limit]), False


def _error(target: URL, trail: _Trail, fault: Exception) -> EgressError:
    # A response error's own text quotes the whole URL, which can carry a secret.
    said = fault.message if isinstance(fault, aiohttp.ClientResponseError) else str(fault)
    message = f"{target.raw_host}: {said or type(fault).__name__}"
    if trail.connected:
        return Lost(message, trail.status)
    if any(isinstance(cause, _Refused) for cause in _causes(fault)):
        return Forbidden(message)
    return NotSent(message)


def _causes(fault: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = fault
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _context(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as fault:  # ssl.SSLError is one
            raise ValueError(f"GUICHET_EGRESS_CA_FILE: {ca_file} is not a readable PEM file of certificates") from fault
    return context


def _trusting() -> ssl.SSLContext:
    context = _context(None)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
