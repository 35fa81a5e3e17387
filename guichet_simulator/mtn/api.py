"""What all calls of the simulated MTN share: tokens, subscription keys, target environments, sandbox numbers, JSON,
errors.

Source: docs/providers/mtn.md, "Addresses and credentials", "Errors".
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.domain import money
from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import (
    ErrorResponse,
    Refused,
    acceptable,
    basic_credential,
    credential,
    is_uuid,
    json_object,
    json_response,
    new_uuid,
)
from guichet_simulator.models import Transaction, by_state
from guichet_simulator.scenarios import ResponseKind


class Environment(NamedTuple):
    operator: str
    currency: str


ENVIRONMENTS: Final = {
    "mtnbenin": Environment("mtn", "XOF"),
    "mtnivorycoast": Environment("mtn_ci", "XOF"),
    "mtncongo": Environment("mtn_cg", "XAF"),
    "sandbox": Environment("sandbox", "EUR"),
}
#: A state or a claim → the `status`.
STATES: Final = by_state(pending="PENDING", succeeded="SUCCESSFUL", failed="FAILED", expired="FAILED")
#: A reason of a scenario → the `reason` of a failed debit.
REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "NOT_ENOUGH_FUNDS",
    "payer_not_found": "PAYER_NOT_FOUND",
    "rejected_by_payer": "APPROVAL_REJECTED",
    "expired": "EXPIRED",
}
_CREDIT_REASONS: Final[Mapping[str | None, str]] = {
    **REASONS,
    "insufficient_funds": "PAYEE_LIMIT_REACHED",
    "payer_not_found": "PAYEE_NOT_FOUND",
}
#: The numbers of MTN's own sandbox (docs/providers/mtn.md, "Sandbox") → the scenario.
SANDBOX_NUMBERS: Final = {
    "46733123450": "declined",
    "46733123451": "rejected",
    "46733123452": "expires",
    "46733123453": "succeeds_late",
    "46733123454": "never_final",
    "46733123455": "refused",
    "46733123458": "not_configured",
    "46733123461": "error_500_not_stored",
    "46733123462": "unavailable",
    "46733123463": "expires",
}


def error(status: int, code: str) -> ErrorResponse:
    return ErrorResponse(status, {"code": code, "message": code.replace("_", " ").capitalize()})


def transaction_payload(tx: Transaction, status: str | None = None) -> dict[str, Any]:
    """The response to a status call, and a callback; `status` states another one than the true one."""
    word = status or STATES[tx.state]
    party = "payer" if tx.kind == "debit" else "payee"
    payload: dict[str, Any] = {
        "externalId": tx.detail["externalId"],
        "currency": tx.stated_currency,
        party: {"partyIdType": "MSISDN", "partyId": tx.phone},
        "payerMessage": tx.detail["payerMessage"],
        "payeeNote": tx.detail["payeeNote"],
        "status": word,
    }
    if tx.stated_amount is not None:
        payload["amount"] = money.plain(tx.stated_amount)
    if word == "SUCCESSFUL":
        payload["financialTransactionId"] = str(7_000_000_000 + tx.id)
    if word == "FAILED":
        reasons = REASONS if tx.kind == "debit" else _CREDIT_REASONS
        payload["reason"] = reasons.get(tx.reason, "INTERNAL_PROCESSING_ERROR")
    return payload


PRODUCTS: Final = ("collection", "disbursement")
#: Seconds.
_TOKEN_LIFETIME: Final = 3600
_API_USERS: Final = "mtn:api_users"


class MtnApi(SimulatedProvider):
    name = "mtn"
    title = "MTN MoMo"
    new_platform = False
    lifetime = 300
    callback_in_request = True
    #: MTN sends a callback once.
    retries = ()
    errors = {
        ("token", ResponseKind.UNAUTHORIZED): ErrorResponse(401, {"error": "invalid_client"}),
        ResponseKind.UNAUTHORIZED: ErrorResponse(
            401, {"statusCode": 401, "message": "Access denied due to invalid credentials."}
        ),
        ResponseKind.RATE_LIMITED: ErrorResponse(
            429, {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 2 seconds."}, {"Retry-After": "2"}
        ),
        ResponseKind.UNAVAILABLE: error(503, "SERVICE_UNAVAILABLE"),
        ResponseKind.NOT_CONFIGURED: error(500, "NOT_ALLOWED_TARGET_ENVIRONMENT"),
        ResponseKind.DUPLICATE: error(409, "RESOURCE_ALREADY_EXIST"),
        ResponseKind.REFUSED: error(500, "PAYER_NOT_FOUND"),
        ("credit", ResponseKind.REFUSED): error(500, "PAYEE_NOT_FOUND"),
        ("credit", ResponseKind.FLOAT_EMPTY): error(500, "NOT_ENOUGH_FUNDS"),
        ("credit", ResponseKind.AMBIGUOUS): error(500, "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED"),
        ResponseKind.SERVER_ERROR: ErrorResponse(500),
    }

    async def token(self, request: Request) -> Response:
        """A token is good for the product it was asked for only."""
        product = request.path_params["product"]
        if product not in PRODUCTS:
            return json_response({"statusCode": 404, "message": "Resource not found"}, 404)
        if self.new_platform:
            _check_as_new_gateway(request)
        user = basic_credential(request).partition(":")[0]
        known = credential(request, "Basic") is not None and self._opens(user, product)
        if not known or not self._subscribed(request, product):
            return self.error(ResponseKind.UNAUTHORIZED, "token")
        return await self.respond_with_token(_TOKEN_LIFETIME, token_type="access_token", scope=product)  # noqa: S106

    async def check_access(self, request: Request) -> None:
        """The subscription key and the token of the product with which the path begins, and the environment."""
        product = request.scope["path"].removeprefix(request.scope["root_path"]).split("/")[1]
        if not self._subscribed(request, product) or not self.token_is_valid(request, product):
            raise Refused(self.error(ResponseKind.UNAUTHORIZED))
        if request.headers.get("x-target-environment") not in ENVIRONMENTS:
            raise Refused(error(500, "NOT_ALLOWED_TARGET_ENVIRONMENT"))

    def _subscribed(self, request: Request, product: str) -> bool:
        key = request.headers.get("ocp-apim-subscription-key")
        return acceptable(key) and self._opens(str(key), product)

    def _opens(self, name: str, product: str) -> bool:
        """Whether an API user or a subscription key is one of this product's wallet."""
        credentials = self.dashboard.credentials
        return credentials is None or product in credentials.get(name, ())


