"""MTN's sandbox users: an API user under the client's own id, and its key.

Source: docs/providers/mtn.md, "Addresses and credentials".
"""

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.context import SimulatorContext
from guichet_simulator.http_helpers import acceptable, is_uuid, json_object, json_response, new_uuid
from guichet_simulator.mtn_payloads import error


class MtnSandbox:
    def __init__(self, ctx: SimulatorContext) -> None:
        self._ctx = ctx

    async def create(self, request: Request) -> Response:
        if refusal := _check_subscription(request):
            return refusal
        user, body = request.headers.get("x-reference-id", ""), await json_object(request) or {}
        if not is_uuid(user) or not body.get("providerCallbackHost"):
            return error(400, "VALIDATION_ERROR").response()
        if self._find(user) is not None:
            return error(409, "RESOURCE_ALREADY_EXIST").response()
        self._ctx.store.set_setting(_name(user), {"providerCallbackHost": body["providerCallbackHost"]})
        return Response(status_code=201)

    async def read(self, request: Request) -> Response:
        if refusal := _check_subscription(request):
            return refusal
        found = self._find(request.path_params["user"])
        if found is None:
            return error(404, "RESOURCE_NOT_FOUND").response()
        return json_response({**found, "targetEnvironment": "sandbox"})

    async def create_key(self, request: Request) -> Response:
        if refusal := _check_subscription(request):
            return refusal
        if self._find(request.path_params["user"]) is None:
            return error(404, "RESOURCE_NOT_FOUND").response()
        return json_response({"apiKey": new_uuid().replace("-", "")}, 201)

    def _find(self, user: str) -> dict[str, str] | None:
        found: dict[str, str] | None = self._ctx.store.setting(_name(user))
        return found


def _name(user: str) -> str:
    return f"mtn:apiuser:{user}"


def _check_subscription(request: Request) -> Response | None:
    if acceptable(request.headers.get("ocp-apim-subscription-key")):
        return None
    message = "Access denied due to missing subscription key."
    return json_response({"statusCode": 401, "message": message}, 401)
