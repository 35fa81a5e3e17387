"""The server of `guichet mcp`: tools of the Model Context Protocol over stdin and stdout, and the calls to the API
behind them."""

import json
import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from yarl import URL

from guichet import __version__
from guichet.cli.mcp_tools import Operation, operations

#: Seconds. A read of a pending payment asks its operator first.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=35)
_INSTRUCTIONS: Final = (
    "Le compte d'un marchand de Guichet, qui encaisse par Mobile Money et par carte. Les montants sont dans l'unité "
    "principale de la devise. Un paiement `pending` n'est pas encaissé : relisez-le. Si une création n'a pas répondu, "
    "répétez-la avec le même external_id, jamais avec un autre."
)


class Tools:
    """`api`: the base address, ending in `/v1`."""

    def __init__(self, http: aiohttp.ClientSession, api: str, known: Mapping[str, Operation]) -> None:
        self._http = http
        self._api = api
        self._known = known

    async def show(self, _: Any, __: Any) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=operation.name,
                description=operation.description,
                input_schema=dict(operation.schema),
                annotations=types.ToolAnnotations(read_only_hint=operation.reads, idempotent_hint=True),
            )
            for operation in self._known.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def call(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        operation = self._known.get(params.name)
        if operation is None:
            return _result({"success": False, "error": {"message": f"Aucun outil ne s'appelle {params.name}."}})
        missing = [name for name in operation.schema["required"] if arguments.get(name) in (None, "")]
        if missing:
            return _result({"success": False, "error": {"message": f"Il manque : {', '.join(missing)}."}})
        return _result(await self._send(operation, arguments))

    async def _send(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """The decoded answer. A request that may have arrived is not repeated: its `external_id` lets the program."""
        rest = dict(arguments)
        path = operation.path
        for name in [name for name in rest if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", quote(str(rest.pop(name)), safe=""))
        query = urlencode({name: rest.pop(name) for name in operation.query & rest.keys()})
        url = URL(f"{self._api}{path}{'?' if query else ''}{query}", encoded=True)
        headers = {} if operation.reads else {"Idempotency-Key": str(uuid.uuid4())}
        body = rest if operation.method != "GET" else None
        try:
            async with self._http.request(operation.method, url, json=body, headers=headers) as response:
                return await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            message = f"Guichet n'a pas répondu : {error!r}. Relisez avant de répéter, avec le même external_id."
            return {"success": False, "error": {"message": message}}


def _result(answer: Mapping[str, Any]) -> types.CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=answer.get("success") is not True
    )


async def serve(api: str, key: str) -> None:
    """Until stdin ends. The tools are those that the server itself describes."""
    live = not key.startswith("sk_test_")
    headers = {"Authorization": f"Bearer {key}", "User-Agent": f"guichet-mcp/{__version__}"}
    async with aiohttp.ClientSession(headers=headers, timeout=_TIMEOUT, raise_for_status=False) as http:
        async with http.get(f"{api.removesuffix('/v1')}/openapi.json") as response:
            document = await response.json()
        tools = Tools(http, api, operations(document, live=live))
        server: Server[Any] = Server(
            "guichet",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=tools.show,
            on_call_tool=tools.call,
        )
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
