"""The contract's table of endpoints: each route with everything that `/openapi.json` says about it.

Texts are in French because merchants read them. The errors that every endpoint can answer (401, 403, 429, 500) are not
repeated: see guichet/api/openapi.py. Source: docs/contract.md, "Endpoints".
"""

from typing import Final

from guichet.api import catalogue, checkout_sessions, disputes, events, links, payments, refunds, webhooks

TAGS: Final = {
    payments.PAYMENTS: "Débiter un client par Mobile Money ou par carte, relire et lister les paiements.",
    refunds.REFUNDS: "Rendre au client la totalité d'un paiement réussi.",
    disputes.DISPUTES: "Les paiements par carte que leur porteur conteste auprès de sa banque.",
    checkout_sessions.SESSIONS: "Une page hébergée par commande, où le client choisit son moyen de paiement.",
    links.LINKS: "Des pages de paiement hébergées, à montant fixe, à partager. En production seulement.",
    catalogue.CATALOGUE: "Les moyens de paiement ouverts à votre compte, et vos frais.",
    catalogue.WALLET: "Ce qui vous revient.",
    webhooks.WEBHOOKS: "Où vous notifier, avec quelle clé signer, et ce que sont devenus les envois.",
    events.EVENTS: "Ce qui est arrivé, à relire après une panne.",
}

ENDPOINTS: Final = (
    *payments.ENDPOINTS,
    *refunds.ENDPOINTS,
    *disputes.ENDPOINTS,
    *checkout_sessions.ENDPOINTS,
    *links.ENDPOINTS,
    *catalogue.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *events.ENDPOINTS,
)
