"""POST /payments/{reference}/refund, GET /refunds, GET /refunds/{reference}; POST and GET
/payments/{reference}/refund-proposal (docs/contract.md, "Endpoints")."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from guichet.api.endpoint import (
    CREATED_FROM,
    CREATED_TO,
    IDEMPOTENCY_KEY,
    PAYMENT_REFERENCE,
    Endpoint,
    Parameter,
    paging,
)
from guichet.api.http import (
    Call,
    Page,
    SuccessResponse,
    requested_choice,
    requested_key,
    requested_page,
    requested_range,
)
from guichet.api.payments import find_payment
from guichet.db.engine import Reader
from guichet.domain.errors import Conflict, InvalidRequest, NotFound
from guichet.domain.money import plain, round_to_currency
from guichet.domain.payments import REFUND_STATUSES, Payment, Refund
from guichet.domain.refund_proposals import RefundProposal
from guichet.merchants import idempotency
from guichet.merchants.idempotency import IdempotencyKey
from guichet.payments import repository as payments
from guichet.refunds import proposal_repository, proposals
from guichet.refunds import repository as refunds
from guichet.refunds.disbursement import poll_refund
from guichet.refunds.repository import RefundFilter
from guichet.refunds.request import request_refund
from guichet.schemas.object_fields import REFUND_REFERENCE
from guichet.schemas.refund import RefundBody, RefundObject, RefundProposalObject, refund_object, refund_proposal_object
from guichet.schemas.stated_fields import REFUND_FIGURES, differs
from guichet.schemas.validation import invalid_request, parse_optional_object, validate


async def create_refund(call: Call) -> Response:
    raw = await call.body()
    payment, reason = await _requested_refund(call, raw)
    key = requested_key(call, raw)
    refund = None if key is None else await _created_before(call, call.ctx.db, key)
    if refund is None:
        try:
            refund = await request_refund(call.ctx, payment, reason, key=key)
        except Conflict:  # Perhaps of the same request, which came twice at the same time.
            if key is None:
                raise
            async with call.ctx.db.transaction() as tx:  # Which sees what SQLite is committing just now.
                refund = await _created_before(call, tx, key)
            if refund is None:
                raise
        else:
            return SuccessResponse(refund_object(refund), 201)
    await call.ctx.db.wait_for_replication()  # The request that made it may still wait for the standby.
    return SuccessResponse(refund_object(refund), 201)


async def propose_refund(call: Call) -> Response:
    """The new proposal, or the one that the payment has already."""
    raw = await call.body()
    payment, reason = await _requested_refund(call, raw)
    proposal = await proposals.propose(call.ctx, call.caller, payment, reason, requested_key(call, raw))
    return SuccessResponse(await _proposal_object(call, payment, proposal), 201)


async def read_refund_proposal(call: Call) -> Response:
    payment = await find_payment(call)
    proposal = await proposal_repository.of_payment(call.ctx.db, payment.id)
    if proposal is None:
        raise NotFound("Aucun remboursement de ce paiement n'a été proposé.")
    return SuccessResponse(await _proposal_object(call, payment, proposal))


async def _proposal_object(call: Call, payment: Payment, proposal: RefundProposal) -> RefundProposalObject:
    refund = None
    if proposal.status == "confirmed":
        refund = await refunds.of_payment(call.ctx.db, call.merchant_id, payment.id)
    url = f"{call.ctx.settings.public_url}/console/refund/{payment.reference}"
    return refund_proposal_object(proposal, payment, refund, url, call.ctx.clock.now())


async def _requested_refund(call: Call, raw: bytes) -> tuple[Payment, str | None]:
    """The payment that the address names, and the reason of the body. Raises InvalidRequest with every fault."""
    values = parse_optional_object(raw)
    try:
        body = validate(RefundBody, values, call.validation_context)
    except InvalidRequest as error:
        faults = {field: list(sentences) for field, sentences in (error.details or {}).items()}
        with suppress(NotFound):
            faults |= _stated_faults(await find_payment(call), values)
        raise invalid_request(faults) from None
    payment = await find_payment(call)
    if faults := _stated_faults(payment, values):
        raise invalid_request(faults)
    return payment, body.reason


async def _created_before(call: Call, db: Reader, key: IdempotencyKey) -> Refund | None:
    reference = await idempotency.find(db, key)
    return None if reference is None else await refunds.by_reference(db, call.merchant_id, call.env, reference)


def _stated_faults(payment: Payment, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Field → sentence where the body states another amount or currency than what goes back to the customer."""
    total, currency = payment.total_amount, payment.currency
    figures = [name for name in REFUND_FIGURES if name in values]
    if not figures and "currency" not in values:
        return {}
    whole = f"Le remboursement est toujours total : {plain(total)} {currency} pour ce paiement. Retirez ce champ."
    amounts = (total, round_to_currency(total, currency))
    faults = {name: [whole] for name in figures if differs(values, name, *amounts)}
    if values.get("currency") not in (None, currency):
        faults["currency"] = [whole]
    return faults


async def list_refunds(call: Call) -> Response:
    faults: dict[str, list[str]] = {}
    status = requested_choice(call.query, "status", REFUND_STATUSES, faults)
    since, until = requested_range(call.query, faults)
    refund_filter = RefundFilter(status, since, until)
    page = requested_page(call.query, faults)
    bounds = await page.bounds(partial(call.find, refunds.by_reference))
    if (reference := call.query.get("payment_reference")) is not None:
        matches = [refund for refund in await _of_payment(call, reference) if refund_filter.admits(refund)]
        return _listed(bounds.of(matches), page, len(matches))
    rows, total = await refunds.page(call.ctx.db, *call.merchant_scope, refund_filter, bounds)
    return _listed(rows, page, total)


async def _of_payment(call: Call, reference: str) -> list[Refund]:
    """The refund of the payment with this reference, or none."""
    payment = await call.find(payments.by_reference, reference)
    refund = None if payment is None else await refunds.of_payment(call.ctx.db, call.merchant_id, payment.id)
    return [] if refund is None else [refund]


def _listed(rows: list[Refund], page: Page, total: int) -> Response:
    return SuccessResponse([refund_object(row) for row in rows], meta=page.meta(total))


async def read_refund(call: Call) -> Response:
    """Polls the provider of a pending refund first."""
    refund = await call.find(refunds.by_reference, call.path_text("reference"))
    if refund is None:
        raise NotFound("Aucun remboursement de votre compte ne porte cette référence.")
    return SuccessResponse(refund_object(await poll_refund(call.ctx, refund)))


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/payments/{reference}/refund",
        create_refund,
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
        propose_refund,
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
        read_refund_proposal,
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
        list_refunds,
        "Lister les remboursements",
        "Les plus récents d'abord, dans l'environnement de la clé.",
        RefundObject,
        shape="page",
        parameters=(
            Parameter("status", "État du remboursement.", {"type": "string", "enum": list(REFUND_STATUSES)}),
            CREATED_FROM,
            CREATED_TO,
            Parameter("payment_reference", "La référence du paiement remboursé, exactement."),
            *paging("la `reference` du dernier remboursement reçu"),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "GET",
        "/refunds/{reference}",
        read_refund,
        "Lire un remboursement",
        "Si le versement est en cours, l'opérateur est interrogé avant la réponse.",
        RefundObject,
        parameters=(
            Parameter(
                "reference",
                "La référence **du remboursement**, et non celle du paiement.",
                where="path",
                sample=REFUND_REFERENCE,
            ),
        ),
        errors=(NotFound,),
    ),
)
