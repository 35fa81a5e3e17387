"""The only way out to the network: aiohttp behind an address guard, with deadlines and sizes (D38, D78)."""

import asyncio
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from aiohttp import (
    AsyncResolver,
    ClientError,
    ClientHandlerType,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    StreamReader,
)
from aiohttp.abc import AbstractResolver
from yarl import URL

from guichet.http_client.address_guard import Address, AddressGuard, Network, is_loopback_host, is_public
from guichet.http_client.connector import Exchange, GuardedConnector, current_exchange
from guichet.http_client.outcomes import Forbidden, HttpClientError, Lost, NotSent, Response

#: Bytes of a response body that are read unless the caller says otherwise; the rest is dropped with its connection.
MAX_BODY: Final = 64 * 1024
#: Bytes of a body that are buffered before the peer is made to wait.
_READ_BUFFER: Final = 64 * 1024
#: Characters that could end a header and begin another.
_NOT_IN_HEADERS: Final = re.compile(r"[\r\n\0]")

RuleName = Literal["public", "any", "loopback"]


class _Rule(NamedTuple):
    permits: Callable[[Address], bool]
    context: ssl.SSLContext


class HttpClient:
    """Three rules with a session each, so that no connection is ever reused under another rule.

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
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._allow = tuple(allow)
        self._loopback = loopback
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity", "Accept": "*/*"}
        self._resolver = resolver
        verifying = _tls_context(ca_file)
        self._rules: dict[RuleName, _Rule] = {
            "public": _Rule(self._is_allowed, verifying),
            "any": _Rule(lambda _: True, verifying),
            "loopback": _Rule(lambda address: address.is_loopback, _unverified_tls_context()),
        }
        self._sessions: dict[RuleName, ClientSession] = {}
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
        max_bytes: int = MAX_BODY,
    ) -> Response:
        """One request, sent at most once. Any status is a response. Raises NotSent or Lost.

        `timeout`: seconds for everything together, from the name lookup to the last byte of the response.
        `guarded=False` is for addresses that staff configured, never for a merchant's.
        `max_bytes`: of the body; a longer one is cut and the response is not `complete`.
        """
        target = self._checked_url(url, guarded)
        _check_headers(headers or {})
        session = self._session(self._rule_for(target, guarded))
        exchange = Exchange()
        token = current_exchange.set(exchange)
        response: ClientResponse | None = None
        clean = False
        try:
            async with asyncio.timeout(timeout):
                response = await session.request(method, target, headers=headers, data=body, allow_redirects=False)
                content, complete = await _read(response.content, max_bytes)
            # aiohttp has given the connection back by now, unless the request is not written to its end yet.
            clean = complete and response.connection is None
            return Response(response.status, response.raw_headers, content, complete)
        except Exception as error:  # Whatever it is: money needs to know whether the request can have been sent.
            raise _failure(target, exchange, response, error) from error
        finally:
            current_exchange.reset(token)
            if not clean:
                exchange.abort()
                if response is not None:
                    response.close()

    async def aclose(self) -> None:
        """Close every connection. Nothing can be sent afterwards."""
        self._closed = True
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()
        if self._resolver is not None:
            await self._resolver.close()
        await asyncio.sleep(0)  # Aborted connections are reported as lost in the next turn of the loop.

    def _checked_url(self, url: str, guarded: bool) -> URL:
        """The object that the connection will be made from."""
        try:
            target = URL(url)
            host, port = target.raw_host, target.port
        except ValueError as error:
            raise Forbidden("unreadable URL") from error
        if target.scheme not in ("http", "https") or not host or not port:
            raise Forbidden("not an http or https URL with a host")
        if target.raw_user is not None or target.raw_password is not None:
            raise Forbidden(f"{host}: user information in the URL")
        if guarded and target.scheme != "https" and not self._is_local(host):
            raise Forbidden(f"{host}: https only")
        return target

    def _rule_for(self, target: URL, guarded: bool) -> RuleName:
        if self._is_local(target.raw_host or ""):
            return "loopback"
        return "public" if guarded else "any"

    def _is_local(self, host: str) -> bool:
        return self._loopback and is_loopback_host(host)

    def _is_allowed(self, address: Address) -> bool:
        if any(address in network for network in self._allow) or (self._loopback and address.is_loopback):
            return True
        return is_public(address)

    def _session(self, name: RuleName) -> ClientSession:
        """Created at its first use: it belongs to the running event loop."""
        if self._closed:
            raise NotSent("the HTTP client is closed")
        session = self._sessions.get(name)
        if session is None:
            if self._resolver is None:
                self._resolver = AsyncResolver()
            permits, context = self._rules[name]
            session = self._sessions[name] = ClientSession(
                connector=GuardedConnector(AddressGuard(permits), context, self._resolver),
                headers=self._headers,
                skip_auto_headers=("Content-Type",),
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(),
                auto_decompress=False,
                trust_env=False,
                read_bufsize=_READ_BUFFER,
                middlewares=(_never_repeat,),
            )
        return session


async def _never_repeat(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Middleware that hides from aiohttp the errors after which it would send some requests a second time."""
    try:
        return await handler(request)
    except (ClientOSError, ServerDisconnectedError) as error:
        raise ClientError(str(error)) from error


async def _read(content: StreamReader, max_bytes: int) -> tuple[bytes, bool]:
    """At most `max_bytes` of the body, and whether that is all of it."""
    pieces: list[bytes] = []
    size = 0
    while size <= max_bytes and (piece := await content.readany()):
        pieces.append(piece)
        size += len(piece)
    body = b"".join(pieces)
    return (body, True) if size <= max_bytes else (body[:max_bytes], False)


def _failure(target: URL, exchange: Exchange, response: ClientResponse | None, error: Exception) -> HttpClientError:
    if exchange.connected:
        return Lost(f"{target.raw_host}: {_reason(error)}", response.status if response is not None else None)
    if exchange.forbidden:
        return Forbidden(f"{target.raw_host}: address refused by the guard")
    # Before there is a connection, aiohttp's messages name the host only.
    return NotSent(f"{target.raw_host}: {str(error) or type(error).__name__}")


def _reason(error: Exception) -> str:
    """For the log. The text of most of aiohttp's errors holds the whole URL, which may hold secrets."""
    if isinstance(error, ClientResponseError):
        return error.message.partition("\n")[0]
    return "no response in time" if isinstance(error, TimeoutError) else type(error.__cause__ or error).__name__


def _check_headers(headers: Mapping[str, str]) -> None:
    """aiohttp refuses them too, but only once it is connected: then they would count as Lost."""
    if _NOT_IN_HEADERS.search("".join([*headers.keys(), *headers.values()])):
        raise Forbidden("a line break in a header")


def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    if ca_file is None:
        return _system_tls_context()
    context = _new_system_tls_context()
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise ValueError(f"GUICHET_EGRESS_CA_FILE: {ca_file} is not a readable PEM file of certificates") from error
    return context


def _new_system_tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@cache
def _system_tls_context() -> ssl.SSLContext:
    """Read once: parsing the system's authorities takes 20 ms."""
    return _new_system_tls_context()


@cache
def _unverified_tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
