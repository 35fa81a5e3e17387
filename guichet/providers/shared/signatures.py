"""Signatures with a shared secret and a timestamp: `t=<unix seconds>,v1=<hex>[,v1=<hex>]` (Wave, Sonatel, Stripe), with
`s` in place of `v1` at FedaPay."""

import hashlib
import hmac
import re
from typing import Final

from guichet.clock import SECOND, Instant

#: Seconds that the signature's time may differ from ours.
TOLERANCE: Final = 300
#: As many digits as any real time has, and far fewer than Python refuses to read.
_UNIX_SECONDS: Final = re.compile(r"[0-9]{1,15}")


def verify_signature(
    header: str, body: bytes, *, secret: str, separator: bytes, now: Instant, scheme: str = "v1"
) -> bool:
    """Whether a `v1`, or other `scheme`, of `header` is the HMAC-SHA256 of `{t}{separator}{body}` and `t` is near
    `now`."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    if not _UNIX_SECONDS.fullmatch(timestamp) or abs(now // SECOND - int(timestamp)) > TOLERANCE:
        return False
    expected = hmac_sha256_hex(secret, timestamp.encode() + separator + body)
    return any(constant_time_equal(expected, value) for name, _, value in parts if name == scheme)


def hmac_sha256_hex(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def constant_time_equal(expected: str, received: str) -> bool:
    """Takes the same time wherever the two differ, so that the time does not tell an attacker how near he is."""
    return hmac.compare_digest(expected.encode(), received.encode())
