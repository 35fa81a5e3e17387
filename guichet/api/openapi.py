"""`/openapi.json`: OpenAPI 3.1, made from the endpoints, the models that validate, the resources and the errors.

`document` is plain data; `guichet.api.docs` serves it, and renders `/docs` from nothing else.
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from guichet.api import guide, schemas
from guichet.api.endpoints import ENDPOINTS, TAGS, Endpoint, Parameter
from guichet.api.schemas import Schema
from guichet.domain.errors import (
    GuichetError,
    InvalidRequest,
    KeyExpired,
    MerchantInactive,
    MethodNotAllowed,
    RateLimited,
    ServerError,
    Unauthorized,
)
from guichet.domain.events import ANSWER_TIMEOUT
from guichet.schemas.error import ErrorObject
from guichet.schemas.notification import NOTIFICATIONS
from guichet.schemas.page import MetaObject
from guichet.settings import Settings
from guichet.webhooks.sender import USER_AGENT

JSON: Final = "application/json"
_SCHEME: Final = "cle"
#: What every endpoint can answer besides its own errors.
_EVERYWHERE: Final = (Unauthorized, KeyExpired, MerchantInactive, RateLimited, ServerError)
_HEADERS: Final[dict[str, Schema]] = {
    "X-Request-Id": {
        "description": "Identifiant de la requête, à citer au support. C'est le vôtre si vous en envoyez un "
        "(`X-Request-Id`, 8 à 64 lettres, chiffres, points, tirets).",
        "required": True,
        "schema": {"type": "string"},
    },
    "X-RateLimit-Remaining": {
        "description": "Requêtes encore permises dans la minute, pour votre adresse IP.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "Retry-After": {
        "description": "Secondes à attendre avant de réessayer.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {
        "description": "`Bearer` : la façon de s'authentifier.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Allow": {
        "description": "Les méthodes acceptées à cette adresse.",
        "required": True,
        "schema": {"type": "string"},
    },
}
_OWN_HEADERS: Final = {401: ("WWW-Authenticate",), 405: ("Allow",), 429: ("Retry-After",)}


def document(settings: Settings) -> dict[str, Any]:
    """The whole document, for a service at `settings.public_url`."""
    server = f"{settings.public_url}/v1"
    known = schemas.components(_models())
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "API marchande Guichet",
            "version": "1",
            "summary": "Encaisser par Mobile Money et par carte en Afrique de l'Ouest et centrale.",
            "description": guide.introduction(settings.rate_limit),
        },
        "servers": [{"url": server, "description": "Test et production : la clé choisit."}],
        "security": [{_SCHEME: []}],
        "tags": [{"name": name, "description": description} for name, description in TAGS.items()],
        "paths": _paths(server, known),
        "webhooks": {event: {"post": _notification(event, known)} for event in NOTIFICATIONS},
        "components": {
            "securitySchemes": {
                _SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Votre clé secrète : `sk_test_…` pour l'environnement de test, `sk_live_…` pour la "
                    "production.",
                }
            },
            "headers": _headers(limited=settings.rate_limit > 0),
            "responses": _error_responses(),
            "schemas": known,
        },
    }


def _models() -> list[type[Any]]:
    answered = [endpoint.data for endpoint in ENDPOINTS]
    sent = [endpoint.body for endpoint in ENDPOINTS if endpoint.body]
    notified = [model for model, _ in NOTIFICATIONS.values()]
    return list(dict.fromkeys([*answered, *sent, *notified, MetaObject, ErrorObject]))


def _headers(*, limited: bool) -> dict[str, Schema]:
    headers = {name: dict(header) for name, header in _HEADERS.items()}
    headers["X-RateLimit-Remaining"]["required"] = limited
    return headers


# --- operations -------------------------------------------------------------------------------------------------------


def _paths(server: str, known: Mapping[str, Schema]) -> dict[str, dict[str, Schema]]:
    paths: dict[str, dict[str, Schema]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(server, endpoint, known)
    return paths


def _operation(server: str, endpoint: Endpoint, known: Mapping[str, Schema]) -> Schema:
    operation: Schema = {
        "operationId": endpoint.handler.__name__,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": endpoint.description,
    }
    if endpoint.parameters:
        operation["parameters"] = [_parameter(parameter) for parameter in endpoint.parameters]
    if endpoint.body:
        operation["requestBody"] = {
            "required": bool(known[schemas.component_name(endpoint.body.__name__)].get("required")),
            "content": {
                JSON: {
                    "schema": schemas.reference(endpoint.body),
                    "examples": {title: {"value": body} for title, body in endpoint.requests.items()},
                }
            },
        }
    samples: Mapping[str, Mapping[str, Any] | None] = endpoint.requests or {"curl": None}
    operation["responses"] = {str(endpoint.status): _success(endpoint, known), **_refusals(endpoint)}
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


def _success(endpoint: Endpoint, known: Mapping[str, Schema]) -> Schema:
    one = schemas.reference(endpoint.data)
    fields: Schema = {"success": {"const": True}}
    fields["data"] = one if endpoint.shape == "one" else {"type": "array", "items": one}
    if endpoint.shape == "page":
        fields["meta"] = schemas.reference(MetaObject)
    envelope = {"type": "object", "required": list(fields), "properties": fields}
    return {
        "description": HTTPStatus(endpoint.status).phrase,
        "headers": _header_references(endpoint.status),
        "content": {JSON: {"schema": envelope, "example": schemas.example(envelope, known)}},
    }


def curl(server: str, endpoint: Endpoint, body: Mapping[str, Any] | None) -> str:
    """The call as one types it in a shell, the key in `$CLE`."""
    path = endpoint.path
    query = {}
    for parameter in endpoint.parameters:
        if parameter.where == "path":
            path = path.replace(f"{{{parameter.name}}}", quote(parameter.sample or "", safe=""))
        elif parameter.sample is not None:
            query[parameter.name] = parameter.sample
    lines = [f"curl {shlex.quote(server + path + (f'?{urlencode(query)}' if query else ''))}"]
    if endpoint.method != "GET" and (endpoint.method != "POST" or body is None):
        lines[0] = f"curl -X {endpoint.method}{lines[0].removeprefix('curl')}"
    lines.append('-H "Authorization: Bearer $CLE"')
    if body is not None:
        lines.append(f'-H "Content-Type: {JSON}"')
        lines.append(f"-d {shlex.quote(json.dumps(body, ensure_ascii=False, indent=2))}")
    return " \\\n  ".join(lines)


# --- errors -----------------------------------------------------------------------------------------------------------


def _by_status(errors: Iterable[type[GuichetError]]) -> dict[int, list[type[GuichetError]]]:
    grouped: dict[int, list[type[GuichetError]]] = {}
    for error in errors:
        grouped.setdefault(error.status, []).append(error)
    return dict(sorted(grouped.items()))


def _refusals(endpoint: Endpoint) -> Schema:
    grouped = _by_status((*_EVERYWHERE, *endpoint.errors))
    return {str(status): {"$ref": f"#/components/responses/{errors[0].__name__}"} for status, errors in grouped.items()}


def _error_responses() -> dict[str, Schema]:
    """One response for each status: the endpoints' own errors never share one."""
    own = [error for endpoint in ENDPOINTS for error in endpoint.errors]
    possible: list[type[GuichetError]] = list(dict.fromkeys([*_EVERYWHERE, MethodNotAllowed, *own]))
    return {
        errors[0].__name__: {
            "description": " ".join(f"`{error.code}` : {guide.MEANINGS[error.code]}" for error in errors),
            "headers": _header_references(status),
            "content": {
                JSON: {
                    "schema": schemas.reference(ErrorObject),
                    "examples": {error.code: {"value": _failure(error)} for error in errors},
                }
            },
        }
        for status, errors in _by_status(possible).items()
    }