def _check_as_new_gateway(request: Request) -> None:
    """What only the new platform checks before it gives a token. Raises Refused."""
    if "python-requests" in request.headers.get("user-agent", ""):
        raise Refused(Response("<html><body>403 Forbidden</body></html>", 403, media_type="text/html"))
    if request.headers.get("x-target-environment") not in ENVIRONMENTS:
        raise Refused(ErrorResponse(400, {"error": "Invalid or missing X-Target-Environment header"}))
    if "%" in basic_credential(request):
        raise Refused(ErrorResponse(500))  # Credentials that were URL-encoded before they were put together.


class ApiUsers:
    """MTN's sandbox makes API users and their keys for whoever has a subscription key."""

    def __init__(self, api: SimulatedProvider) -> None:
        self._api = api
        self._store = api.ctx.store

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1_0/apiuser", self.create, methods=["POST"]),
            Route("/v1_0/apiuser/{id}", self.read),
            Route("/v1_0/apiuser/{id}/apikey", self.create_key, methods=["POST"]),
        ]

    async def create(self, request: Request) -> Response:
        self._check_key(request)
        user = request.headers.get("x-reference-id", "")
        host = (await json_object(request)).get("providerCallbackHost")
        if not is_uuid(user) or not isinstance(host, str):
            return json_response({"code": "VALIDATION_ERROR", "message": "X-Reference-Id or host"}, 400)
        if user in self._hosts():
            raise Refused(error(409, "RESOURCE_ALREADY_EXIST"))
        self._store.set_setting(_API_USERS, {**self._hosts(), user: host})
        return Response(status_code=201)

    async def read(self, request: Request) -> Response:
        self._check_key(request)
        host = self._hosts().get(request.path_params["id"])
        if host is None:
            raise Refused(error(404, "RESOURCE_NOT_FOUND"))
        return json_response({"providerCallbackHost": host, "targetEnvironment": "sandbox"})

    async def create_key(self, request: Request) -> Response:
        self._check_key(request)
        if request.path_params["id"] not in self._hosts():
            raise Refused(error(404, "RESOURCE_NOT_FOUND"))
        return json_response({"apiKey": new_uuid().replace("-", "")}, 201)

    def _check_key(self, request: Request) -> None:
        if not acceptable(request.headers.get("ocp-apim-subscription-key")):
            raise Refused(self._api.error(ResponseKind.UNAUTHORIZED))

    def _hosts(self) -> dict[str, str]:
        """The callback host of each API user."""
        return self._store.setting(_API_USERS) or {}
