"""The webhooks of the OpenAPI document: each event with its headers and body (docs/contract.md, "Webhooks")."""

from typing import Final

from guichet.api import json_schema
from guichet.api.json_schema import Schema
from guichet.api.recorded_examples import recorded
from guichet.domain.events import ANSWER_TIMEOUT, EventName
from guichet.schemas.json_codec import JSON
from guichet.schemas.notification import NOTIFICATIONS
from guichet.webhooks.sender import USER_AGENT

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
    sent = recorded().webhooks[event]
    return {
        "X-Service-Event": ("Nom de l'événement.", event),
        "X-Service-Delivery": (
            "Identifiant de l'envoi, égal à l'`id` du corps, le même à chaque tentative.",
            sent.body["id"],
        ),
        "X-Service-Signature": (
            "`t=<secondes Unix>,v1=<HMAC SHA-256 en hexadécimal>` ; la vérification est décrite plus haut.",
            sent.signature,
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
