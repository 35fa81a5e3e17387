"""The only way out to the network: deadlines, sizes, the address guard, and what is known after a failure.

The line between `NotSent` and `Lost` is one event: a connection in hand (TCP and TLS done, or a kept-alive one taken
up). Before it nothing of the request can have left; after it nothing is provable, so everything is `Lost`, a kept-alive
connection that turns out to be dead included. Nothing is ever sent twice, whatever its method, and no redirect is
followed.
"""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from yarl import URL

from guichet.egress.answers import Answer, EgressError, Forbidden, Lost, NotSent
from guichet.egress.guard import Address, Network, Permits, is_loopback_host, is_public
from guichet.egress.line import Broken, Line, Peer, Resolver, SystemResolver

#: Bytes of an answer that are read; what follows is thrown away with its connection.
MAX_ANSWER: Final = 64 * 1024
#: Methods whose requests say their length even when they carry nothing.
_WITH_BODY: Final = ("POST", "PUT", "PATCH")


class _Target(NamedTuple):
    """A URL as it will be used: checked on the very object the connection is made from."""

    peer: Peer
    authority: str
    path: str
    line: str


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
        resolver: Resolver | None = None,
    ) -> None:
        self._allow = tuple(allow)
        self._loopback = loopback
        self._always = {"User-Agent": user_agent, "Accept-Encoding": "identity", "Accept": "*/*"}
        self._resolver = resolver
        verifying = _context(ca_file)
        self._rules: dict[str, tuple[Permits, ssl.SSLContext]] = {
            "guarded": (self._permits, verifying),
            "open": (lambda _: True, verifying),
            "loopback": (lambda address: address.is_loopback, _trusting() if loopback else verifying),
        }
        self._lines: dict[str, Line] = {}
        self._closed = False
        self._target = lru_cache(maxsize=1024)(self._checked)
        self._defaults = lru_cache(maxsize=64)(self._unless_given)

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
        deadline = asyncio.get_running_loop().time() + timeout
        target = self._target(url, guarded)
        request = self._written(method, target, headers or {}, body)
        line = self._line(target.line)
        try:
            connection = line.kept(target.peer)
            if connection is None:
                async with asyncio.timeout_at(deadline):
                    connection = await line.dial(target.peer)
        except Forbidden as fault:
            raise Forbidden(f"{target.peer.host}: {fault}") from fault
        except Exception as fault:
            raise NotSent(f"{target.peer.host}: {str(fault) or type(fault).__name__}") from fault
        try:
            return await line.exchange(target.peer, connection, request, max_bytes, deadline)
        except Exception as fault:  # whatever it is, money needs to know on which side of the line it happened
            status = fault.status if isinstance(fault, Broken) else None
            raise Lost(f"{target.peer.host}: {str(fault) or type(fault).__name__}", status) from fault

    async def aclose(self) -> None:
        """Close every connection. Nothing can be sent afterwards."""
        self._closed = True
        lines, self._lines = self._lines, {}
        for line in lines.values():
            await line.aclose()

    def _checked(self, url: str, guarded: bool) -> _Target:
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
        line = "loopback" if self._local(host) else "guarded" if guarded else "open"
        peer = Peer(host, port, target.scheme == "https")
        return _Target(peer, target.host_port_subcomponent or host, target.raw_path_qs, line)

    def _local(self, host: str) -> bool:
        return self._loopback and is_loopback_host(host)

    def _written(self, method: str, target: _Target, headers: Mapping[str, str], body: bytes | None) -> bytes:
        """The request's bytes."""
        fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if fields.count("\n") != len(headers) or fields.count("\r") != len(headers) or "\0" in fields:
            raise Forbidden(f"{target.peer.host}: a line break in a header")
        start = (
            f"{method} {target.path} HTTP/1.1\r\nHost: {target.authority}\r\n{self._defaults(tuple(headers))}{fields}"
        )
        if body is None and method not in _WITH_BODY:
            return start.encode() + b"\r\n"
        content = body or b""
        return start.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(content), content)

    def _unless_given(self, names: tuple[str, ...]) -> str:
        """The default headers; what is given takes their place, whatever its case."""
        given = {name.lower() for name in names}
        return "".join(f"{name}: {value}\r\n" for name, value in self._always.items() if name.lower() not in given)

    def _line(self, name: str) -> Line:
        """Made at its first use: it belongs to the running event loop."""
        if self._closed:
            raise NotSent("the way out is closed")
        line = self._lines.get(name)
        if line is None:
            permits, context = self._rules[name]
            line = self._lines[name] = Line(permits, context, self._resolver or SystemResolver(name))
        return line

    def _permits(self, address: Address) -> bool:
        if any(address in network for network in self._allow) or (self._loopback and address.is_loopback):
            return True
        return is_public(address)


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


__all__ = ["MAX_ANSWER", "Answer", "Egress", "EgressError", "Forbidden", "Lost", "NotSent", "Resolver"]
__all__ += ["is_loopback_host", "is_public"]
