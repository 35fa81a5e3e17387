"""Tokens that we sign and do not store: `<nonce>.<issued at>.<signature>`.

One says only that we issued it for a subject, and when. The nonce names it: attempts are counted by it, and a token
that counts once is stored by it when it is used.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from guichet.clock import Clock
from guichet.domain.accounts import new_secret

_SHAPE: Final = re.compile(r"([A-Za-z0-9_-]{43})\.([0-9a-f]{1,16})\.([A-Za-z0-9_-]{43})")


class SignedTokens:
    """`keys`: the service's secret keys, newest first. `purpose`: a token of one purpose is none of another. `lasts`:
    in microseconds."""

    def __init__(self, keys: Sequence[str], purpose: str, lasts: int, clock: Clock) -> None:
        self._keys = [hmac.digest(key.encode(), purpose.encode(), hashlib.sha256) for key in keys]
        self._lasts = lasts
        self._clock = clock

    def issue(self, subject: str, nonce: str | None = None) -> str:
        """`nonce`: of a token that this one replaces."""
        nonce, issued_at = nonce or new_secret(), f"{self._clock.now():x}"
        return f"{nonce}.{issued_at}.{_sign(self._keys[0], subject, nonce, issued_at)}"

    def nonce_of(self, subject: str, token: str | None) -> str | None:
        """None unless we issued the token for this subject, and it has not ended."""
        match = _SHAPE.fullmatch(token or "")
        if match is None:
            return None
        nonce, issued_at, signature = match.groups()
        valid = any(hmac.compare_digest(_sign(key, subject, nonce, issued_at), signature) for key in self._keys)
        return nonce if valid and self._clock.now() - int(issued_at, 16) < self._lasts else None


def _sign(key: bytes, subject: str, nonce: str, issued_at: str) -> str:
    digest = hmac.digest(key, f"{subject}.{nonce}.{issued_at}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
