"""The error responses of the OpenAPI document, and the headers of all responses.

Source: docs/contract.md, "Errors" and "Limits".

The webhooks of the OpenAPI document: each event with its headers and body (docs/contract.md, "Webhooks").
"""

from collections.abc import Iterable
from typing import Final

from guichet.api import guide, json_schema
from guichet.api.endpoint import Endpoint
from guichet.api.endpoint_table import ENDPOINTS
from guichet.api.json_schema import Schema
from guichet.api.recorded_examples import as_examples, recorded
from guichet.domain.errors import (
    AddressNotAllowed,
    GuichetError,
    InsufficientScope,
    KeyExpired,
    MerchantInactive,
    RateLimited,
    ServerError,
    Unauthorized,
)
from guichet.domain.events import ANSWER_TIMEOUT, EventName
from guichet.schemas.envelope import ErrorEnvelopeObject
from guichet.schemas.notification import NOTIFICATIONS
from guichet.webhooks.sender import USER_AGENT

JSON: Final = "application/json"
#: The errors that every endpoint can answer besides its own.
_COMMON_ERRORS: Final = (
    Unauthorized,
    KeyExpired,
    MerchantInactive,
    AddressNotAllowed,
    InsufficientScope,
    RateLimited,
    ServerError,
)
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
    "RateLimit-Limit": {
        "description": "Requêtes permises par minute.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "RateLimit-Remaining": {
        "description": "Comme `X-RateLimit-Remaining`.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "RateLimit-Reset": {
        "description": "Secondes jusqu'à ce qu'une requête de plus soit permise.",
        "schema": {"type": "integer", "minimum": 1},
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
}
_LIMITED: Final = ("X-RateLimit-Remaining", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
#: HTTP status → the headers that only its responses have.
_STATUS_HEADERS: Final = {401: ("WWW-Authenticate",), 429: ("Retry-After",)}


def headers(*, limited: bool) -> dict[str, Schema]:
    """Name → header; `limited` says whether there is a limit to announce on every response."""
    described = {name: dict(header) for name, header in _HEADERS.items()}
    for name in _LIMITED:
        described[name]["required"] = limited
    return described


def _by_status(errors: Iterable[type[GuichetError]]) -> dict[int, list[type[GuichetError]]]:
    grouped: dict[int, list[type[GuichetError]]] = {}
    for error in errors:
        grouped.setdefault(error.status, []).append(error)
    return dict(sorted(grouped.items()))


def error_references(endpoint: Endpoint) -> Schema:
    """HTTP status → reference to the response, for every error that the endpoint can answer."""
    grouped = _by_status((*_COMMON_ERRORS, *endpoint.errors))
    return {str(status): {"$ref": f"#/components/responses/{errors[0].__name__}"} for status, errors in grouped.items()}


def error_responses() -> dict[str, Schema]:
    """One response for each status: an endpoint's own errors never have the same status.

    405 is not among them: it belongs to the verbs that are not there, and the introduction tells of it.
    """
    own = [error for endpoint in ENDPOINTS for error in endpoint.errors]
    examples = recorded().errors
    possible: list[type[GuichetError]] = list(dict.fromkeys([*_COMMON_ERRORS, *own]))
    return {
        errors[0].__name__: {
            "description": " ".join(f"`{error.code}` : {guide.MEANINGS[error.code]}" for error in errors),
            "headers": header_references(status),
            "content": {
                JSON: {
                    "schema": json_schema.reference(ErrorEnvelopeObject),
                    "examples": as_examples({error.code: examples[error.code] for error in errors}),
                }
            },
        }
        for status, errors in _by_status(possible).items()
    }


def header_references(status: int) -> dict[str, Schema]:
    names = ["X-Request-Id", *_STATUS_HEADERS.get(status, ())]
    if status != ServerError.status:  # A crash is answered by an outer layer, which knows no limit.
        names += _LIMITED
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


#: Webhooks have a tag of their own, so that generated clients keep them apart from what a merchant calls.
TAG: Final = "Notifications"
TAG_DESCRIPTION: Final = "Ce que Guichet envoie à votre adresse. Il n'y a rien à appeler ici."

#: The Python generator writes parameters of webhooks without their types, which is no Python, unless it is told some.
_PYTHON_TYPE: Final = {"x-py-typing": "Any"}


def webhook(event: EventName) -> Schema:
    model, meaning = NOTIFICATIONS[event]
    content = {"schema": json_schema.reference(model), "example": recorded().webhooks[event].body}
    return {
        "operationId": event.replace(".", "_"),
        "tags": [TAG],
        "summary": event,
        "description": f"{meaning} Guichet envoie ce corps par POST à votre adresse.",
        "security": [],
        "parameters": [_header_parameter(name, *facts) for name, facts in _request_headers(event).items()],
        "requestBody": {"required": True, "content": {JSON: content}, **_PYTHON_TYPE},
        "responses": {
            "2XX": {
                "description": f"Tout statut 2xx (200 ou 204), en moins de {ANSWER_TIMEOUT:.0f} secondes, accuse "
                "réception. Le corps de votre réponse n'est pas lu."
            },
            "default": {"description": "Tout autre statut, une redirection ou un silence : l'envoi sera retenté."},
        },
    }


def _request_headers(event: EventName) -> dict[str, tuple[str, str]]:
    """Name → description and example."""
    delivery = recorded().webhooks[event]
    return {
        "X-Service-Event": ("Nom de l'événement.", event),
        "X-Service-Delivery": (
            "Identifiant de l'envoi, égal à l'`id` du corps, le même à chaque tentative.",
            delivery.body["id"],
        ),
        "X-Service-Signature": (
            "`t=<secondes Unix>,v1=<HMAC SHA-256 en hexadécimal>` ; la vérification est décrite plus haut.",
            delivery.signature,
        ),
        "webhook-id": ("Comme `X-Service-Delivery` (Standard Webhooks).", delivery.body["id"]),
        "webhook-timestamp": ("Comme `t`, en secondes Unix.", delivery.signature.partition(",")[0].removeprefix("t=")),
        "webhook-signature": (
            "`v1,<HMAC SHA-256 en base64>`, deux pendant un changement de secret avec `overlap_hours`. La clé est le "
            "secret sans `whsec_`, décodé du base64.",
            "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        ),
        "User-Agent": ("Toujours la même valeur.", USER_AGENT),
    }


def _header_parameter(name: str, description: str, sample: str) -> Schema:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
        "example": sample,
        **_PYTHON_TYPE,
    }
