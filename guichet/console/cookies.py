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
#: What an act just did, for the page that it leads to; browsers give it up when that page does not come.
_DONE: Final = "guichet-done"
_DONE_LASTS: Final = 60


class Cookies(HostCookies, frozen=True):
    def session(self, request: Request) -> str | None:
        return self.read(request, _SESSION)

    def device(self, request: Request) -> str | None:
        return self.read(request, _DEVICE)

    def passkey(self, request: Request) -> str | None:
        """What a challenge for a passkey was bound to."""
        return self.read(request, _PASSKEY)

    def set_session(self, response: Response, secret: str) -> None:
        """Until the browser is closed; the session's row ends sooner."""
        self.set(response, _SESSION, secret, None)

    def set_device(self, response: Response, device: str) -> None:
        self.set(response, _DEVICE, device, MAX_AGE // SECOND)

    def set_passkey(self, response: Response, secret: str) -> None:
        self.set(response, _PASSKEY, secret, CHALLENGE_LASTS // SECOND)

    def done(self, request: Request) -> str | None:
        return self.read(request, _DONE)

    def set_done(self, response: Response, done: str) -> None:
        self.set(response, _DONE, done, _DONE_LASTS)

    def forget_done(self, response: Response) -> None:
        self._forget(response, _DONE)

    def forget_session(self, response: Response) -> None:
        self._forget(response, _SESSION)

    def _forget(self, response: Response, name: str) -> None:
        response.delete_cookie(self.full_name(name), "/", secure=self.secure, httponly=True, samesite="lax")
