"""Signatures with HMAC and a timestamp (Wave, Sonatel, Stripe, FedaPay)."""

import hashlib
import hmac
from typing import Final

from guichet.clock import SECOND, Instant
from guichet_simulator.models import QueuedCallback

#: A forged callback is either signed with another secret, or properly signed this long ago, in seconds.
_STALE: Final = 3600
_SIGNATURE_TOLERANCE: Final = 300


def hmac_hex(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def hmac_signature_header(
    body: bytes, queued: QueuedCallback, *, secret: str, separator: bytes, now: Instant, scheme: str = "v1"
) -> str:
    """`t=<unix seconds>,v1=<hex>` over `{t}{separator}{body}`, with `scheme` for `v1`. A forged callback has a wrong
    secret or an old time."""
    seconds = now // SECOND
    if queued.forged:
        if queued.id % 2:
            secret = f"not-{secret}"
        else:
            seconds -= _STALE
    return f"t={seconds},{scheme}={hmac_hex(secret, str(seconds).encode() + separator + body)}"


def is_signed_now(header: str, body: bytes, *, secret: str, now: Instant) -> bool:
    """Whether `header` is `t=<unix seconds>,v1=<hex>` over `{t}{body}`, and `t` is at most five minutes from now."""
    seconds, _, digest = header.removeprefix("t=").partition(",v1=")
    recent = seconds.isdecimal() and abs(now // SECOND - int(seconds)) <= _SIGNATURE_TOLERANCE
    return recent and hmac.compare_digest(hmac_hex(secret, seconds.encode() + body), digest)
