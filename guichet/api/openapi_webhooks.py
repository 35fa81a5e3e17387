"""The webhooks of the OpenAPI document: each event with its headers and body (docs/contract.md, "Webhooks")."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.api import json_schema
from guichet.api.json_schema import Schema
from guichet.domain.events import ANSWER_TIMEOUT, DISPUTE_OPENED, PAYMENT_FAILED, EventName
from guichet.schemas.json_codec import JSON
from guichet.schemas.notification import NOTIFICATIONS
from guichet.schemas.payment import PaymentFailureObject
from guichet.webhooks.sender import USER_AGENT

#: The status of an object where its event has another name.
_STATES: Final[dict[EventName, str]] = {DISPUTE_OPENED: "open"}


def webhook(event: EventName, known: Mapping[str, Schema]) -> Schema:
    model, meaning = NOTIFICATIONS[event]
    return {
        "operationId": event.replace(".", "_"),
        "summary": event,
        "description": f"{meaning} Guichet envoie ce corps par POST à votre adresse.",
        "security": [],
        "parameters": [_header_parameter(name, *facts) for name, facts in _request_headers(event).items()],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": json_schema.reference(model), "example": _example(event, model, known)}},
        },
        "responses": {
            "2XX": {
                "description": f"Tout statut 2xx (200 ou 204), en moins de {ANSWER_TIMEOUT:.0f} secondes, accuse "
                "réception. Le corps de votre réponse n'est pas lu."
            },
            "default": {"description": "Tout autre statut, une redirection ou un silence : l'envoi sera retenté."},
        },
    }


def _request_headers(event: EventName) -> dict[str, tuple[str, str]]:
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


def _header_parameter(name: str, description: str, sample: str) -> Schema:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
        "example": sample,
    }


def _example(event: EventName, model: type[Any], known: Mapping[str, Schema]) -> Any:
    """An example of the notification, its payment or refund in the state that the event announces."""
    shown = json_schema.example(json_schema.reference(model), known)
    shown["event"] = event
    state = _STATES.get(event, event.partition(".")[2])
    if event == PAYMENT_FAILED:
        shown["data"]["failure"] = json_schema.example(json_schema.reference(PaymentFailureObject), known)
    if "status" in shown["data"]:
        shown["data"] = {**shown["data"], "status": state}
    for changed in ("updated_at", "processed_at"):
        if changed in shown["data"]:
            shown["data"][changed] = shown["created_at"]
    return shown
