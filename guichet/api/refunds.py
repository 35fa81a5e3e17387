"""POST /payments/{reference}/refund, GET /refunds, GET /refunds/{reference} (docs/contract.md, "Endpoints")."""

from starlette.responses import Response

from guichet.api.http import Call, requested_page, success_response
from guichet.api.payments import find_payment
from guichet.db.references import parse_reference
from guichet.domain.errors import NotFound
from guichet.payments import refund_repository as refunds
from guichet.payments.disbursement import poll_refund
from guichet.payments.refund import request_refund
from guichet.schemas.refund import RefundBody, refund_object


async def create_refund(call: Call) -> Response:
    body = await call.parse_body(RefundBody)
    refund = await request_refund(call.ctx, await find_payment(call), body.reason)
    return success_response(refund_object(refund), 201)


async def list_refunds(call: Call) -> Response:
    page = requested_page(call.request)
    rows, total = await refunds.page(call.ctx.db, call.merchant_id, call.env, page.size, page.offset)
    return success_response([refund_object(row) for row in rows], meta=page.meta(total))


async def read_refund(call: Call) -> Response:
    """Polls the provider of a pending refund first."""
    reference = parse_reference(call.path_text("reference"))
    refund = reference and await refunds.by_reference(call.ctx.db, call.merchant_id, call.env, reference)
    if not refund:
        raise NotFound("Aucun remboursement de votre compte ne porte cette référence.")
    return success_response(refund_object(await poll_refund(call.ctx, refund)))
