"""The HTTP client of one account, the OAuth access tokens that some APIs want with each call, and the base class of
providers that are called over HTTP.

A call that fails returns a response that says so instead of raising.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlencode

import msgspec

from guichet.clock import SECOND, Clock, Instant, later
from guichet.domain.failures import RefusalReason
from guichet.domain.messages import Answer
from guichet.domain.money import CURRENCIES, Hundredths
from guichet.domain.records import Record
from guichet.http_client import MAX_BODY, HttpClient, Lost, NotSent, Response
from guichet.providers.base import Callback, Charge, NotProcessed, Provider, RefundRequest, RefundStatusResult, Unknown
from guichet.providers.shared import fingerprints
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.fields import clean_text, decode_json, decode_json_object, header
from guichet.providers.shared.signatures import verify_signature

#: Seconds. Some providers wait for the customer's PIN before they answer an initiation.
TIMEOUT: Final = 30.0
#: Seconds after which a request for a token is given up.
_TOKEN_TIMEOUT: Final = 8.0
#: A token is renewed this long before it expires, because the call that it is for takes time too.
_MARGIN: Final = 60 * SECOND
#: Seconds that a token is assumed to live when the provider does not say.
_DEFAULT_LIFETIME: Final = Decimal(300)
_MAX_LIFETIME: Final = 365 * 24 * 3600


class ProviderAccount(Record, frozen=True):
    """One account with one provider: our name for it, the provider's type, the address of its API, its settings."""

    name: str
    provider: str
    base_url: str
    settings: Mapping[str, str]
    #: The host of `base_url` where it looks like that of a test environment but is not.
    live_host: str = ""
    #: See `Balances.float_alert_below`.
    float_alert_below: Mapping[str, Hundredths] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        """Without the settings, because they contain secrets."""
        return f"ProviderAccount({self.name!r}, {self.provider!r}, {self.base_url!r})"


class ProviderResponse(Record, frozen=True):
    """What came of a call. `complete` is False when the connection broke or the body was cut off. `lost`: there is no
    response, and the status is 0: NotProcessed when nothing was sent, Unknown when none came back."""

    status: int
    body: bytes
    complete: bool
    lost: NotProcessed | Unknown | None = None

    @classmethod
    def none(cls, lost: NotProcessed | Unknown) -> Self:
        return cls(0, b"", complete=False, lost=lost)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def object(self) -> dict[str, Any] | None:
        """The JSON object in the body; None when the body is anything else."""
        return decode_json_object(self.body) if self.complete else None

    def ok_object(self) -> dict[str, Any]:
        """The JSON object of a 2xx response; empty for every other response."""
        return (self.object() or {}) if self.ok else {}

    def error_code(self) -> str:
        """The field `code` of the body; empty when there is none."""
        return str((self.object() or {}).get("code", ""))

    def value(self) -> Any:
        """The JSON value in the body; None when the body is not JSON."""
        return decode_json(self.body) if self.complete else None

    @property
    def raw(self) -> Answer:
        """The status and the beginning of the body, for the log; why there is none."""
        return self.lost.raw if self.lost else f"{self.status} {clean_text(self.body[:300].decode('utf-8', 'replace'))}"


#: The headers that sign a request: of its method, its address and its body.
Sign = Callable[[str, str, bytes], Mapping[str, str]]


