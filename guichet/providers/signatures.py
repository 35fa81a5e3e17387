"""Notifications signed with a shared secret and a timestamp: `t=<unix>,v1=<hex>[,v1=<hex>]` (Wave, Sonatel, Stripe)."""

import hashlib
import hmac
from typing import Final

from guichet.clock import SECOND, Instant

#: Seconds between the signature's time and ours.
TOLERANCE: Final = 300


def verify_signature(secret: str, separator: bytes, header: str, body: bytes, now: Instant) -> bool:
    """Whether any v1 of `header` is the HMAC-SHA256 of `{t}{separator}{body}`, made at most five minutes from now."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    moment = next((value for name, _, value in parts if name == "t"), "")
    if not (moment.isascii() and moment.isdigit() and abs(now // SECOND - int(moment)) <= TOLERANCE):
        return False
    expected = hmac_sha256_hex(secret, moment.encode() + separator + body)
    return any(constant_time_equal(expected, value) for name, _, value in parts if name == "v1")


def hmac_sha256_hex(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def constant_time_equal(expected: str, given: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(expected.encode(), given.encode())
