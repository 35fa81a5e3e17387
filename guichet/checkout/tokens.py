"""The one-time token of a payment form.

Customers have no session and no cookie. The token proves that a form is ours and belongs to this link, and makes it
usable once. It is `<nonce>.<issued_at>.<signature>`. The nonce becomes the payment's `checkout_token`, which is unique
in the database, so a form that is sent twice, reloaded or replayed finds the payment that it created.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from guichet import clock
from guichet.domain.merchants import random_text
from guichet.domain.records import Record

#: 22 characters of `[A-Za-z0-9]`: 131 bits.
NONCE_LENGTH: Final = 22
#: A form that was open for longer than this is shown again with a new token instead of being accepted.
MAX_AGE: Final = 12 * clock.HOUR

_SHAPE: Final = re.compile(r"([A-Za-z0-9]{22})\.([0-9a-f]{1,16})\.([A-Za-z0-9_-]{22})")
_PURPOSE: Final = b"guichet hosted form v1"


class FormToken(Record, frozen=True):
    """`fresh` is False if the signature is wrong, the token is for another link, or it is too old."""

    nonce: str
    fresh: bool


class FormTokens:
    """Issues and verifies tokens. `keys` are the service's secret keys, newest first."""

    def __init__(self, keys: Sequence[str], source: clock.Clock) -> None:
        self._keys = [hmac.digest(key.encode(), _PURPOSE, hashlib.sha256) for key in keys]
        self._clock = source

    def issue(self, subject: str) -> str:
        """A new token for the form of one link."""
        nonce = random_text(NONCE_LENGTH)
        issued_at = f"{self._clock.now():x}"
        return f"{nonce}.{issued_at}.{_sign(self._keys[0], subject, nonce, issued_at)}"

    def read(self, subject: str, text: str) -> FormToken | None:
        """The token in `text`; None if it does not have the form of one."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            return None
        nonce, issued_at, signature = match.groups()
        ours = any(hmac.compare_digest(_sign(key, subject, nonce, issued_at), signature) for key in self._keys)
        age = self._clock.now() - int(issued_at, 16)
        return FormToken(nonce, fresh=ours and age <= MAX_AGE)


def _sign(key: bytes, subject: str, nonce: str, issued_at: str) -> str:
    digest = hmac.digest(key, f"{subject}.{nonce}.{issued_at}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()
