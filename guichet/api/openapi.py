"""`/openapi.json`: OpenAPI 3.1, made from the endpoints, the classes of guichet/schemas and the errors.

guichet/api/docs.py serves it, and renders `/docs` from it alone.
"""

import json
import shlex
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from guichet.api import guide, json_schema, openapi_responses, scopes
from guichet.api.endpoint import Endpoint, Parameter
from guichet.api.endpoint_table import ENDPOINTS, TAGS
from guichet.api.json_schema import Schema
from guichet.api.openapi_responses import JSON, error_references, error_responses, header_references, headers
from guichet.api.recorded_examples import as_examples, recorded
from guichet.schemas.envelope import (
    ErrorEnvelopeObject,
    IgnoredParametersObject,
    MetaObject,
    RequestWarningObject,
    WalkMetaObject,
)
from guichet.schemas.notification import NOTIFICATIONS
from guichet.settings import Settings

_SCHEME: Final = "cle"
_WARNINGS: Final = "Ce qui mérite votre attention. Absent quand il n'y a rien à dire."
_METAS: Final[Mapping[str, type[Any]]] = {"page": MetaObject, "walk": WalkMetaObject}


def document(settings: Settings) -> dict[str, Any]:
    """The document of a service at `settings.public_url`."""
    server = f"{settings.public_url}/v1"
    schemas = json_schema.components(_models())
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "API marchande Guichet",
            "version": "1",
            "summary": "Encaisser par Mobile Money et par carte en Afrique de l'Ouest et centrale.",
            "description": guide.introduction(settings.rate_limit),
            "contact": {"name": "Support du service", "url": f"{settings.public_url}/docs"},
            "license": {"name": "Réservé aux marchands du service", "identifier": "LicenseRef-Guichet"},
        },
        "servers": [{"url": server, "description": "Test et production : la clé choisit."}],
        "security": [{_SCHEME: []}],
        "tags": [
            *({"name": name, "description": description} for name, (description, _) in TAGS.items()),
            {"name": openapi_responses.TAG, "description": openapi_responses.TAG_DESCRIPTION},
        ],
        "paths": _paths(server, schemas),
        "webhooks": {event: {"post": openapi_responses.webhook(event)} for event in NOTIFICATIONS},
        "components": {
            "securitySchemes": {
                _SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Votre clé secrète : `sk_test_…` pour l'environnement de test, `sk_live_…` pour la "
                    "production.",
                }
            },
            "headers": headers(limited=settings.rate_limit > 0),
            "responses": error_responses(),
            "schemas": schemas,
        },
    }


def _models() -> list[type[Any]]:
    response_data = [endpoint.data for endpoint in ENDPOINTS]
    request_bodies = [endpoint.body for endpoint in ENDPOINTS if endpoint.body]
    notified = [model for model, _ in NOTIFICATIONS.values()]
    envelope = (MetaObject, WalkMetaObject, IgnoredParametersObject, RequestWarningObject, ErrorEnvelopeObject)
    return list(dict.fromkeys([*response_data, *request_bodies, *notified, *envelope]))


def _paths(server: str, schemas: Mapping[str, Schema]) -> dict[str, dict[str, Schema]]:
    paths: dict[str, dict[str, Schema]] = {}
    for tag, (_, endpoints) in TAGS.items():
        for endpoint in endpoints:
            paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(server, tag, endpoint, schemas)
    return paths


def _operation(server: str, tag: str, endpoint: Endpoint, schemas: Mapping[str, Schema]) -> Schema:
    operation: Schema = {
        "operationId": endpoint.handler.__name__,
        "tags": [tag],
        "summary": endpoint.summary,
        "description": f"{endpoint.description}\n\n{scopes.description(endpoint.method, endpoint.path)}",
    }
    if endpoint.parameters:
        operation["parameters"] = [_parameter(parameter) for parameter in endpoint.parameters]
    if endpoint.body:
        operation["requestBody"] = {
            "required": bool(schemas[json_schema.component_name(endpoint.body.__name__)].get("required")),
            "content": {
                JSON: {
                    "schema": json_schema.reference(endpoint.body),
                    "examples": as_examples(endpoint.requests),
                }
            },
        }
    samples: Mapping[str, Mapping[str, Any] | None] = endpoint.requests or {"curl": None}
    operation["responses"] = {str(endpoint.status): _success(endpoint), **error_references(endpoint)}
    operation["x-codeSamples"] = [
        {"lang": "Shell", "label": title, "source": curl(server, endpoint, body)} for title, body in samples.items()
    ]
    return operation


def _parameter(parameter: Parameter) -> Schema:
    described = {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.where == "path",
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }
    return described if parameter.sample is None else {**described, "example": parameter.sample}


def _success(endpoint: Endpoint) -> Schema:
    item = json_schema.reference(endpoint.data)
    # No `const`: generated PHP takes that of a boolean for a text, and refuses every answer.
    fields: Schema = {"success": {"type": "boolean", "description": "Toujours `true`."}}
    fields["data"] = item if endpoint.shape == "one" else {"type": "array", "items": item}
    required = ["success", "data", *(["meta"] if endpoint.shape in _METAS else [])]
    fields["meta"] = json_schema.reference(_METAS.get(endpoint.shape, IgnoredParametersObject))
    fields["warnings"] = {
        "type": "array",
        "items": json_schema.reference(RequestWarningObject),
        "minItems": 1,
        "description": _WARNINGS,
    }
    envelope = {"type": "object", "required": required, "properties": fields}
    answers = recorded().answers[endpoint.handler.__name__]
    return {
        "description": HTTPStatus(endpoint.status).phrase,
        "headers": header_references(endpoint.status),
        "content": {JSON: {"schema": envelope, "examples": as_examples(answers)}},
    }


def curl(server: str, endpoint: Endpoint, body: Mapping[str, Any] | None) -> str:
    """The call as a shell command, the key in `$CLE`."""
    path = endpoint.path
    query = {}
    for parameter in endpoint.parameters:
        if parameter.where == "path":
            path = path.replace(f"{{{parameter.name}}}", quote(parameter.sample or "", safe=""))
        elif parameter.where == "query" and parameter.sample is not None:
            query[parameter.name] = parameter.sample
    lines = [f"curl {shlex.quote(server + path + (f'?{urlencode(query)}' if query else ''))}"]
    if endpoint.method != "GET" and (endpoint.method != "POST" or body is None):
        lines[0] = f"curl -X {endpoint.method}{lines[0].removeprefix('curl')}"
    lines.append('-H "Authorization: Bearer $CLE"')
    if body is not None:
        lines.append(f'-H "Content-Type: {JSON}"')
        lines.append(f"-d {shlex.quote(json.dumps(body, ensure_ascii=False, indent=2))}")
    return " \\\n  ".join(lines)
