"""The server of `guichet mcp`: tools of the Model Context Protocol over stdin and stdout, one for each operation of the
OpenAPI document that the key's environment allows, and the calls to the API behind them.

With a live key nothing is debited and nothing refunded: a refund can be proposed, which a person confirms in the
console. Nor is the webhooks' secret told. The key's own scopes hold besides.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from yarl import URL

from guichet import __version__

#: Beside whatever reads: what a live key may do.
_LIVE: Final = frozenset(
    {"quote_fees", "create_link", "close_link", "create_session", "expire_session", "propose_refund"}
)
#: It answers the secret that signs webhooks.
_NOT_LIVE: Final = frozenset({"read_endpoint"})


@dataclass(frozen=True)
class Operation:
    """A tool. `schema`: of its arguments. `query`: the names of those that stand in the address."""

    name: str
    method: str
    path: str
    description: str
    schema: Mapping[str, Any]
    query: frozenset[str]

    @property
    def reads(self) -> bool:
        return self.method == "GET" or self.name == "quote_fees"


def operations(document: Mapping[str, Any], *, live: bool) -> dict[str, Operation]:
    """Name → tool, out of an OpenAPI document of the service."""
    tools = (
        _operation(document, method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return {tool.name: tool for tool in tools if not live or _is_for_live(tool)}


def _is_for_live(operation: Operation) -> bool:
    return (operation.method == "GET" and operation.name not in _NOT_LIVE) or operation.name in _LIVE


def _operation(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> Operation:
    """An `external_id` is required wherever it can be: repeated by a program that lost the answer, the call must not
    create a second payment."""
    params = [param for param in operation.get("parameters", ()) if param["in"] in ("path", "query")]
    properties = {param["name"]: {**param["schema"], "description": param.get("description", "")} for param in params}
    required = [param["name"] for param in params if param["in"] == "path"]
    if body := operation.get("requestBody"):
        schema = _resolved(document, body["content"]["application/json"]["schema"])
        properties |= schema["properties"]
        required += schema.get("required", [])
        required += ["external_id"] if "external_id" in schema["properties"] else []
    return Operation(
        name=operation["operationId"],
        method=method,
        path=path,
        description="\n\n".join(filter(None, (operation.get("summary"), operation.get("description")))),
        schema={**_with_definitions(document, properties), "required": required},
        query=frozenset(param["name"] for param in params if param["in"] == "query"),
    )


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    return document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def _with_definitions(document: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these properties, and the definitions they refer to beside them."""
    definitions: dict[str, Any] = {}
    waiting = list(_references(properties))
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            definitions[name] = document["components"]["schemas"][name]
            waiting += _references(definitions[name])
    schema = {"type": "object", "properties": properties, **({"$defs": definitions} if definitions else {})}
    moved: dict[str, Any] = json.loads(json.dumps(schema).replace("#/components/schemas/", "#/$defs/"))
    return moved


def _references(schema: object) -> Iterator[str]:
    return iter(re.findall(r'"#/components/schemas/([A-Za-z]+)"', json.dumps(schema)))


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
