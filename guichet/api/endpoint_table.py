"""The contract's table of endpoints: each route with everything that `/openapi.json` says about it.

Texts are in French because merchants read them. The errors that every endpoint can answer (401, 403, 429, 500) are not
repeated: see guichet/api/openapi.py. Source: docs/contract.md, "Endpoints".
"""

from typing import Final

from guichet.api import catalogue, checkout_sessions, disputes, events, links, payments, refunds, webhooks
from guichet.api.endpoint import Endpoint

#: The tags of `/openapi.json`: the description and the endpoints of each.
TAGS: Final[dict[str, tuple[str, tuple[Endpoint, ...]]]] = {
    "Paiements": (
        "Débiter un client par Mobile Money ou par carte, relire et lister les paiements.",
        payments.ENDPOINTS,
    ),
    "Remboursements": ("Rendre au client la totalité d'un paiement réussi.", refunds.ENDPOINTS),
    "Contestations": (
        "Les paiements par carte que leur porteur conteste auprès de sa banque.",
        disputes.ENDPOINTS,
    ),
    "Sessions de paiement": (
        "Une page hébergée par commande, où le client choisit son moyen de paiement.",
        checkout_sessions.ENDPOINTS,
    ),
    "Liens de paiement": (
        "Des pages de paiement hébergées, à montant fixe, à partager. En production seulement.",
        links.ENDPOINTS,
    ),
    "Catalogue": ("Les moyens de paiement ouverts à votre compte, et vos frais.", catalogue.ENDPOINTS),
    "Solde": ("Ce qui vous revient.", catalogue.WALLET_ENDPOINTS),
    "Webhooks": (
        "Où vous notifier, avec quelle clé signer, et ce que sont devenus les envois.",
        webhooks.ENDPOINTS,
    ),
    "Journal des événements": ("Ce qui est arrivé, à relire après une panne.", events.ENDPOINTS),
}

ENDPOINTS: Final = tuple(endpoint for _, endpoints in TAGS.values() for endpoint in endpoints)
