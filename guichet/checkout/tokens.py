"""The one-time token of a payment form.

No customer has a session, so there is no cookie to protect; what a form needs is to be one of ours, for this link, and
to count once. The token is `<nonce>.<minted>.<signature>`: the nonce becomes the payment's `checkout_token` (unique in
the database), so the same form sent twice, reloaded or replayed, meets the payment it already made.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from guichet import clock
from guichet.domain.merchants import random_text

#: 22 characters of `[A-Za-z0-9]`: 131 bits.
NONCE_LENGTH: Final = 22
#: A page left open longer than this is shown once more before it pays.
MAX_AGE: Final = 12 * clock.HOUR

_SHAPE: Final = re.compile(r"([A-Za-z0-9]{22})\.([0-9a-f]{1,16})\.([A-Za-z0-9_-]{22})")
_PURPOSE: Final = b"guichet hosted form v1"


@dataclass(frozen=True, slots=True)
class FormToken:
    """`fresh` is False when the signature is not ours, is for another link, or is too old."""

    nonce: str
    fresh: bool


class FormTokens:
    """Mints and reads tokens. `keys` are the service's secret keys, newest first."""

    def __init__(self, keys: Sequence[str], source: clock.Clock) -> None:
        self._keys = [hmac.digest(key.encode(), _PURPOSE, hashlib.sha256) for key in keys]
        self._clock = source

    def mint(self, subject: str) -> str:
        """A new token for the form of one link."""
        nonce = random_text(NONCE_LENGTH)
        minted = f"{self._clock.now():x}"
        return f"{nonce}.{minted}.{_sign(self._keys[0], subject, nonce, minted)}"

    def read(self, subject: str, text: str) -> FormToken | None:
        """None when `text` is not even a token."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            return None
        nonce, minted, signature = match.groups()
        ours = any(hmac.compare_digest(_sign(key, subject, nonce, minted), signature) for key in self._keys)
        age = self._clock.now() - int(minted, 16)
        return FormToken(nonce, fresh=ours and age <= MAX_AGE)


def _sign(key: bytes, subject: str, nonce: str, minted: str) -> str:
    digest = hmac.digest(key, f"{subject}.{nonce}.{minted}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()
