"""Endpoints of payment links."""

from typing import Final

from guichet.api import links
from guichet.api.endpoints.endpoint import Endpoint, Parameter, paging
from guichet.domain.errors import InvalidRequest, NotFound
from guichet.schemas.payment_link import LinkBody, PaymentLinkObject

LINKS: Final = "Liens de paiement"

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/payment-links",
        links.create_link,
        LINKS,
        "Créer un lien de paiement",
        "Clé de production seulement : avec une clé de test, la demande est refusée (`invalid_request`, sans "
        "`details`). Un lien ne se modifie pas et ne se désactive pas par l'API.\n\n"
        "Répéter un `external_id` rend le lien existant, aussi avec `201`, et ne crée rien. `metadata` est copié dans "
        "chaque paiement du lien et dans ses webhooks ; `payment_link` y dit de quel lien il vient.",
        PaymentLinkObject,
        201,
        body=LinkBody,
        errors=(InvalidRequest,),
        requests={
            "Limité": {
                "amount": 10000,
                "description": "Cotisation 2026",
                "type": "limité",
                "max_uses": 50,
                "expires_at": "2026-12-31T23:59:59Z",
            },
            "Permanent": {"amount": 2000, "description": "Don"},
            "Rejouable, avec retour chez vous": {
                "amount": 10000,
                "description": "Cotisation 2026",
                "type": "limité",
                "max_uses": 50,
                "expires_at": "2026-12-31T23:59:59Z",
                "external_id": "cotisation-2026",
                "metadata": {"association": 7},
                "return_url": "https://boutique.example/merci",
            },
        },
        live_only=True,
    ),
    Endpoint(
        "GET",
        "/payment-links",
        links.list_links,
        LINKS,
        "Lister les liens de paiement",
        "Les plus récents d'abord. La liste est toujours vide avec une clé de test.",
        PaymentLinkObject,
        shape="page",
        parameters=paging("l'`id` du dernier lien reçu"),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "GET",
        "/payment-links/{id}",
        links.read_link,
        LINKS,
        "Lire un lien de paiement",
        "Toujours `404` avec une clé de test.",
        PaymentLinkObject,
        parameters=(Parameter("id", {"type": "string"}, "L'`id` numérique du lien.", "path", "1"),),
        errors=(NotFound,),
    ),
)