def _failure(error: type[GuichetError]) -> Schema:
    failure: Schema = {"code": error.code, "message": error.default}
    if error is InvalidRequest:
        sentence = "Le prénom du client est obligatoire pour un paiement par carte."
        failure["message"] = f"customer.firstname : {sentence}"
        failure["details"] = {"customer.firstname": [sentence]}
    return {"success": False, "error": failure}


def _header_references(status: int) -> dict[str, Schema]:
    names = ["X-Request-Id", *_OWN_HEADERS.get(status, ())]
    if status != ServerError.status:  # A crash is answered further out than the limit is counted.
        names.append("X-RateLimit-Remaining")
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


# --- webhooks ---------------------------------------------------------------------------------------------------------


def _notification(event: str, known: Mapping[str, Schema]) -> Schema:
    model, meaning = NOTIFICATIONS[event]
    return {
        "operationId": event.replace(".", "_"),
        "summary": event,
        "description": f"{meaning} Guichet envoie ce corps par POST à votre adresse.",
        "security": [],
        "parameters": [_sent_header(name, *facts) for name, facts in _sent_headers(event).items()],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": schemas.reference(model), "example": _told(event, model, known)}},
        },
        "responses": {
            "2XX": {
                "description": f"Tout statut 2xx (200 ou 204), en moins de {ANSWER_TIMEOUT:.0f} secondes, accuse "
                "réception. Le corps de votre réponse n'est pas lu."
            },
            "default": {"description": "Tout autre statut, une redirection ou un silence : l'envoi sera retenté."},
        },
    }


def _sent_headers(event: str) -> dict[str, tuple[str, str]]:
    return {
        "X-Service-Event": ("Nom de l'événement.", event),
        "X-Service-Delivery": (
            "Identifiant de l'envoi, égal à l'`id` du corps, le même à chaque tentative.",
            "0b7d1a0e-3f5b-4f0e-9a4e-6d1c2b3a4f55",
        ),
        "X-Service-Signature": (
            "`t=<secondes Unix>,v1=<HMAC SHA-256 en hexadécimal>` ; la vérification est décrite plus haut.",
            "t=1795169730,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd",
        ),
        "User-Agent": ("Toujours la même valeur.", USER_AGENT),
    }


def _sent_header(name: str, description: str, sample: str) -> Schema:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
        "example": sample,
    }


def _told(event: str, model: type[Any], known: Mapping[str, Schema]) -> Any:
    """The model's example, in the state that the event tells."""
    told = schemas.example(schemas.reference(model), known)
    told["event"] = event
    state = event.partition(".")[2]
    if "status" in told["data"]:
        told["data"] = {**told["data"], "status": state}
    for moved in ("updated_at", "processed_at"):
        if moved in told["data"]:
            told["data"][moved] = told["created_at"]
    return told
