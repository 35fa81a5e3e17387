"""Reading requests and making responses: what the simulated APIs share."""

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from guichet.domain import money
from guichet.domain.money import Hundredths


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """A response that is not the usual one. `body` None means an empty body."""

    status: int
    body: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self, echo: Mapping[str, object] | None = None) -> Response:
        """`echo` is added to a JSON body, for the APIs that repeat the client's identifiers."""
        if self.body is None:
            return Response(status_code=self.status, headers=dict(self.headers))
        return json_response({**(echo or {}), **self.body}, self.status, dict(self.headers))


class Refused(Exception):
    """Ends a call with a response that is not the usual one; `echo` as in `ErrorResponse.response`."""

    def __init__(self, refusal: ErrorResponse | Response, echo: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self.response = refusal.response(echo) if isinstance(refusal, ErrorResponse) else refusal


def json_response(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json_bytes(body), status, headers, "application/json")


#: The body of a callback.
json_bytes: Final = msgspec.json.encode


async def json_object(request: Request) -> dict[str, Any]:
    """The JSON object of the request; empty for anything else."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


async def form_fields(request: Request) -> dict[str, str]:
    return {name: str(value) for name, value in (await request.form()).items()}


def credential(request: Request, scheme: str = "Bearer") -> str | None:
    """What follows the scheme in `Authorization`; None when it is absent or not acceptable."""
    given_scheme, _, value = request.headers.get("authorization", "").partition(" ")
    plain = _decode_basic(value) if scheme == "Basic" else value
    if given_scheme.casefold() != scheme.casefold() or not acceptable(plain):
        return None
    return value.strip()


def basic_credential(request: Request) -> str:
    """`user:password` of HTTP Basic; empty when it is absent or cannot be decoded."""
    try:
        return base64.b64decode(credential(request, "Basic") or "", validate=True).decode()
    except ValueError:
        return ""


def _decode_basic(value: str) -> str:
    """The user and password of HTTP Basic; the value itself when it is not base64."""
    try:
        return base64.b64decode(value, validate=True).decode()
    except ValueError:
        return value


def acceptable(value: str | None) -> bool:
    """The simulator accepts every credential, except an empty one and one that contains "invalid"."""
    return bool(value and value.strip()) and "invalid" not in str(value)


def new_uuid() -> str:
    return str(uuid.uuid4())


def is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def hundredths(value: object, currency: str) -> Hundredths | None:
    """A text or an integer in main units, in hundredths; None when it is no amount, not positive, or too fine."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    amount = money.parse_decimal(str(value), 2)
    if (
        not amount
        or amount <= 0
        or currency not in money.CURRENCIES
        or not money.has_whole_units(Hundredths(amount), currency)
    ):
        return None
    return Hundredths(amount)


def units(amount: int | None) -> int | None:
    """Hundredths as whole main units, for the APIs that speak integers."""
    return None if amount is None else amount // 100


def smallest_unit(amount: int | None, currency: str) -> int | None:
    """Hundredths in the smallest unit of the currency: XOF and XAF have no decimals."""
    return amount if amount is None or money.DECIMALS[currency] else amount // 100
