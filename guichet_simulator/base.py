"""The base class of the simulated providers: routes, error responses, tokens, scenarios, callbacks."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import SECOND
from guichet_simulator import phone
from guichet_simulator.broken_responses import DroppedConnection, TruncatedResponse
from guichet_simulator.http_helpers import ErrorResponse, Refused, credential, json_response, new_uuid
from guichet_simulator.models import FAILED, Call, CallbackRequest, FinalState, QueuedCallback, Transaction
from guichet_simulator.scenarios import ResponseKind, Scenario
from guichet_simulator.signatures import hmac_signature_header
from guichet_simulator.store import DuplicateRef
from guichet_simulator.transactions import NewTransaction, ProviderTransactions

#: The body of an unreadable 200: a proxy's HTML page instead of JSON.
_UNREADABLE: Final = '<html><head><title>200 OK</title></head><body>\ufffd{"status":'

#: The kinds that a status or token call can have; the others are business responses to calls that move money.
_TECHNICAL: Final = frozenset(
    {
        ResponseKind.SERVER_ERROR,
        ResponseKind.UNREADABLE,
        ResponseKind.DROPPED,
        ResponseKind.TRUNCATED,
        ResponseKind.SLOW,
        ResponseKind.UNAUTHORIZED,
        ResponseKind.RATE_LIMITED,
        ResponseKind.UNAVAILABLE,
    }
)

#: The kinds whose response is complete and correct.
_WHOLE: Final = frozenset({ResponseKind.NORMAL, ResponseKind.FINAL, ResponseKind.SLOW})

#: The kinds that are an ordinary refusal where the provider has no such response.
_ELSE_REFUSED: Final = frozenset({ResponseKind.BUSINESS_500, ResponseKind.AMBIGUOUS})

ErrorKey = ResponseKind | tuple[str, ResponseKind]
Endpoint = Callable[[Request], Awaitable[Response]]


class SimulatedProvider(ProviderTransactions, ABC):
    #: Its name on the simulated phone.
    title: ClassVar[str]
    #: Seconds before each repeat of a callback that is not answered 2xx.
    retries: tuple[float, ...] = (5, 30, 120, 600)
    #: Seconds that a refused customer may try again before the request ends; None when a refusal is final.
    second_chance: float | None = None
    #: How a request ends when the second chance has passed.
    ends_as: FinalState = FAILED
    #: The secret that signs callbacks or requests until a dashboard changes it. It is worth nothing anywhere else.
    signing_key: ClassVar[str | None] = None
    #: Whether callbacks go to the address in the request; else to the dashboard's.
    callback_in_request: ClassVar[bool] = False
    #: Whether the bank of a customer can contest a payment.
    has_disputes: ClassVar[bool] = False
    #: Scenarios that the API cannot show, and why.
    not_shown: ClassVar[Mapping[str, str]] = {}
    #: The error responses by kind. A (call, kind) pair goes before the kind alone. SERVER_ERROR is required.
    errors: ClassVar[Mapping[ErrorKey, ErrorResponse]]

    @abstractmethod
    def routes(self) -> list[BaseRoute]:
        """The paths of the provider's API, below `/simulator/{name}`."""

    async def check_access(self, request: Request) -> None:
        """The bearer token, unless the API has another credential. Raises Refused."""
        if credential(request) is None:
            raise Refused(self.error(ResponseKind.UNAUTHORIZED))

    def route(self, path: str, endpoint: Endpoint, method: str = "GET") -> Route:
        """A path that answers only those who have access."""

        async def checked(request: Request) -> Response:
            await self.check_access(request)
            return await endpoint(request)

        return Route(path, checked, methods=[method])

    def callback_request(self, tx: Transaction, queued: QueuedCallback) -> CallbackRequest | None:
        """The callback to send; None when there is none, or nowhere to send it."""
        url = tx.callback_url if self.callback_in_request else self.dashboard.callback_url
        return self.callback(tx, queued, url) if url else None

    def callback(self, tx: Transaction, queued: QueuedCallback, url: str) -> CallbackRequest | None:
        """None when the provider sends none on this occasion."""
        return None

    def sign(self, body: bytes, queued: QueuedCallback, separator: bytes, scheme: str = "v1") -> str:
        """The header of a callback that the dashboard's secret signs."""
        secret, now = self.dashboard.secret or "", self.ctx.clock.now()
        return hmac_signature_header(body, queued, secret=secret, separator=separator, now=now, scheme=scheme)

    @property
    def address(self) -> str:
        return f"{self.ctx.public_url}/{self.name}"

    def error(self, kind: ResponseKind, call: str = "debit", echo: Mapping[str, object] | None = None) -> Response:
        """The response to a call that fails in this way; `echo` is added to a JSON body."""
        if kind in _ELSE_REFUSED and kind not in self.errors and (call, kind) not in self.errors:
            kind = ResponseKind.REFUSED
        template = self.errors.get((call, kind)) or self.errors.get(kind) or self.errors[ResponseKind.SERVER_ERROR]
        return template.response(echo)

    async def take(
        self,
        new: NewTransaction,
        answer: Callable[[Transaction], Response],
        echo: Mapping[str, object] | None = None,
    ) -> Response:
        """Respond to a call that moves money, as its scenario says; ordinarily with `answer` to what was stored."""

        def store() -> Response:
            try:
                return answer(self.create(new))
            except DuplicateRef:
                return self.error(ResponseKind.DUPLICATE, new.kind, echo)

        return await self.respond(new.kind, new.scenario, store, echo)

    async def respond(
        self,
        call: Call,
        scenario: Scenario | None,
        normal: Callable[[], Response],
        echo: Mapping[str, object] | None = None,
    ) -> Response:
        """Respond to a call as the scenario says. `normal` does the work and returns the ordinary response."""
        if empty := self.float_refusal(call):
            return self.error(empty, call, echo)
        if scenario is None or (call in ("status", "token") and scenario.response not in _TECHNICAL):
            return normal()
        whole = normal() if scenario.stored else Response(status_code=200)
        if scenario.stored and whole.status_code >= 400:
            return whole
        if scenario.response is ResponseKind.SLOW:
            await self.ctx.clock.sleep(scenario.delay)
        has_no_duplicates = ResponseKind.DUPLICATE not in self.errors
        if scenario.response in _WHOLE or (scenario.response is ResponseKind.DUPLICATE and has_no_duplicates):
            return whole
        broken: dict[ResponseKind, Callable[[], Response]] = {
            ResponseKind.DROPPED: DroppedConnection,
            ResponseKind.TRUNCATED: lambda: TruncatedResponse(whole),
            ResponseKind.UNREADABLE: lambda: Response(_UNREADABLE, media_type="text/html"),
        }
        make = broken.get(scenario.response)
        return make() if make else self.error(scenario.response, call, echo)

    def float_refusal(self, call: str) -> ResponseKind | None:
        """How this call must be refused because the client's balance is empty; None when it is not, or when the call
        takes nothing from it."""
        kinds = [kind for kind in (ResponseKind.FLOAT_EMPTY, ResponseKind.AMBIGUOUS) if (call, kind) in self.errors]
        if not kinds or not self.dashboard.float_empty:
            return None
        return kinds[-1 if self.dashboard.float_ambiguous else 0]

    async def respond_to_status(self, tx: Transaction | None, payload: object, status: int = 200) -> Response:
        """Respond to a call that reads a transaction (None: several, or none yet), ordinarily with this JSON."""
        scenario = self.forced_scenario("status") if tx is None else self.choose_status_scenario(tx)
        return await self.respond("status", scenario, lambda: json_response(payload, status))

    async def respond_without_money(self, normal: Callable[[], Response]) -> Response:
        """Respond to a call that comes before the one that moves money: for a token, a code, an invoice."""
        return await self.respond("token", self.forced_scenario("token"), normal)

    async def respond_with_token(self, lifetime: int, *, token_type: str, scope: str = "") -> Response:
        """Respond to a token call with a new access token; `lifetime` in seconds."""

        def normal() -> Response:
            token, expires_at = new_uuid(), self.ctx.clock.now() + lifetime * SECOND
            values = {"token": token, "provider": self.name, "scope": scope, "expires_at": expires_at}
            self.ctx.store.insert("tokens", values)
            return json_response({"access_token": token, "token_type": token_type, "expires_in": lifetime})

        return await self.respond_without_money(normal)

    def token_expires_at(self, request: Request, scope: str = "") -> int | None:
        """When the access token of the request expires (Instant); None for a token that was never given out."""
        rows = self.ctx.store.rows(
            "SELECT expires_at FROM tokens WHERE token = ? AND provider = ? AND scope = ?",
            credential(request), self.name, scope,
        )  # fmt: skip
        return int(rows[0]["expires_at"]) if rows else None

    def token_is_valid(self, request: Request, scope: str = "") -> bool:
        expires_at = self.token_expires_at(request, scope)
        return expires_at is not None and expires_at > self.ctx.clock.now()

    async def hosted_page(self, request: Request) -> Response:
        """The provider's own page where the customer confirms: `detail.page_url` is its address."""
        self.ctx.apply_due_decisions()
        url = self.address + request.url.path.partition(f"/{self.name}")[2]
        txs = self.ctx.store.select("provider = ? AND json_extract(detail, '$.page_url') = ?", self.name, url)
        return phone.hosted_page(self.ctx, txs[0]) if txs else phone.page(self.ctx, "unknown.html", status=404)
