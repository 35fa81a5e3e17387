"""`X-Service-Signature`: `t=<unix seconds>,v1=<hex HMAC SHA-256>` (docs/contract.md, "Webhooks").

The signed text is `t`, a dot, the raw body; the key is the environment's whole `whsec_…` string as UTF-8 (D33).
"""

import hmac
import re
from functools import lru_cache
from typing import Final

from guichet.domain.events import SIGNATURE_AGE

_SECONDS: Final = re.compile(r"[0-9]{1,15}")


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The header's value for `body` sent at `timestamp` (Unix seconds)."""
    return f"t={timestamp},v1={_digest(secret, str(timestamp), body)}"


def verify(secret: str, header: str, body: bytes, now: int, tolerance: int = SIGNATURE_AGE) -> bool:
    """What a receiver does: the signature is ours and at most `tolerance` seconds old at `now` (Unix seconds).

    Parts other than `t` and `v1` are ignored, so that a second scheme can be added; a repeated part is refused.
    """
    pairs = [part.strip().partition("=") for part in header.split(",")]
    parts = {name: value for name, _, value in pairs}
    moment, given = parts.get("t", ""), parts.get("v1", "")
    if len(parts) != len(pairs) or not _SECONDS.fullmatch(moment) or now - int(moment) > tolerance:
        return False
    return hmac.compare_digest(_digest(secret, moment, body).encode(), given.encode())


def _digest(secret: str, moment: str, body: bytes) -> str:
    signature = _keyed(secret).copy()
    signature.update(moment.encode() + b"." + body)
    return signature.hexdigest()


@lru_cache(maxsize=4096)
def _keyed(secret: str) -> hmac.HMAC:
    """Looking up the hash and taking in the key is most of a signature: 5.1 µs for a webhook, 2.2 without."""
    return hmac.new(secret.encode(), digestmod="sha256")
