"""The console's cookies, named as `pages/cookies.py` says."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from guichet.accounts.passkeys import CHALLENGE_LASTS
from guichet.accounts.sessions import MAX_AGE
from guichet.clock import SECOND
from guichet.pages.cookies import HostCookies

_SESSION: Final = "guichet-session"
_DEVICE: Final = "guichet-device"
_PASSKEY: Final = "guichet-passkey"


class Cookies(HostCookies, frozen=True):
    def session(self, request: Request) -> str | None:
        return self.read(request, _SESSION)

    def device(self, request: Request) -> str | None:
        return self.read(request, _DEVICE)

    def passkey(self, request: Request) -> str | None:
        """What a question to a passkey was bound to."""
        return self.read(request, _PASSKEY)

    def set_session(self, response: Response, secret: str) -> None:
        """Until the browser is closed; the session's row ends sooner."""
        self.set(response, _SESSION, secret, None)

    def set_device(self, response: Response, device: str) -> None:
        self.set(response, _DEVICE, device, MAX_AGE // SECOND)

    def set_passkey(self, response: Response, secret: str) -> None:
        self.set(response, _PASSKEY, secret, CHALLENGE_LASTS // SECOND)

    def forget_session(self, response: Response) -> None:
        response.delete_cookie(self.full_name(_SESSION), "/", secure=self.secure, httponly=True, samesite="lax")
