"""Device cookies: a browser from which somebody signed in before is known, so that strangers who guess passwords use up
their own attempts and never lock the person out (OWASP, "Slow down online guessing attacks with device cookies").
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from guichet.clock import DAY, Clock
from guichet.domain.accounts import UserId, new_secret

#: How long a browser is remembered.
MAX_AGE: Final = 180 * DAY
_PURPOSE: Final = b"guichet device cookie v1"
_SHAPE: Final = re.compile(r"([A-Za-z0-9_-]{43})\.([0-9a-f]{1,16})\.([A-Za-z0-9_-]{43})")


class Devices:
    """Issues and reads device cookies, `<nonce>.<issued at>.<signature>`. `keys`: the service's secret keys, newest
    first."""

    def __init__(self, keys: Sequence[str], clock: Clock) -> None:
        self._keys = [hmac.digest(key.encode(), _PURPOSE, hashlib.sha256) for key in keys]
        self._clock = clock

    def issue(self, user_id: UserId) -> str:
        nonce, issued_at = new_secret(), f"{self._clock.now():x}"
        return f"{nonce}.{issued_at}.{_sign(self._keys[0], user_id, nonce, issued_at)}"

    def known(self, user_id: UserId, cookie: str | None) -> str | None:
        """What names the browser if this user signed in from it before; None if not."""
        match = _SHAPE.fullmatch(cookie or "")
        if match is None:
            return None
        nonce, issued_at, signature = match.groups()
        ours = any(hmac.compare_digest(_sign(key, user_id, nonce, issued_at), signature) for key in self._keys)
        return nonce if ours and self._clock.now() - int(issued_at, 16) <= MAX_AGE else None


def _sign(key: bytes, user_id: UserId, nonce: str, issued_at: str) -> str:
    digest = hmac.digest(key, f"{user_id}.{nonce}.{issued_at}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