class ProviderClient:
    """Calls to the API of one account."""

    #: What goes with each call: the key, and a signature where the provider wants one.
    headers: Mapping[str, str] = MappingProxyType({})
    sign: Sign | None = None

    def __init__(self, http_client: HttpClient, base_url: str) -> None:
        self._http_client = http_client
        self.base_url = base_url.rstrip("/")

    async def get(
        self, path: str, query: Mapping[str, str] | None = None, *, timeout: float = TIMEOUT, max_bytes: int = MAX_BODY
    ) -> ProviderResponse:
        return await self.send("GET", path, query=query, timeout=timeout, max_bytes=max_bytes)

    async def post(
        self,
        path: str,
        json: Mapping[str, object],
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = TIMEOUT,
        max_bytes: int = MAX_BODY,
    ) -> ProviderResponse:
        return await self.send("POST", path, json=json, headers=headers, timeout=timeout, max_bytes=max_bytes)

    async def send(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        form: Mapping[str, str] | None = None,
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        max_bytes: int = MAX_BODY,
    ) -> ProviderResponse:
        """Send one request, with `json`, `form` or `body` as its body. `timeout` in seconds."""
        url = f"{self.base_url}{path}" + (f"?{urlencode(query)}" if query else "")
        sent_headers = {"Accept": "application/json", **self.headers, **(headers or {})}
        if json is not None:
            body = msgspec.json.encode(json)
            sent_headers.setdefault("Content-Type", "application/json")
        elif form is not None:
            body = urlencode(form).encode()
            sent_headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        if self.sign is not None:
            sent_headers |= self.sign(method, url, body or b"")
        try:
            response = await self._http_client.request(
                method, url, headers=sent_headers, body=body, timeout=timeout, guarded=False, max_bytes=max_bytes
            )
        except NotSent as error:
            return ProviderResponse.none(NotProcessed(raw=error.message))
        except Lost as error:
            return ProviderResponse.none(Unknown(raw=error.message))
        return _provider_response(response)

    async def download(self, url: str, *, timeout: float, max_bytes: int) -> ProviderResponse:
        """Fetches a file whose address the provider stated: without our credentials, and only from a public address."""
        try:
            response = await self._http_client.request("GET", url, timeout=timeout, max_bytes=max_bytes)
        except (NotSent, Lost) as error:
            return ProviderResponse.none(Unknown(raw=error.message))
        return _provider_response(response)


def _provider_response(response: Response) -> ProviderResponse:
    return ProviderResponse(response.status, response.body, response.complete)


