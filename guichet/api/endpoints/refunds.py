"""Endpoints of refunds."""

from typing import Final

from guichet.api import refunds
from guichet.api.endpoints.endpoint import (
    CREATED_FROM,
    CREATED_TO,
    IDEMPOTENCY_KEY,
    PAYMENT_REFERENCE,
    Endpoint,
    Parameter,
    paging,
)
from guichet.domain.errors import Conflict, InvalidRequest, NotFound
from guichet.domain.payments import REFUND_STATUSES
from guichet.schemas.object_fields import REFUND_REFERENCE
from guichet.schemas.refund import RefundBody, RefundObject, RefundProposalObject

REFUNDS: Final = "Remboursements"

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/payments/{reference}/refund",
        refunds.create_refund,
        REFUNDS,
        "Rembourser un paiement",
        "Enregistre la demande de remboursement total d'un paiement `succeeded`. Le versement est exécuté ensuite ; "
        "l'issue arrive par `refund.succeeded` ou `refund.failed`. En test, la réponse est déjà `succeeded`.\n\n"
        "Il n'y a pas de remboursement partiel : un `amount` autre que le `total_amount` du paiement est refusé.\n\n"
        "Un paiement n'a jamais qu'un remboursement. Le client reçoit `refunded_amount`, ce qui lui avait été "
        "débité ; votre solde est débité de l'`amount` du paiement, et les frais sont rendus par le service. Si le "
        "solde ne suffit pas, le remboursement échoue et rien "
        "n'est pris. Un `409` dit pourquoi dans `error.reason` ; `already_refunded` donne la référence du "
        "remboursement.",
        RefundObject,
        201,
        body=RefundBody,
        parameters=(PAYMENT_REFERENCE, IDEMPOTENCY_KEY),
        errors=(InvalidRequest, NotFound, Conflict),
        requests={"Avec un motif": {"reason": "Article indisponible"}, "Sans motif": {}},
    ),
    Endpoint(
        "POST",
        "/payments/{reference}/refund-proposal",
        refunds.propose_refund,
        REFUNDS,
        "Proposer un remboursement",
        "Pour un programme qui ne doit pas rembourser lui-même. Rien n'est remboursé par cet appel : une personne de "
        "votre équipe voit la proposition dans la console, à `url` aussi, et la confirme ou la décline, dans les sept "
        "jours. Un remboursement confirmé est un remboursement comme un autre.\n\n"
        "Répété pour le même paiement pendant ces sept jours, l'appel rend la proposition telle qu'elle est "
        "devenue, aussi avec `201`, et n'en ouvre pas d'autre. Un `409` dit dans `error.reason` pourquoi le "
        "paiement n'est pas remboursable.",
        RefundProposalObject,
        201,
        body=RefundBody,
        parameters=(PAYMENT_REFERENCE, IDEMPOTENCY_KEY),
        errors=(InvalidRequest, NotFound, Conflict),
        requests={"Avec un motif": {"reason": "Article indisponible"}, "Sans motif": {}},
    ),
    Endpoint(
        "GET",
        "/payments/{reference}/refund-proposal",
        refunds.read_refund_proposal,
        REFUNDS,
        "Lire la proposition de remboursement d'un paiement",
        "Où en est la dernière proposition : `open`, `confirmed` avec la référence du remboursement, `declined` ou "
        "`expired`.",
        RefundProposalObject,
        parameters=(PAYMENT_REFERENCE,),
        errors=(NotFound,),
    ),
    Endpoint(
        "GET",
        "/refunds",
        refunds.list_refunds,
        REFUNDS,
        "Lister les remboursements",
        "Les plus récents d'abord, dans l'environnement de la clé.",
        RefundObject,
        shape="page",
        parameters=(
            Parameter("status", {"type": "string", "enum": list(REFUND_STATUSES)}, "État du remboursement."),
            CREATED_FROM,
            CREATED_TO,
            Parameter("payment_reference", {"type": "string"}, "La référence du paiement remboursé, exactement."),
            *paging("la `reference` du dernier remboursement reçu"),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "GET",
        "/refunds/{reference}",
        refunds.read_refund,
        REFUNDS,
        "Lire un remboursement",
        "Si le versement est en cours, l'opérateur est interrogé avant la réponse.",
        RefundObject,
        parameters=(
            Parameter(
                "reference",
                {"type": "string"},
                "La référence **du remboursement**, et non celle du paiement.",
                "path",
                REFUND_REFERENCE,
            ),
        ),
        errors=(NotFound,),
    ),
)
