"""What the handlers of all endpoints share: the call, its body, its `Idempotency-Key`, a successful response, pages of
lists."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from guichet.api.scopes import insufficient_scope
from guichet.clock import Instant, read_date
from guichet.context import AppContext
from guichet.db.engine import Reader
from guichet.db.lists.pages import ListedRow, PageBounds, key_of
from guichet.db.references import parse_reference
from guichet.domain.errors import AddressNotAllowed, NotFound, fault
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Caller, Environment
from guichet.domain.records import Record
from guichet.merchants.api_keys import Authenticator
from guichet.merchants.idempotency import IdempotencyKey
from guichet.schemas.envelope import (
    IgnoredParametersObject,
    MetaObject,
    RequestWarning,
    WalkMetaObject,
)
from guichet.schemas.validation import MAX_BODY, Body, invalid_request, parse_object, validate
from guichet.server.error_handler import JsonResponse
from guichet.server.request_context import CALLER, ClientAddresses, header

Model = TypeVar("Model", bound=Body)
Word = TypeVar("Word", bound=str)
Row = TypeVar("Row")

DEFAULT_PER_PAGE: Final = 25
MAX_PER_PAGE: Final = 100
#: Newest first, which is the default, or oldest first.
ORDERS: Final = ("desc", "asc")
#: No list is that long, and databases refuse much larger numbers.
_MAX_PAGE: Final = 10**12
#: Characters of an `Idempotency-Key`.
MAX_KEY: Final = 255
#: `metadata` may hold numbers of more digits than the usual context keeps.
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MALFORMED: Final = f"De 1 à {MAX_KEY} caractères ASCII imprimables sont attendus."


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

    @property
    def merchant_scope(self) -> tuple[MerchantId, Environment]:
        """What a list is of."""
        return self.merchant_id, self.env

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query; of one that is there more than once, the last."""
        return dict(self.request.query_params) if self.request.scope["query_string"] else {}

    def path_text(self, name: str) -> str:
        """A segment of the path, percent-decoded (D10). Raises NotFound if it is not UTF-8 or holds a NUL."""
        try:
            text = unquote_to_bytes(self.request.path_params[name]).decode("utf-8")
        except UnicodeDecodeError:
            raise NotFound from None
        if "\0" in text:
            raise NotFound
        return text

    async def find(
        self, by_reference: Callable[[Reader, MerchantId, Environment, str], Awaitable[Row | None]], text: str
    ) -> Row | None:
        """The merchant's row with this reference; None also for a text that is no reference."""
        reference = parse_reference(text)
        return None if reference is None else await by_reference(self.ctx.db, *self.merchant_scope, reference)

    def body(self) -> Awaitable[bytes]:
        """The body as it was sent. Reading stops soon after the largest size allowed (D6)."""
        return read_body(self.request)

    async def parse_body(self, model: type[Model]) -> Model:
        """Raises InvalidRequest with every fault of the body."""
        return validate(model, parse_object(await self.body()), self.validation_context)

    @property
    def validation_context(self) -> dict[str, Any]:
        return {"development": self.ctx.settings.development}


class MethodHandler(NamedTuple):
    """What answers a method of a path, and the names in the query that it reads."""

    handle: Callable[[Call], Awaitable[Response]]
    parameters: frozenset[str]


class Endpoint(Record, frozen=True):
    """One path of the API, an ASGI application: authenticates the caller, checks what its key may do and from where,
    then calls the handler of the method.

    `handlers`: by method; empty until `import_handlers` was asked for those of the path, by the first request.
    `scopes`: for each method the bits of which a key needs one (`api/scopes.py`).
    """

    ctx: AppContext
    authenticator: Authenticator
    path: str
    handlers: dict[str, MethodHandler]
    import_handlers: Callable[[str], Awaitable[Mapping[str, MethodHandler]]]
    scopes: Mapping[str, int]
    addresses: ClientAddresses

    def route(self, path: str) -> Route:
        """One route for all methods of a path, so that a 405 names them all; and without the HEAD that Starlette adds
        to GET, which the contract does not have."""
        route = Route(path, self)
        route.methods = set(self.scopes)
        return route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        scope[CALLER] = caller = await self.authenticator.caller(header(scope, b"authorization"))
        if caller.networks and not self.addresses.is_within(scope, caller.networks):
            raise AddressNotAllowed
        if not caller.scopes & (required := self.scopes[scope["method"]]):
            raise insufficient_scope(required)
        if not self.handlers:
            self.handlers.update(await self.import_handlers(self.path))
        handler = self.handlers[scope["method"]]
        response = await handler.handle(Call(self.ctx, request, caller))
        if scope["query_string"] and isinstance(response, SuccessResponse):
            # What means nothing to this endpoint, in its order.
            response = response.ignoring([name for name in request.query_params if name not in handler.parameters])
        await response(scope, receive, send)


async def read_body(request: Request) -> bytes:
    """At least the beginning of the body, and all of it if it has MAX_BODY bytes or fewer."""
    body, has_more = b"", True
    while has_more and len(body) <= MAX_BODY:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
    return body


def requested_key(call: Call, body: bytes) -> IdempotencyKey | None:
    """The `Idempotency-Key` of this request (docs/contract.md, "Repeated requests"), whose body `parse_object` has
    accepted; None without the header. Raises InvalidRequest."""
    scope = call.request.scope
    key = header(scope, b"idempotency-key")
    if key is None:
        return None
    if not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise fault("Idempotency-Key", _MALFORMED)
    method = scope["method"]
    digest = sha256(f"{method} {scope['path']}\n{_canonical_body(body)}".encode()).hexdigest()
    return IdempotencyKey(call.merchant_id, call.env, f"{method} {scope['route'].path}", key, digest)


