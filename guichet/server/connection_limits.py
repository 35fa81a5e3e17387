"""Every limit of the ports: of a request, of a connection, of all connections (docs/decisions.md, "Port limits").

An attacker may fill each of them: together they bound the memory of a process. Bodies of the API have a smaller limit
of their own (docs/contract.md, "Limits"; D6), which is answered first.
"""

import re
import resource
from typing import Final

from guichet.domain.records import Record
from guichet.server.request_context import ClientAddresses
from guichet.settings import Settings

#: Bytes of a request's head. nginx passes on heads of 32 KiB at most, browsers send one or two.
MAX_HEAD: Final = 16 * 1024
#: Bytes of the address in the request line.
MAX_TARGET: Final = 8 * 1024
MAX_HEADERS: Final = 100
#: Bytes of a body, with the framing of its chunks; what is received after the response counts too.
MAX_BODY: Final = 1024 * 1024
#: The addresses that take more: a document for a merchant's file and a provider's statement (`console/admin/`), of
#: 5 MiB each.
UPLOADS: Final = re.compile(rb"/admin/(?:merchants/[0-9]{1,19}/documents|reconciliation/statement)(?:\?.*)?")
MAX_UPLOAD: Final = 5 * 1024 * 1024 + 128 * 1024
#: Requests that a client may send before the first of them is answered.
MAX_PIPELINED: Final = 16
#: Bytes of a response that may wait in memory before the application waits for the client to read.
WRITE_BUFFER: Final = 16 * 1024
#: File descriptors that a process asks the system for, if it may have so many.
_DESCRIPTORS: Final = 65_536


#: No proxy is trusted.
_EVERYBODY: Final = ClientAddresses((), 64)


class PhaseLimit(Record, frozen=True):
    """How long a connection may be in a phase, in seconds, and how many may be in it at once."""

    seconds: float
    most: int


#: From the first byte of a connection or of a request to the end of the head.
HEAD: Final = PhaseLimit(10, most=512)
#: The same with the TLS handshake, during which a connection costs 40 KB.
TLS_HEAD: Final = PhaseLimit(10, most=128)
#: From the end of the head to the end of the body: 16 KiB on a line of 3 kbit/s.
BODY: Final = PhaseLimit(60, most=256)
#: The same for UPLOADS: 5 MiB on a line of 140 kbit/s.
UPLOAD: Final = PhaseLimit(300, most=16)
#: Between two requests. The proxies of docs/operations close earlier, so they never lose a request to this.
IDLE: Final = PhaseLimit(5, most=1_000_000)
#: While the client does not read a response: it must read 64 KiB in this time.
STALLED: Final = PhaseLimit(60, most=128)
#: After a refusal, until the client has read it and closes. Closing earlier may lose the refusal on its way.
REFUSED: Final = PhaseLimit(2, most=64)


class ConnectionLimits(Record, frozen=True):
    """The limits of a port. `total` and `per_address` are connections."""

    total: int = 1024
    per_address: int = 256
    addresses: ClientAddresses = _EVERYBODY
    head: PhaseLimit = HEAD
    body: PhaseLimit = BODY
    upload: PhaseLimit = UPLOAD
    idle: PhaseLimit = IDLE
    stalled: PhaseLimit = STALLED
    refused: PhaseLimit = REFUSED

    @classmethod
    def of(cls, settings: Settings, *, tls: bool = False) -> "ConnectionLimits":
        """At most three quarters of the descriptors: the database, providers and webhooks need some."""
        total = min(settings.max_connections, raise_descriptor_limit() * 3 // 4)
        addresses = ClientAddresses.of(settings)
        return cls(total, settings.connections_per_address, addresses, head=TLS_HEAD if tls else HEAD)


def raise_descriptor_limit() -> int:
    """Raises this process's limit of file descriptors to what the system allows; returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return _DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
