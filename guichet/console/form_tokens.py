"""The token of a session's forms: who does not know the cookie cannot make it.

It is other bytes in each page. Pages are compressed, and their length tells somebody who can put text of their own
beside a token how much of it they guessed (BREACH): what they guess must not be there the next time.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final

_PURPOSE: Final = b"guichet console form v1"
_LENGTH: Final = 24


def issue(session_secret: str) -> str:
    """Random bytes, and the session's token under them: 64 characters."""
    pad = secrets.token_bytes(_LENGTH)
    return base64.urlsafe_b64encode(pad + _xor(pad, _token(session_secret))).decode()


def is_of(session_secret: str, token: str) -> bool:
    """Whether `token` was issued to this session. In constant time."""
    try:
        masked = base64.urlsafe_b64decode(token.encode("ascii"))
    except (ValueError, binascii.Error):
        return False
    if len(masked) != 2 * _LENGTH:
        return False
    return hmac.compare_digest(_xor(masked[:_LENGTH], masked[_LENGTH:]), _token(session_secret))


def _token(session_secret: str) -> bytes:
    return hmac.digest(session_secret.encode(), _PURPOSE, hashlib.sha256)[:_LENGTH]


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one) ^ int.from_bytes(other)).to_bytes(_LENGTH)