def _canonical_body(body: bytes) -> str:
    """The same text for bodies that say the same: whatever the order of their names, their white space, their escapes
    and the spelling of their numbers."""
    value = json.loads(body.strip() or b"{}", parse_int=_number_text, parse_float=_number_text)
    return json.dumps(value or {}, sort_keys=True, separators=(",", ":"))


def _number_text(text: str) -> str:
    """With a NUL, which no text of a request has (D7): it is not to be taken for one."""
    try:
        return f"\0{_EXACT.normalize(Decimal(text))}"
    except ArithmeticError:  # Its exponent is beyond every Decimal.
        return f"\0{text}"


class SuccessResponse(JsonResponse):
    """A success, whose parts are kept until it is known what was ignored. `meta` is for lists, and for parameters that
    were not read."""

    def __init__(
        self,
        data: object,
        status: int = 200,
        meta: MetaObject | WalkMetaObject | IgnoredParametersObject | None = None,
        warnings: Sequence[RequestWarning] = (),
    ) -> None:
        body: dict[str, object] = {"success": True, "data": data}
        if meta is not None:
            body["meta"] = meta
        if warnings:
            body["warnings"] = warnings
        super().__init__(msgspec.json.encode(body), status)
        self._parts = (data, status, meta, warnings)

    def ignoring(self, names: Sequence[str]) -> "SuccessResponse":
        """The same success, with these parameters added to its `meta.ignored`."""
        if not names:
            return self
        data, status, meta, warnings = self._parts
        meta = meta or {}
        return SuccessResponse(data, status, {**meta, "ignored": [*meta.get("ignored", ()), *names]}, warnings)


class Page(Record, frozen=True):
    """The requested page of a list; `number` counts from 1. `after`: what the row before its first one is called."""

    number: int
    size: int
    after: str | None
    oldest_first: bool

    async def row_before(self, find: Callable[[str], Awaitable[Row | None]]) -> Row | None:
        """The row that `after` names; None for a page that begins with the list. Raises InvalidRequest if `find` knows
        no such row."""
        if self.after is None:
            return None
        row = await find(self.after)
        if row is None:
            raise invalid_request({"after": ["Aucun élément de votre compte ne porte cette référence."]})
        return row

    async def bounds(self, find: Callable[[str], Awaitable[ListedRow | None]]) -> PageBounds:
        """As repositories know it. Raises what `row_before` raises."""
        row = await self.row_before(find)
        after = None if row is None else key_of(row)
        return PageBounds(self.size, (self.number - 1) * self.size, after, self.oldest_first)

    def meta(self, total: int) -> MetaObject:
        """`last_page` is at least 1 (D12)."""
        last = max(1, -(-total // self.size))
        return {"current_page": self.number, "per_page": self.size, "total": total, "last_page": last}


def requested_page(query: Mapping[str, str], faults: dict[str, list[str]] | None = None) -> Page:
    """The page that `page`, `per_page`, `order` and `after` ask for (docs/contract.md, "Limits").

    Raises InvalidRequest if one of them is not what it may be, with the other `faults` of the query.
    """
    details = dict(faults or {})
    size = _integer(query, "per_page", default=DEFAULT_PER_PAGE, maximum=MAX_PER_PAGE, details=details)
    number = _integer(query, "page", default=1, maximum=_MAX_PAGE, details=details)
    order, after = requested_choice(query, "order", ORDERS, details), query.get("after")
    if after is not None and number > 1:
        details["page"] = ["Avec after, n'envoyez pas page : la page commence après l'élément nommé."]
    if details:
        raise invalid_request(details)
    return Page(number, size, after, oldest_first=order == "asc")


def requested_range(query: Mapping[str, str], faults: dict[str, list[str]]) -> tuple[Instant | None, Instant | None]:
    """The instants `from` and `to`, inclusive; a fault is added for one that is no date."""
    return _date(query, "from", faults), _date(query, "to", faults)


def _date(query: Mapping[str, str], name: str, faults: dict[str, list[str]]) -> Instant | None:
    """A `+` before the offset may have been decoded to a space (D13)."""
    text = query.get(name)
    if text is None:
        return None
    instant = read_date(text)
    if instant is None and " " in text:
        instant = read_date("+".join(text.rsplit(" ", 1)))
    if instant is None:
        faults[name] = ["Une date AAAA-MM-JJ ou ISO-8601 est attendue."]
    return instant


def requested_choice(
    query: Mapping[str, str], name: str, values: Sequence[Word], faults: dict[str, list[str]]
) -> Word | None:
    """The query parameter `name`, one of `values`. None when it is absent, or another word: then a fault is added."""
    text = query.get(name)
    choice = next((value for value in values if value == text), None)
    if text is not None and choice is None:
        faults[name] = [f"Valeurs acceptées : {', '.join(values)}."]
    return choice


def _integer(query: Mapping[str, str], name: str, *, default: int, maximum: int, details: dict[str, list[str]]) -> int:
    """A query parameter from 1 to `maximum`; a fault is added to `details`."""
    text = query.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 13 and 1 <= int(text) <= maximum:
        return int(text)
    upper = f" et {maximum}" if maximum == MAX_PER_PAGE else ""
    details[name] = [f"Un nombre entier {'compris entre' if upper else 'd’au moins'} 1{upper} est attendu."]
    return default
