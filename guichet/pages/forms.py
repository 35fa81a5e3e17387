"""Reads a posted form, within limits, and says whether a page of another site sent it."""

from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from guichet.domain.errors import InvalidRequest

_MAX_BODY: Final = 16 * 1024
#: A page of a list with a box for each row, and what goes with them.
_MAX_FIELDS: Final = 40
#: The values of `Sec-Fetch-Site` with which a form is accepted: sent by one of our own pages, or by no page.
_OWN: Final = ("same-origin", "none")


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a posted form, the first of each name. Raises InvalidRequest if it cannot be one of our forms."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise InvalidRequest
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise InvalidRequest from None
    return dict(reversed(pairs))


def is_from_elsewhere(request: Request, public_url: str) -> bool:
    """Whether a page of another site sent this form. If an old browser does not say, only the form's token is
    checked."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in _OWN
    origin = request.headers.get("origin")
    if origin in (None, "null"):
        return False
    own = (public_url, f"{request.url.scheme}://{request.headers.get('host', '')}")
    return not any(address == origin or address.startswith(f"{origin}/") for address in own)
