"""Endpoints of checkout sessions."""

from typing import Final

from guichet.api import checkout_sessions
from guichet.api.endpoints.endpoint import IDEMPOTENCY_KEY, Endpoint, Parameter
from guichet.domain.errors import Conflict, InvalidRequest, NotFound
from guichet.schemas.checkout_session import CheckoutSessionBody, CheckoutSessionObject

SESSIONS: Final = "Sessions de paiement"

_ID: Final = Parameter(
    "id",
    {"type": "string"},
    "L'`id` de la session, ou votre `external_id` encodé pour une adresse (`/` devient `%2F`).",
    "path",
    "commande-1042",
)

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/checkout-sessions",
        checkout_sessions.create_session,
        SESSIONS,
        "Créer une session de paiement",
        "Envoyez ensuite le client à `url`. Il y choisit son pays et son opérateur, et essaie un autre moyen si le "
        "premier échoue : une seule tentative est ouverte à la fois, et un second succès est remboursé d'office.\n\n"
        "Répéter un `external_id` rend la session existante, aussi avec `201`, quel que soit son statut, et ne crée "
        "rien.",
        CheckoutSessionObject,
        201,
        body=CheckoutSessionBody,
        parameters=(IDEMPOTENCY_KEY,),
        errors=(InvalidRequest, Conflict),
        requests={
            "Une commande": {
                "amount": 5000,
                "description": "Commande 1042",
                "external_id": "commande-1042",
                "return_url": "https://boutique.example/merci",
                "cancel_url": "https://boutique.example/panier",
            },
            "Deux opérateurs, client connu": {
                "amount": 5000,
                "description": "Commande 1043",
                "external_id": "commande-1043",
                "operators": ["mtn", "moov"],
                "customer": {"firstname": "Awa", "lastname": "Diallo", "email": "awa@example.com"},
                "metadata": {"panier": 77},
            },
        },
    ),
    Endpoint(
        "GET",
        "/checkout-sessions/{id}",
        checkout_sessions.read_session,
        SESSIONS,
        "Lire une session de paiement",
        "Si un de ses paiements est `pending`, l'état est d'abord redemandé à l'opérateur : comptez jusqu'à 30 "
        "secondes.",
        CheckoutSessionObject,
        parameters=(_ID,),
        errors=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/checkout-sessions/{id}/expire",
        checkout_sessions.expire_session,
        SESSIONS,
        "Fermer une session de paiement",
        "Plus personne ne pourra la payer. `409 conflict` tant qu'un de ses paiements est `pending` (`reason` : "
        "`session_pending`), ou si elle est payée (`session_completed`) ; `reference` est celle du paiement. Une "
        "session déjà `expired` est rendue telle quelle.",
        CheckoutSessionObject,
        parameters=(_ID,),
        errors=(Conflict, NotFound),
    ),
)
