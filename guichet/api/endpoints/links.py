"""Endpoints of payment links."""

from typing import Final

from guichet.api import links
from guichet.api.endpoints.endpoint import IDEMPOTENCY_KEY, Endpoint, Parameter, paging
from guichet.domain.errors import Conflict, InvalidRequest, NotFound
from guichet.schemas.payment_link import LinkBody, PaymentLinkObject

LINKS: Final = "Liens de paiement"

_ID: Final = Parameter("id", {"type": "string"}, "L'`id` numérique du lien.", "path", "1")

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/payment-links",
        links.create_link,
        LINKS,
        "Créer un lien de paiement",
        "Clé de production seulement : avec une clé de test, la demande est refusée (`invalid_request`, sans "
        "`details`). Un lien ne se modifie pas ; il peut être fermé.\n\n"
        "Répéter un `external_id` rend le lien existant, aussi avec `201`, et ne crée rien. `metadata` est copié dans "
        "chaque paiement du lien et dans ses webhooks ; `payment_link` y dit de quel lien il vient.",
        PaymentLinkObject,
        201,
        body=LinkBody,
        parameters=(IDEMPOTENCY_KEY,),
        errors=(InvalidRequest, Conflict),
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
        parameters=(
            Parameter("external_id", {"type": "string"}, "Votre identifiant du lien, exactement."),
            *paging("l'`id` du dernier lien reçu"),
        ),
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
        parameters=(_ID,),
        errors=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/payment-links/{id}/close",
        links.close_link,
        LINKS,
        "Fermer un lien de paiement",
        "Plus personne ne peut commencer à payer : `expires_at` devient l'instant présent. Un paiement déjà commencé "
        "peut encore réussir. Un lien déjà fermé reste tel qu'il est.",
        PaymentLinkObject,
        parameters=(_ID,),
        errors=(NotFound,),
        live_only=True,
    ),
)
