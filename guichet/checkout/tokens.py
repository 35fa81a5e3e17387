"""The one-time token of a payment form, and the signed cookie by which a browser finds the payment that it began.

Customers have no session. The token proves that a form is ours and belongs to this link, and makes it
usable once. It is `<nonce>.<issued_at>.<signature>`. The nonce becomes the payment's `checkout_token`, which is unique
in the database, so a form that is sent twice, reloaded or replayed finds the payment that it created.

The cookie is of the same form, over the `checkout_token` of the last payment; it names nobody.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from guichet import clock
from guichet.domain.merchants import random_text
from guichet.domain.records import Record
from guichet.pages.cookies import Cookie, HostCookies

#: 22 characters of `[A-Za-z0-9]`: 131 bits.
NONCE_LENGTH: Final = 22
#: A form that was open for longer than this is shown again with a new token instead of being accepted.
MAX_AGE: Final = 12 * clock.HOUR

_SHAPE: Final = re.compile(r"([A-Za-z0-9]{22})\.([0-9a-f]{1,16})\.([A-Za-z0-9_-]{22})")
_PURPOSE: Final = b"guichet hosted form v1"
#: How long a customer who scans the same code again is led back to the payment.
COOKIE_LASTS: Final = 20 * clock.MINUTE
_COOKIE_PURPOSE: Final = b"guichet hosted payment v1"
_COOKIE: Final = Cookie("guichet-payment", COOKIE_LASTS // clock.SECOND)


class FormToken(Record, frozen=True):
    """`fresh` is False if the signature is wrong, the token is for another link, or it is too old."""

    nonce: str
    fresh: bool


class FormTokens:
    """Issues and verifies tokens. `keys` are the service's secret keys, newest first."""

    def __init__(
        self, keys: Sequence[str], source: clock.Clock, purpose: bytes = _PURPOSE, max_age: int = MAX_AGE
    ) -> None:
        self._keys = [hmac.digest(key.encode(), purpose, hashlib.sha256) for key in keys]
        self._clock = source
        self._max_age = max_age

    def issue(self, subject: str, nonce: str = "") -> str:
        """A token for one link, by default one that is new, for a form."""
        nonce = nonce or random_text(NONCE_LENGTH)
        issued_at = f"{self._clock.now():x}"
        return f"{nonce}.{issued_at}.{_sign(self._keys[0], subject, nonce, issued_at)}"

    def read(self, subject: str, text: str) -> FormToken | None:
        """The token in `text`; None if it does not have the form of one."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            return None
        nonce, issued_at, signature = match.groups()
        valid = any(hmac.compare_digest(_sign(key, subject, nonce, issued_at), signature) for key in self._keys)
        age = self._clock.now() - int(issued_at, 16)
        return FormToken(nonce, fresh=valid and age <= self._max_age)


class PaymentCookie:
    """The cookie of a browser that began a payment through a link."""

    def __init__(self, keys: Sequence[str], source: clock.Clock, *, secure: bool) -> None:
        self._tokens = FormTokens(keys, source, _COOKIE_PURPOSE, COOKIE_LASTS)
        self._cookies = HostCookies(secure)

    def set(self, response: Response, link_token: str, checkout_token: str) -> None:
        value = self._tokens.issue(link_token, checkout_token)
        self._cookies.set(response, _COOKIE, value)

    def read(self, request: Request, link_token: str) -> str | None:
        """The `checkout_token` of the payment that this browser began last, if that was through this link."""
        token = self._tokens.read(link_token, self._cookies.read(request, _COOKIE) or "")
        return token.nonce if token is not None and token.fresh else None


def _sign(key: bytes, subject: str, nonce: str, issued_at: str) -> str:
    digest = hmac.digest(key, f"{subject}.{nonce}.{issued_at}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()
