"""How pages name and set their cookies. Over TLS the names begin with `__Host-`: no other host, and no page without
TLS, can set them. On http://localhost, in development, browsers refuse that, and the names are plain."""

from starlette.requests import Request
from starlette.responses import Response

from guichet.domain.records import Record


class Cookie(Record, frozen=True):
    """`seconds`: how long it is kept; None until the browser is closed."""

    name: str
    seconds: int | None


class HostCookies(Record, frozen=True):
    """`secure`: the service's public address is https."""

    secure: bool

    def read(self, request: Request, cookie: Cookie) -> str | None:
        return request.cookies.get(self.full_name(cookie))

    def set(self, response: Response, cookie: Cookie, value: str) -> None:
        # Lax: a link in a mail, or one that a telephone scanned, opens with the cookie. Forms carry a token besides.
        response.set_cookie(
            self.full_name(cookie), value, cookie.seconds, secure=self.secure, httponly=True, samesite="lax"
        )

    def forget(self, response: Response, cookie: Cookie) -> None:
        response.delete_cookie(self.full_name(cookie), secure=self.secure, httponly=True, samesite="lax")

    def full_name(self, cookie: Cookie) -> str:
        return f"__Host-{cookie.name}" if self.secure else cookie.name
