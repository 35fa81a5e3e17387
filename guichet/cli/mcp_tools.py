"""The tools of `guichet mcp`: one for each operation of the OpenAPI document that the key's environment allows.

With a live key nothing is debited and nothing refunded: a refund can be proposed, which a person confirms in the
console. Nor is the webhooks' secret told. The key's own scopes hold besides.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

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
