"""What every connector shares: its connection's settings, and one HTTP call whose failures are already answers."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from guichet.http_client import MAX_BODY, HttpClient, Lost, NotSent
from guichet.providers.base import Callback, Charge, NotProcessed, Unknown

#: An operator may wait for the customer's PIN before it answers an initiation; seconds.
TIMEOUT: Final = 30.0
#: More digits than any amount has: what an operator states may be anything.
_MOST_DIGITS: Final = 20
#: A body nested too deep is as unreadable as one that is not JSON.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9 ]+")


@dataclass(frozen=True, slots=True)
class ProviderAccount:
    """One account at one operator or aggregator: a name of ours, the API family, where it is, its settings."""

    name: str
    family: str
    base_url: str
    settings: Mapping[str, str]

    def __repr__(self) -> str:
        """Settings hold secrets: they are never printed."""
        return f"Connection({self.name!r}, {self.family!r}, {self.base_url!r})"


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    """Whatever came back, whole or not."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    complete: bool

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def object(self) -> dict[str, Any] | None:
        """The JSON object in the body; None when there is none that can be read."""
        value = self.value()
        return value if isinstance(value, dict) else None

    def value(self) -> Any:
        if not self.complete:
            return None
        try:
            return msgspec.json.decode(self.body)
        except _UNREADABLE:
            return None

    @property
    def raw(self) -> str:
        """The beginning of the answer, for the log."""
        return f"{self.status} {self.body[:300].decode('utf-8', 'replace')}"


class ProviderClient:
    """Calls one connection's API."""

    def __init__(self, http_client: HttpClient, base_url: str) -> None:
        self._http_client = http_client
        self._base_url = base_url.rstrip("/")

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
    ) -> ProviderResponse | NotProcessed | Unknown:
        """NotTaken: provably nothing was sent. Unknown: it may have been, and no answer can be read."""
        url = f"{self._base_url}{path}" + (f"?{urlencode(query)}" if query else "")
        sent = {"Accept": "application/json", **(headers or {})}
        if json is not None:
            body = msgspec.json.encode(json)
            sent.setdefault("Content-Type", "application/json")
        elif form is not None:
            body = urlencode(form).encode()
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        try:
            response = await self._http_client.request(
                method, url, headers=sent, body=body, timeout=timeout, guarded=False, max_bytes=max_bytes
            )
        except NotSent as fault:
            return NotProcessed(raw=str(fault))
        except Lost as fault:
            return Unknown(raw=str(fault))
        return ProviderResponse(response.status, response.headers, response.body, response.complete)


def unclear(answer: NotProcessed | Unknown) -> Unknown:
    """A question that could not be asked has no answer either."""
    return answer if isinstance(answer, Unknown) else Unknown(answer.raw)


def classify_http_error(reply: ProviderResponse) -> NotProcessed | Unknown | None:
    """What every family means by these statuses at initiation; None where the family's own words decide.

    401 and 403 are faults of ours (nothing was taken), 429 is a request nobody looked at, 5xx says nothing at all.
    """
    if reply.status in (401, 403):
        return NotProcessed("configuration", reply.raw)
    if reply.status == 429:
        return NotProcessed("operator_unavailable", reply.raw)
    if reply.status >= 500 or not reply.complete:
        return Unknown(reply.raw)
    return None


def parse_callback_json(callback: Callback) -> dict[str, Any] | None:
    """The JSON object a notification carries; None when there is none that can be read."""
    try:
        value = msgspec.json.decode(callback.body)
    except _UNREADABLE:
        return None
    return value if isinstance(value, dict) else None


def header(callback: Callback, name: str) -> str:
    """A header of a notification whatever its case; empty when it is absent."""
    wanted = name.lower()
    return next((value for key, value in callback.headers.items() if key.lower() == wanted), "")


def return_page(charge: Charge, configured: str | None, longest: int = 2048) -> str | None:
    """Where an operator's page sends the customer back: the merchant's page, the connection's, else our own address."""
    ours = urlsplit(charge.callback_url or "")
    pages = (charge.return_url, configured, f"{ours.scheme}://{ours.netloc}/" if ours.netloc else None)
    return next((page for page in pages if page and len(page) <= longest), None)


def text(value: object) -> str | None:
    """A reference an operator states, as text; None when it states none."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else None


def plain_text(text: str, longest: int) -> str:
    """Letters, digits and spaces only, which every provider accepts.

    Source: docs/providers/README.md, "Rules common to every family".
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(_NOT_PLAIN.sub(" ", ascii_text).split())[:longest].strip() or "Paiement"


def units(hundredths: int) -> int:
    """The main unit of a currency without decimals; amounts reach a connector rounded to it (D27)."""
    return hundredths // 100


def hundredths(value: object) -> int | None:
    """An amount an operator states (number or decimal text, main unit) in hundredths; None if it is not exact."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        scaled = Decimal(str(value)).scaleb(2)
    except ArithmeticError:
        return None
    if not scaled.is_finite() or scaled.adjusted() > _MOST_DIGITS or scaled != scaled.to_integral_value():
        return None
    return int(scaled)
