"""GET /disputes (docs/contract.md, "Endpoints")."""

from functools import partial
from typing import Final

from starlette.responses import Response

from guichet.api.endpoint import Endpoint, Parameter, paging
from guichet.api.http import Call, SuccessResponse, requested_choice, requested_page
from guichet.db.lists.pages import RowKey
from guichet.db.references import parse_reference
from guichet.disputes import repository as disputes
from guichet.disputes.repository import DisputeFilter
from guichet.domain.disputes import TOLD_STATUSES
from guichet.domain.errors import InvalidRequest
from guichet.schemas.dispute import DisputeObject, dispute_object


async def list_disputes(call: Call) -> Response:
    faults: dict[str, list[str]] = {}
    status = requested_choice(call.query, "status", TOLD_STATUSES, faults)
    page = requested_page(call.query, faults)
    bounds = await page.bounds(partial(_find, call))
    reference = None
    if (text := call.query.get("payment_reference")) is not None:
        reference = parse_reference(text)
        if reference is None:
            return SuccessResponse([], meta=page.meta(0))
    rows, total = await disputes.page(call.ctx.db, *call.merchant_scope, DisputeFilter(status, reference), bounds)
    return SuccessResponse([dispute_object(dispute) for dispute in rows], meta=page.meta(total))


async def _find(call: Call, text: str) -> RowKey | None:
    reference = parse_reference(text)
    dispute = None if reference is None else await disputes.find(call.ctx.db, reference)
    if dispute is None or (dispute.merchant_id, dispute.env) != call.merchant_scope:
        return None
    return RowKey(dispute.opened_at, dispute.id)


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/disputes",
        list_disputes,
        "Lister les contestations",
        "Les plus récentes d'abord. Une contestation naît chez la banque du porteur de la carte ; le statut du "
        "paiement ne change pas.",
        DisputeObject,
        shape="page",
        parameters=(
            Parameter("status", "État de la contestation.", {"type": "string", "enum": list(TOLD_STATUSES)}),
            Parameter("payment_reference", "La référence du paiement contesté, exactement."),
            *paging("la `reference` de la dernière contestation reçue"),
        ),
        errors=(InvalidRequest,),
    ),
)
