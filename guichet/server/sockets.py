"""The socket of a server: it has the port from the beginning, and listens when somebody can answer (D114, D119)."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from guichet.server.errors import StartupError

_BACKLOG: Final = 2048
#: Wildcard addresses, and for each an address that a browser on this machine can open.
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared, not bound


@contextmanager
def bind_socket(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that has the port but refuses connections until `start_listening`: a proxy must not send requests to a
    process whose start can still fail. Port 0 takes any free port. Raises StartupError if there is none.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise _cannot_listen(error, host, port) from None
    with listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address[:2])
        except OSError as error:
            raise _cannot_listen(error, host, port) from None
        yield listener


@contextmanager
def inherited_socket(descriptor: int) -> Iterator[socket.socket]:
    """The socket of the parent process, which has the port. The first process that is ready listens."""
    with socket.socket(fileno=descriptor) as listener:
        listener.setblocking(False)
        yield listener


def start_listening(listener: socket.socket) -> None:
    """Accepts connections from now on; harmless when it does already. Raises StartupError if another process has been
    faster on the same port."""
    try:
        listener.listen(_BACKLOG)
    except OSError as error:
        raise _cannot_listen(error, *listener.getsockname()[:2]) from None


def is_listening(listener: socket.socket) -> bool:
    return bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def stop_listening(listener: socket.socket) -> None:
    """Refuses connections until `start_listening`, in every process that has this socket, and resets those that nobody
    accepted. The socket keeps its port. It must listen now: one that does not would close what it accepts later.
    """
    address = listener.getsockname()[:2]
    with suppress(OSError):  # Linux can do this, other systems go on listening.
        listener.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):  # For a port that Linux chose and gives up now. Any other is still bound: an error.
        listener.bind(address)


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """The URL under which a browser on this machine finds the server."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{_WILDCARDS.get(host) or (f'[{host}]' if ':' in host else host)}:{port}"


def _cannot_listen(error: OSError, host: str, port: int) -> StartupError:
    if error.errno == errno.EADDRINUSE:
        return StartupError(f"Port {port} is already in use: stop what listens there, or choose another --port.")
    return StartupError(f"Cannot listen on {host}, port {port}: {error.strerror}.")
