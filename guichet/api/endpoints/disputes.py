"""Endpoints of disputes."""

from typing import Final

from guichet.api import disputes
from guichet.api.endpoints.endpoint import Endpoint, Parameter, paging
from guichet.domain.disputes import TOLD_STATUSES
from guichet.domain.errors import InvalidRequest
from guichet.schemas.dispute import DisputeObject

DISPUTES: Final = "Contestations"

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/disputes",
        disputes.list_disputes,
        DISPUTES,
        "Lister les contestations",
        "Les plus récentes d'abord. Une contestation naît chez la banque du porteur de la carte ; le statut du "
        "paiement ne change pas.",
        DisputeObject,
        shape="page",
        parameters=(
            Parameter("status", {"type": "string", "enum": list(TOLD_STATUSES)}, "État de la contestation."),
            Parameter("payment_reference", {"type": "string"}, "La référence du paiement contesté, exactement."),
            *paging("la `reference` de la dernière contestation reçue"),
        ),
        errors=(InvalidRequest,),
    ),
)
