"""What the handlers of all endpoints share: the call, its body, a successful response, pages of lists."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from guichet.context import AppContext
from guichet.domain.errors import NotFound
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Caller, Environment
from guichet.domain.records import Record
from guichet.merchants.api_keys import Authenticator
from guichet.schemas.json_codec import MAX_BODY, parse_object, success
from guichet.schemas.page import MetaObject, page_meta
from guichet.schemas.validation import invalid_request, validate
from guichet.server.json_response import JsonResponse
from guichet.server.request_context import CALLER

Model = TypeVar("Model", bound=BaseModel)

DEFAULT_PER_PAGE: Final = 25
MAX_PER_PAGE: Final = 100
#: No list is that long, and databases refuse much larger numbers.
_MAX_PAGE: Final = 10**12


class Call(Record, frozen=True):
    """An authenticated request to an endpoint."""

    ctx: AppContext
    request: Request
    caller: Caller

    @property
    def merchant_id(self) -> MerchantId:
        return self.caller.merchant.id

    @property
    def env(self) -> Environment:
        return self.caller.env

    def path_text(self, name: str) -> str:
        """A segment of the path, percent-decoded (D10). Raises NotFound if it is not UTF-8 or holds a NUL."""
        try:
            text = unquote_to_bytes(self.request.path_params[name]).decode("utf-8")
        except UnicodeDecodeError:
            raise NotFound from None
        if "\0" in text:
            raise NotFound
        return text

    async def body(self) -> bytes:
        """The body as it was sent. Reading stops soon after the largest size allowed (D6)."""
        return await read_body(self.request)

    async def parse_body(self, model: type[Model]) -> Model:
        """Raises InvalidRequest with every fault of the body."""
        return validate(model, parse_object(await self.body()), self.validation_context)

    @property
    def validation_context(self) -> dict[str, Any]:
        return {"development": self.ctx.settings.development}


@dataclass(frozen=True)
class Endpoint:
    """One path of the API, an ASGI application: authenticates the caller, then calls the handler of the method."""

    ctx: AppContext
    authenticator: Authenticator
    by_method: Mapping[str, Callable[[Call], Awaitable[Response]]]

    def route(self, path: str) -> Route:
        """One route for all methods of a path, so that a 405 names them all; and without the HEAD that Starlette adds
        to GET, which the contract does not have."""
        route = Route(path, self)
        route.methods = set(self.by_method)
        return route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        scope[CALLER] = caller = await self.authenticator.caller(request.headers.get("authorization"))
        response = await self.by_method[request.method](Call(self.ctx, request, caller))
        await response(scope, receive, send)


async def read_body(request: Request) -> bytes:
    """At least the beginning of the body, and all of it if it has MAX_BODY bytes or fewer."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            break
    return body


def success_response(data: object, status: int = 200, meta: MetaObject | None = None) -> Response:
    return JsonResponse(success(data, meta), status)


@dataclass(frozen=True, slots=True)
class Page:
    """The requested page of a list; `number` counts from 1."""

    number: int
    size: int

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.size

    def meta(self, total: int) -> MetaObject:
        return page_meta(self.number, self.size, total)


def requested_page(request: Request, faults: dict[str, list[str]] | None = None) -> Page:
    """The page that `page` and `per_page` ask for (docs/contract.md, "Limits").

    Raises InvalidRequest if one of them is not an integer within its bounds, with the other `faults` of the query.
    """
    details = dict(faults or {})
    size = _integer(request, "per_page", default=DEFAULT_PER_PAGE, maximum=MAX_PER_PAGE, details=details)
    number = _integer(request, "page", default=1, maximum=_MAX_PAGE, details=details)
    if details:
        raise invalid_request(details)
    return Page(number, size)


def _integer(request: Request, name: str, *, default: int, maximum: int, details: dict[str, list[str]]) -> int:
    """A query parameter from 1 to `maximum`; a fault is added to `details`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 13 and 1 <= int(text) <= maximum:
        return int(text)
    upper = f" et {maximum}" if maximum == MAX_PER_PAGE else ""
    details[name] = [f"Un nombre entier {'compris entre' if upper else 'd’au moins'} 1{upper} est attendu."]
    return default
