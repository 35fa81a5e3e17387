"""How pages name and set their cookies. Over TLS the names begin with `__Host-`: no other host, and no page without
TLS, can set them. On http://localhost, in development, browsers refuse that, and the names are plain."""

from starlette.requests import Request
from starlette.responses import Response

from guichet.domain.records import Record


class HostCookies(Record, frozen=True):
    """`secure`: the service's public address is https."""

    secure: bool

    def read(self, request: Request, name: str) -> str | None:
        return request.cookies.get(self.full_name(name))

    def set(self, response: Response, name: str, value: str, seconds: int | None) -> None:
        """`seconds`: None until the browser is closed."""
        # Lax: a link in a mail, or one that a telephone scanned, opens with the cookie. Forms carry a token besides.
        response.set_cookie(
            self.full_name(name), value, seconds, path="/", secure=self.secure, httponly=True, samesite="lax"
        )

    def full_name(self, name: str) -> str:
        return f"__Host-{name}" if self.secure else name