class AccessTokens:
    """The current token of one API: fetched when needed, kept until shortly before it expires, renewed once after a
    401. It is the only state a provider object has; losing it costs one call."""

    def __init__(
        self,
        http: ProviderClient,
        clock: Clock,
        path: str,
        *,
        basic_auth: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
    ) -> None:
        """A new token is asked for by a POST to `path`, with `basic_auth` (user and password), `headers` and `form`."""
        self._http = http
        self._clock = clock
        self._path = path
        self._headers, self._form = {**(headers or {})}, form
        if basic_auth is not None:
            self._headers["Authorization"] = f"Basic {base64.b64encode(':'.join(basic_auth).encode()).decode()}"
        self._token: str | None = None
        self._expires_at = Instant(0)
        self._fetching = asyncio.Lock()

    async def send(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ProviderResponse:
        """As `ProviderClient.send`, with a token. NotProcessed when there is none: nothing was sent.

        A 401 to a token that was kept sends the request once more with a new one; the provider refused the first.
        """

        def with_token(token: str) -> Awaitable[ProviderResponse]:
            sent_headers = {"Authorization": f"Bearer {token}", **(headers or {})}
            return self._http.send(method, path, json=json, query=query, headers=sent_headers)

        kept = self._token if self._clock.now() < self._expires_at else None
        token = kept or await self._current_or_new()
        if isinstance(token, NotProcessed):
            return ProviderResponse.none(token)
        result = await with_token(token)
        if kept is None or result.status != 401:
            return result
        if self._token == kept:
            self._token, self._expires_at = None, Instant(0)
        renewed = await self._current_or_new()
        return ProviderResponse.none(renewed) if isinstance(renewed, NotProcessed) else await with_token(renewed)

    async def _current_or_new(self) -> str | NotProcessed:
        async with self._fetching:
            if self._token is not None and self._clock.now() < self._expires_at:
                return self._token
            result = await self._http.send(
                "POST", self._path, form=self._form, headers=self._headers, timeout=_TOKEN_TIMEOUT
            )
            if result.lost:
                return NotProcessed("operator_unavailable", ProviderAnswer.UNAUTHENTICATED(answer=result.raw))
            body = result.ok_object()
            token = body.get("access_token")
            if not isinstance(token, str) or not token:
                our_fault = result.status in (400, 401, 403)
                # The body may contain a token all the same, so only the status is logged.
                reason: RefusalReason = "configuration" if our_fault else "operator_unavailable"
                return NotProcessed(reason, ProviderAnswer.UNAUTHENTICATED(answer=result.status))
            lifetime = _lifetime(body.get("expires_in"))
            self._token = token
            self._expires_at = later(self._clock.now(), lifetime - min(_MARGIN, lifetime // 2))
            return token


def _lifetime(expires_in: object) -> int:
    """Microseconds; `expires_in` is seconds, as a number or as text. The default for anything that makes no sense."""
    try:
        seconds = Decimal(expires_in) if isinstance(expires_in, int | str | Decimal) else _DEFAULT_LIFETIME
    except ArithmeticError:
        seconds = _DEFAULT_LIFETIME
    usable = seconds.is_finite() and 0 <= seconds <= _MAX_LIFETIME
    return int(seconds if usable else _DEFAULT_LIFETIME) * SECOND


class HttpProvider(Provider):
    """A provider that is called over HTTP, through one account: `configure` reads the settings and gives the client its
    headers, `refuse_unserved` says what is not asked, `is_signed` reads callbacks' signatures."""

    remote = True
    #: The settings that say which account it is: its users, its shop, what its API's address serves. No secret is one.
    account_settings: ClassVar[tuple[str, ...]] = ()
    #: Only for an account that no setting names: the one that holds its key.
    key_setting: ClassVar[str | None] = None
    #: The least that it takes, where that is more than the contract's minimum.
    min_payin = Hundredths(0)

    def __init__(self, account: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        """Raises ValueError for settings that cannot work."""
        self.fingerprint = fingerprints.fingerprint(
            account.provider, account.base_url, account.settings, self.account_settings, self.key_setting
        )
        self.identified_by_key = self.key_setting is not None
        self.float_alert_below: Mapping[str, Hundredths] = account.float_alert_below
        self._http = ProviderClient(http_client, account.base_url)
        self._clock = clock
        #: Settings that several providers have: the secret of callbacks, the page to which customers come back.
        self._webhook_secret = account.settings.get("webhook_secret")
        self._return_url = account.settings.get("return_url")
        self.configure(account.settings)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Reads the settings of the account. Raises ValueError for those that cannot work."""

    def is_signed(self, callback: Callback, name: str, separator: bytes, scheme: str = "v1") -> bool:
        """Whether the header `name` signs the callback. True without a secret in our settings: the provider is asked
        before anything is booked in any case."""
        secret, now = self._webhook_secret, self._clock.now()
        return not secret or verify_signature(
            header(callback, name), callback.body, secret=secret, separator=separator, now=now, scheme=scheme
        )

    def refuse_unserved(self, charge: Charge, account: str) -> NotProcessed | None:
        """Why this account is not asked for the debit; None when it `takes` the operator in the currency, and so much.

        If it does not serve the operator at all, the route is wrong, which is our fault; another currency than the
        account's is the request's (D16).
        """
        operator = charge.payment.operator
        if self.takes(operator, charge.payment.currency):
            if charge.amount >= self.min_payin:
                return None
            least = str(self.min_payin // 100)
            return NotProcessed("limit_reached", ProviderAnswer.TOO_SMALL(account=account, least=least))
        if any(self.takes(operator, currency) for currency in CURRENCIES):
            facts = {"account": account, "operator": operator, "currency": charge.payment.currency}
            return NotProcessed("currency_not_accepted", ProviderAnswer.CURRENCY_NOT_TAKEN(**facts))
        return NotProcessed("configuration", ProviderAnswer.OPERATOR_NOT_SERVED(account=account, operator=operator))

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        return Unknown(ProviderAnswer.NO_REFUNDS())
