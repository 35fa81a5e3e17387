"""MTN's sandbox makes API users and their keys for whoever has a subscription key (docs/providers/mtn.md)."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import acceptable, is_uuid, json_object, json_response, new_uuid
from guichet_simulator.mtn.payloads import error
from guichet_simulator.scenarios import ResponseKind

_SETTING: Final = "mtn:api_users"


class ApiUsers:
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
        if refusal := self._refusal(request):
            return refusal
        user = request.headers.get("x-reference-id", "")
        host = (await json_object(request) or {}).get("providerCallbackHost")
        if not is_uuid(user) or not isinstance(host, str):
            return json_response({"code": "VALIDATION_ERROR", "message": "X-Reference-Id or host"}, 400)
        if user in self._hosts():
            return error(409, "RESOURCE_ALREADY_EXIST").response()
        self._store.set_setting(_SETTING, {**self._hosts(), user: host})
        return Response(status_code=201)

    async def read(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        host = self._hosts().get(request.path_params["id"])
        if host is None:
            return error(404, "RESOURCE_NOT_FOUND").response()
        return json_response({"providerCallbackHost": host, "targetEnvironment": "sandbox"})

    async def create_key(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        if request.path_params["id"] not in self._hosts():
            return error(404, "RESOURCE_NOT_FOUND").response()
        return json_response({"apiKey": new_uuid().replace("-", "")}, 201)

    def _refusal(self, request: Request) -> Response | None:
        known = acceptable(request.headers.get("ocp-apim-subscription-key"))
        return None if known else self._api.error(ResponseKind.UNAUTHORIZED)

    def _hosts(self) -> dict[str, str]:
        """The callback host of each API user."""
        return self._store.setting(_SETTING) or {}
