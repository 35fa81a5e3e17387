"""What is known after a request.

EgressError
├── NotSent        provably no byte of the request reached the peer: another route may try
│   └── Forbidden  refused on our side: the URL, or every address behind it (D38)
└── Lost           anything else: the request may have been read, acted upon and answered
"""

from collections.abc import Sequence
from dataclasses import dataclass


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
    """What the peer said. `body` is raw (never decompressed), `complete` unless it was cut."""

    status: int
    raw_headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    complete: bool = True

    @property
    def headers(self) -> dict[str, str]:
        """By name in lower case; of a repeated one the last."""
        return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self.raw_headers}
