"""POST /payments, GET /payments, GET /payments/{reference} (docs/contract.md, "Endpoints")."""

from starlette.responses import Response

from guichet.api.http import Call, requested_page, success_response
from guichet.clock import Instant, read_date
from guichet.db.references import parse_reference
from guichet.domain.catalogue import Catalogue, missing_fields
from guichet.domain.errors import InvalidRequest, NotFound
from guichet.domain.payments import PAYMENT_STATUSES, Payment, PaymentStatus
from guichet.payments import create
from guichet.payments import repository as payments
from guichet.payments.create import CreatedPayment, PaymentRequest
from guichet.payments.polling import poll_payment
from guichet.payments.repository import PaymentFilter
from guichet.schemas.json_codec import has_suspect_escape, parse_object, raw_has_bad_text, raw_member
from guichet.schemas.payment import (
    BAD_METADATA,
    Customer,
    PaymentBody,
    PaymentObject,
    created_payment_object,
    payment_object,
)
from guichet.schemas.validation import invalid_request, validate


async def create_payment(call: Call) -> Response:
    result = await create.create_payment(call.ctx, call.caller, await _payment_request(call))
    if result.created:
        return success_response(_created(call, result), 201)
    # The body may name another mode than the payment that exists, which is returned as it is (D11).
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    return success_response(_replayed(result.payment, catalogue), 201)


async def list_payments(call: Call) -> Response:
    query = call.request.query_params
    faults: dict[str, list[str]] = {}
    wanted = PaymentFilter(
        status=_status(query.get("status")),
        external_id=query.get("external_id"),
        since=_date(call, "from", faults),
        until=_date(call, "to", faults),
    )
    page = requested_page(call.request, faults)
    if wanted.external_id is not None and "\0" in wanted.external_id:
        return success_response([], meta=page.meta(0))
    rows, total = await payments.page(call.ctx.db, call.merchant_id, call.env, wanted, page.size, page.offset)
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    shown = [payment_object(row, catalogue.by_operator(row.operator)) for row in rows]
    return success_response(shown, meta=page.meta(total))


async def read_payment(call: Call) -> Response:
    """Polls the provider of a pending payment first."""
    payment = await poll_payment(call.ctx, await find_payment(call))
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    return success_response(payment_object(payment, catalogue.by_operator(payment.operator)))


async def find_payment(call: Call) -> Payment:
    """The merchant's payment with this reference or, if there is none, with this external_id (D10).

    Raises NotFound, also for a payment of another merchant or environment.
    """
    text = call.path_text("reference")
    payment = None
    if reference := parse_reference(text):
        payment = await payments.by_reference(call.ctx.db, call.merchant_id, call.env, reference)
    if payment is None:
        payment = await payments.by_external_id(call.ctx.db, call.merchant_id, call.env, text)
    if payment is None:
        raise NotFound("Aucun paiement de votre compte ne porte cette référence.")
    return payment


async def _payment_request(call: Call) -> PaymentRequest:
    """The body as a request for a payment. Raises InvalidRequest with every fault at once: what the chosen mode
    requires is checked even if other fields are faulty.
    """
    raw = await call.body()
    values = parse_object(raw)
    context = {**call.validation_context, "suspect": has_suspect_escape(raw), "live": call.caller.env == "live"}
    try:
        body = validate(PaymentBody, values, context)
    except InvalidRequest as error:
        details = {field: list(faults) for field, faults in (error.details or {}).items()}
        catalogue = await call.ctx.catalogues.of(call.merchant_id)
        for field, faults in _missing(catalogue, values).items():
            if field not in details and field.partition(".")[0] not in details:
                details[field] = faults
        raise invalid_request(details) from None
    metadata = None if body.metadata is None else raw_member(raw, "metadata")
    if context["suspect"] and metadata is not None and raw_has_bad_text(metadata):
        raise invalid_request({"metadata": [BAD_METADATA]})
    customer = body.customer or Customer()
    return PaymentRequest(
        amount=body.amount,
        currency=body.currency,
        operator=body.operator,
        payment_mode_id=body.payment_mode_id,
        phone_number=body.phone_number,
        otp=body.otp,
        firstname=customer.firstname,
        lastname=customer.lastname,
        email=customer.email,
        address=customer.address,
        country=customer.country,
        description=body.description,
        external_id=body.external_id,
        return_url=body.return_url,
        callback_url=body.callback_url,
        metadata=metadata,
        test_scenario=body.test_scenario,
    )


def _missing(catalogue: Catalogue, values: dict[str, object]) -> dict[str, list[str]]:
    """The fields that the mode named by a body requires and that the body does not have, each with a sentence."""
    operator, mode_id = values.get("operator"), values.get("payment_mode_id")
    try:
        mode = catalogue.choose(
            operator if isinstance(operator, str) else None,
            mode_id if isinstance(mode_id, int) and not isinstance(mode_id, bool) else None,
        )
    except InvalidRequest as error:
        return dict(error.details or {})
    customer = values.get("customer")
    given = dict(values)
    if isinstance(customer, dict):
        given |= {f"customer.{name}": value for name, value in customer.items()}
    return missing_fields(mode, given)


def _created(call: Call, result: CreatedPayment) -> PaymentObject:
    """`payment_url` only for a card, `redirect_url` only where the customer confirms on the provider's page (D31)."""
    payment, mode = result.payment, result.mode
    if mode.is_card:
        page = f"{call.ctx.settings.public_url}/checkout/{payment.checkout_token}" if payment.checkout_token else None
        return created_payment_object(payment, mode, payment_url=payment.redirect_url or page)
    return created_payment_object(payment, mode, redirect_url=payment.redirect_url)


def _replayed(payment: Payment, catalogue: Catalogue) -> PaymentObject:
    """Without the `payment_url` of a card (D11); with the provider's page while the customer has to go there (D60)."""
    mode = catalogue.by_operator(payment.operator)
    awaited = payment.status == "pending" and not (mode and mode.is_card)
    return created_payment_object(payment, mode, redirect_url=payment.redirect_url if awaited else None)


def _status(text: str | None) -> PaymentStatus | None:
    """An unknown status means `pending` (D12)."""
    if text is None:
        return None
    return text if text in PAYMENT_STATUSES else "pending"


def _date(call: Call, name: str, faults: dict[str, list[str]]) -> Instant | None:
    """A query parameter that is a date. A `+` before its offset may have been decoded to a space (D13)."""
    text = call.request.query_params.get(name)
    if text is None:
        return None
    instant = read_date(text)
    if instant is None and " " in text:
        instant = read_date("+".join(text.rsplit(" ", 1)))
    if instant is None:
        faults[name] = ["Une date AAAA-MM-JJ ou ISO-8601 est attendue."]
    return instant
