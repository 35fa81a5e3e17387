"""Where a merchant receives webhooks: the endpoint read and written, the body that writes it, the test event.

Source: docs/contract.md, "Resources" and "Requests".
"""

from typing import Annotated, Final, NotRequired

from pydantic import BeforeValidator, Field, field_validator
from typing_extensions import TypedDict

from guichet.domain.events import EVENTS, Delivery, EventName
from guichet.schemas.body_fields import WebhookUrl
from guichet.schemas.object_fields import DELIVERY_ID, WEBHOOK_URL, Uuid, example, open_enum
from guichet.schemas.validation import Body, Integer, refuse

_NO_ENDPOINT: Final = "Aucun point de terminaison n'est configuré : enregistrez une URL avec PUT /webhooks/endpoint."


class WrittenWebhookEndpointObject(TypedDict):
    """Votre point de terminaison, tel qu'il vient d'être enregistré."""

    url: Annotated[str | None, example(WEBHOOK_URL)]
    """Adresse appelée ; `null` si les webhooks sont désactivés."""
    secret: Annotated[str | None, Field(examples=["whsec_remplacez_par_votre_secret"], pattern="^whsec_")]
    """Clé de signature, `whsec_` compris ; `null` sans adresse."""
    livemode: Annotated[bool, example(False)]
    """`true` en production, `false` en test."""


class WebhookEndpointObject(WrittenWebhookEndpointObject):
    """Votre point de terminaison pour l'environnement de la clé."""

    events: Annotated[list[Annotated[EventName, open_enum(*EVENTS)]], example(list(EVENTS))]
    """Les événements envoyés. Il n'y a pas d'abonnement sélectif ; d'autres peuvent s'ajouter."""


class WebhookTestObject(TypedDict):
    """Le sort d'un événement de test."""

    sent: Annotated[bool, example(True)]
    """`true` : l'envoi est en file. Le journal dit ce qu'il est devenu."""
    delivery_id: Annotated[Uuid | None, example(DELIVERY_ID)]
    """Identifiant de l'envoi ; `null` s'il n'y en a pas."""
    url: Annotated[str | None, example(WEBHOOK_URL)]
    """Adresse appelée ; `null` sans point de terminaison."""
    message: NotRequired[Annotated[str, example(_NO_ENDPOINT)]]
    """Présent seulement avec `sent: false` : la raison."""


class EndpointBody(Body):
    """PUT /webhooks/endpoint. `url` must be present, even when null."""

    url: WebhookUrl | None = Field()
    """Adresse HTTPS publique. Le champ doit être présent ; `null` désactive les webhooks."""
    rotate_secret: Annotated[bool, BeforeValidator(lambda value: False if value is None else value)] = False
    """`true` remplace le secret ; l'ancien cesse aussitôt de valoir, sauf `overlap_hours`."""
    overlap_hours: Annotated[Integer | None, Field(json_schema_extra={"minimum": 0, "maximum": 24, "default": 0})] = (
        None
    )
    """Heures pendant lesquelles l'ancien secret signe encore dans `webhook-signature`, qui porte alors deux signatures.
    `X-Service-Signature` n'en porte jamais qu'une. Sans effet sans `rotate_secret`."""

    @field_validator("overlap_hours")
    @classmethod
    def _a_day_at_most(cls, value: int | None) -> int | None:
        if value is not None and not 0 <= value <= 24:
            raise refuse("Un nombre entier de 0 à 24 est attendu.")
        return value


def webhook_endpoint_object(url: str | None, secret: str | None, *, livemode: bool) -> WebhookEndpointObject:
    """Without a configured URL the secret is not shown (D33)."""
    return {"url": url, "secret": secret if url else None, "events": list(EVENTS), "livemode": livemode}


def written_webhook_endpoint_object(
    url: str | None, secret: str | None, *, livemode: bool
) -> WrittenWebhookEndpointObject:
    """What writing an endpoint answers: the contract lists no events here."""
    return {"url": url, "secret": secret if url else None, "livemode": livemode}


def webhook_test_object(delivery: Delivery | None) -> WebhookTestObject:
    """`delivery` is None when no endpoint is configured. `sent` means queued (D37)."""
    if delivery is None:
        return {"sent": False, "delivery_id": None, "url": None, "message": _NO_ENDPOINT}
    return {"sent": True, "delivery_id": delivery.reference, "url": delivery.url}
