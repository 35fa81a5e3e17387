"""Looks things up in the served OpenAPI document."""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from guichet.api.endpoint import Endpoint


def schemas_of(document: Mapping[str, Any]) -> dict[str, Any]:
    return dict(document["components"]["schemas"])


def resolved(document: Mapping[str, Any], node: Mapping[str, Any]) -> Any:
    """What a `$ref`, alone or beside null, stands for."""
    if choices := node.get("anyOf"):
        node = choices[0]
    found: Any = document
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def nodes_of(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from nodes_of(item)


def validator(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    return jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]}, validate_formats=True)


def operation_of(document: Mapping[str, Any], endpoint: Endpoint) -> Any:
    return document["paths"][endpoint.path][endpoint.method.lower()]


def success_of(document: Mapping[str, Any], endpoint: Endpoint) -> Any:
    return operation_of(document, endpoint)["responses"][str(endpoint.status)]["content"]["application/json"]
