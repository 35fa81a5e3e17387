"""Endpoints of webhooks."""

from typing import Final

from guichet.api import webhooks
from guichet.api.endpoints.endpoint import CREATED_FROM, CREATED_TO, Endpoint, Parameter, paging
from guichet.domain.errors import Conflict, InvalidRequest, NotFound
from guichet.domain.events import DELIVERY_STATUSES, EVENT_NAMES
from guichet.schemas.object_fields import DELIVERY_ID
from guichet.schemas.webhook_delivery import WebhookDeliveryObject
from guichet.schemas.webhook_endpoint import (
    EndpointBody,
    WebhookEndpointObject,
    WebhookTestObject,
    WrittenWebhookEndpointObject,
)

WEBHOOKS: Final = "Webhooks"

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/webhooks/endpoint",
        webhooks.read_endpoint,
        WEBHOOKS,
        "Lire le point de terminaison",
        "Celui de l'environnement de la clé.",
        WebhookEndpointObject,
    ),
    Endpoint(
        "PUT",
        "/webhooks/endpoint",
        webhooks.configure_endpoint,
        WEBHOOKS,
        "Configurer le point de terminaison",
        "N'agit que sur l'environnement de la clé. Le secret est créé avec la première adresse. `warnings` dit si "
        "aucun webhook ne pourra atteindre l'adresse.",
        WrittenWebhookEndpointObject,
        body=EndpointBody,
        errors=(InvalidRequest,),
        requests={
            "Configurer": {"url": "https://boutique.example/webhooks/guichet"},
            "Changer de secret": {"url": "https://boutique.example/webhooks/guichet", "rotate_secret": True},
            "Désactiver": {"url": None},
        },
    ),
    Endpoint(
        "POST",
        "/webhooks/test",
        webhooks.send_test,
        WEBHOOKS,
        "Envoyer un événement de test",
        "Met en file un événement `webhook.test`, signé comme un vrai. Sans point de terminaison, la réponse est aussi "
        "`200`, avec `sent: false` et la raison dans `message`.",
        WebhookTestObject,
    ),
    Endpoint(
        "GET",
        "/webhooks/deliveries",
        webhooks.list_deliveries,
        WEBHOOKS,
        "Lire le journal des envois",
        "Les plus récents d'abord, dans l'environnement de la clé. Un envoi terminé reste au journal 90 jours, sauf "
        "réglage contraire de l'exploitant.",
        WebhookDeliveryObject,
        shape="page",
        parameters=(
            Parameter("status", {"type": "string", "enum": list(DELIVERY_STATUSES)}, "État de l'envoi."),
            Parameter("event", {"type": "string", "enum": list(EVENT_NAMES)}, "Nom de l'événement."),
            Parameter(
                "payment_reference",
                {"type": "string"},
                "La référence du paiement : ses événements et ceux de son remboursement.",
            ),
            CREATED_FROM,
            CREATED_TO,
            *paging("l'`id` du dernier envoi reçu"),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "POST",
        "/webhooks/deliveries/{id}/resend",
        webhooks.resend_delivery,
        WEBHOOKS,
        "Renvoyer un webhook",
        "Donne cinq nouvelles tentatives à un envoi terminé, réussi ou non : même `id`, même corps, à l'adresse "
        "actuelle. Pour tout rattraper après une panne, lisez plutôt `GET /events`.",
        WebhookDeliveryObject,
        parameters=(
            Parameter(
                "id", {"type": "string"}, "L'`id` de l'envoi, qui est celui de l'événement.", "path", DELIVERY_ID
            ),
        ),
        errors=(NotFound, Conflict),
    ),
)
