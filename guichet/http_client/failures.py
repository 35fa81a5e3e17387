"""What the failure of a request means: whether it was sent, why there is no response, and whether it was a fault on our
side (descriptors, memory, ports, a route, a name server), which the names of hosts tell."""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from typing import Final

import pycares
from aiohttp import ClientConnectorCertificateError, ClientConnectorDNSError, ClientConnectorError
from aiohttp.abc import AbstractResolver
from httptools import HttpParserError

from guichet.domain.messages import Message, verbatim
from guichet.http_client.address_guard import Address, AddressRefused, is_loopback_host
from guichet.http_client.connector import Connection
from guichet.http_client.outcomes import CallFailure, Forbidden, HttpClientError, Lost, NotSent

#: What the system says when this machine lacks something. An unreachable host is the peer's affair; an unreachable
#: network means that we have no route at all.
_OURS: Final = frozenset(
    (
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOBUFS,
        errno.EADDRNOTAVAIL,
        errno.ENETDOWN,
        errno.ENETUNREACH,
    )
)
#: What c-ares says when our name server cannot be asked at all.
_NO_NAME_SERVER: Final = frozenset(
    (pycares.errno.ARES_ECONNREFUSED, pycares.errno.ARES_ENOMEM, pycares.errno.ARES_EFILE)
)
#: What may be the fault of our name server or of the peer's.
_AMBIGUOUS: Final = frozenset((pycares.errno.ARES_ESERVFAIL, pycares.errno.ARES_ETIMEOUT, pycares.errno.ARES_EREFUSED))
#: Seconds that the lookup of a name may take, and that the result of a control lookup is remembered.
LOOKUP_LIMIT: Final = 2.0
_CONTROL_VALID: Final = 5.0


def failure(host: str, connection: Connection | None, error: Exception, *, stopped: bool) -> HttpClientError:
    """What is known after `error`: Lost once there was a connection."""
    timed_out = isinstance(error, TimeoutError) and not stopped
    if connection is not None:
        return Lost(_lost(host, error), connection.status, timed_out=timed_out)
    if isinstance(error, ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return Forbidden(CallFailure.ADDRESS_REFUSED(host=host))
    return NotSent(_not_connected(host, error), timed_out=timed_out, stopped=stopped)


def _not_connected(host: str, error: Exception) -> Message:
    """Before there is a connection, aiohttp's messages name the host only."""
    if isinstance(error, TimeoutError):
        return CallFailure.NO_CONNECTION(host=host)
    if isinstance(error, ClientConnectorCertificateError):
        why = f"{type(error.certificate_error).__name__}: {error.certificate_error.args}"
    elif isinstance(error, ClientConnectorError):
        why = str(error.strerror)
    else:
        return verbatim(f"{host}: {error or type(error).__name__}")
    security = "default" if error.ssl is True else error.ssl
    return CallFailure.CANNOT_CONNECT(host=host, address=f"{error.host}:{error.port} ssl:{security}", error=why)


def _lost(host: str, error: Exception) -> Message:
    if isinstance(error, TimeoutError):
        return CallFailure.NO_RESPONSE(host=host)
    return verbatim(f"{host}: {error if isinstance(error, HttpParserError) else type(error).__name__}")


async def is_reachable(host: str, permits: Callable[[Address], bool], resolver: AbstractResolver) -> bool:
    """Whether one of the addresses of `host` may be connected to. Raises nothing."""
    return any(permits(address) for address in await _addresses(host, resolver))


async def _addresses(host: str, resolver: AbstractResolver) -> list[Address]:
    """Empty when the name does not exist, or was not found in time."""
    try:
        return [ip_address(host)]
    except ValueError:
        pass
    try:
        async with asyncio.timeout(LOOKUP_LIMIT):
            return [ip_address(answer["host"]) for answer in await resolver.resolve(host, 0, socket.AF_UNSPEC)]
    except (OSError, ValueError):  # TimeoutError is an OSError.
        return []


class NameControl:
    """Looks up a name that was found before, to tell our name server's fault from the peer's."""

    def __init__(self, reached: Sequence[str]) -> None:
        """`reached`: hosts that this process has connected to, kept up to date by its owner."""
        self._reached = reached
        self._answers: dict[str, tuple[float, bool]] = {}

    async def works(self, resolver: AbstractResolver, but: str) -> bool | None:
        """Whether another name than `but` is found now; None when this process has not reached any other yet."""
        names = (name for name in self._reached if not is_loopback_host(name) and not _is_address(name))
        host = next((name for name in names if name != but), None)
        if host is None:
            return None
        now = asyncio.get_running_loop().time()
        asked_at, exists = self._answers.get(host, (-_CONTROL_VALID, False))
        if now - asked_at < _CONTROL_VALID:
            return exists
        try:
            async with asyncio.timeout(LOOKUP_LIMIT):
                exists = bool(await resolver.resolve(host))
        except OSError:  # TimeoutError is one
            exists = False
        self._answers = {host: (now, exists)}
        return exists


async def is_own_fault(error: NotSent, host: str, control: NameControl, resolver: AbstractResolver) -> bool:
    """Whether the request to `host` failed through our fault. A name that does not exist is the peer's fault.

    Where our name server or the peer's may be broken, it is ours unless another name is found. After a time limit it
    is ours only if another name is not found, because most time limits are those of servers that do not answer.
    """
    if error.stopped:
        return True
    cause = error.__cause__
    if any(isinstance(link, OSError) and link.errno in _OURS for link in _chain(cause)):
        return True
    if isinstance(cause, ClientConnectorDNSError):
        codes = {link.args[0] for link in _chain(cause) if type(link).__name__ == "DNSError" and link.args}
        if codes & _NO_NAME_SERVER:
            return True
        return bool(codes & _AMBIGUOUS) and await control.works(resolver, host) is not True
    if error.timed_out and not _is_address(host):
        return await control.works(resolver, host) is False
    return False


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.os_error if isinstance(error, ClientConnectorError) else error.__cause__


def _is_address(host: str) -> bool:
    return ":" in host or host[-1:].isdigit()
