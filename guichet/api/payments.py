"""POST /payments, GET /payments, GET /payments/{reference} (docs/contract.md, "Endpoints")."""

from functools import partial
from typing import Final

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
from guichet.api.guide import whole_amount
from guichet.api.http import Call, Page, SuccessResponse, requested_key, requested_page, requested_range
from guichet.domain.catalogue import MAX_DEBIT, MIN_DEBIT, Catalogue, mode_faults, quote
from guichet.domain.errors import Conflict, InvalidRequest, NotFound, PaymentFailed
from guichet.domain.money import CURRENCIES, DEFAULT_CURRENCY
from guichet.domain.payment_links import link_number
from guichet.domain.payments import PAYMENT_STATUSES, ApiPayment, Payment, PaymentStatus
from guichet.domain.phone_numbers import written_forms
from guichet.payments import create, lists
from guichet.payments import repository as payments
from guichet.payments.create import CreatedPayment, request_warnings
from guichet.payments.lists import PaymentFilter
from guichet.schemas.envelope import warning
from guichet.schemas.payment import PaymentBody, PaymentObject, payment_object
from guichet.schemas.stated_fields import PAYMENT_FIGURES, payment_faults
from guichet.schemas.validation import amount_or_none, invalid_request, parse_object, validate


async def create_payment(call: Call) -> Response:
    raw = await call.body()
    body = await _payment_request(call, raw)
    key = requested_key(call, raw)
    result = await create.create_payment(call.ctx, call.caller, body, key=key)
    warnings = request_warnings(call.ctx, call.env, body, result, key)
    if result.created:
        return SuccessResponse(_created(call, result), 201, warnings=warnings)
    # The body may name another mode than the payment that exists, which is returned as it is (D11).
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    mode = catalogue.by_operator(result.payment.operator)
    return SuccessResponse(payment_object(result.payment, mode), 201, warnings=warnings)


async def list_payments(call: Call) -> Response:
    query = call.query
    faults: dict[str, list[str]] = {}
    since, until = requested_range(query, faults)
    payment_filter = PaymentFilter(
        status=_status(query.get("status")),
        external_id=query.get("external_id"),
        since=since,
        until=until,
        link_id=None if (link := query.get("payment_link")) is None else link_number(link),
        phone_numbers=_digits(query.get("phone_number")),
    )
    page = requested_page(call.query, faults)
    bounds = await page.bounds(partial(_find, call))
    if payment_filter.external_id is not None and "\0" in payment_filter.external_id:
        return _listed(call, page, [], 0)
    rows, total = await lists.page(call.ctx.db, *call.merchant_scope, ApiPayment, payment_filter, bounds)
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    return _listed(call, page, [payment_object(row, catalogue.by_operator(row.operator)) for row in rows], total)


def _digits(phone_number: str | None) -> tuple[str, ...]:
    """Both forms of a number; a leading + may have been decoded to a space. What holds a NUL is nobody's."""
    return () if phone_number is None else tuple({*written_forms(phone_number.lstrip("+ ").replace("\0", "?"))})


def _listed(call: Call, page: Page, rows: list[PaymentObject], total: int) -> Response:
    """A `status` that does not exist was not read as it was meant (D12): a warning says so, and it is named too."""
    meta, status = page.meta(total), call.query.get("status")
    if status in (None, *PAYMENT_STATUSES):
        return SuccessResponse(rows, meta=meta)
    meta["ignored"] = ["status"]
    statuses = ", ".join(PAYMENT_STATUSES)
    return SuccessResponse(rows, meta=meta, warnings=[warning("unknown_status", status=status, statuses=statuses)])


async def read_payment(call: Call) -> Response:
    """Polls the provider of a pending payment first."""
    from guichet.payments.polling import poll_payment  # noqa: PLC0415 - a server listens without

    payment = await poll_payment(call.ctx, await find_payment(call))
    catalogue = await call.ctx.catalogues.of(call.merchant_id)
    return SuccessResponse(payment_object(payment, catalogue.by_operator(payment.operator)))


async def find_payment(call: Call) -> Payment:
    """The merchant's payment with this reference or, if there is none, with this external_id (D10).

    Raises NotFound, also for a payment of another merchant or environment.
    """
    payment = await _find(call, call.path_text("reference"))
    if payment is None:
        raise NotFound("Aucun paiement de votre compte ne porte cette référence.")
    return payment


async def _find(call: Call, text: str) -> Payment | None:
    payment = await call.find(payments.by_reference, text)
    if payment is None and "\0" not in text:
        payment = await payments.by_external_id(call.ctx.db, call.merchant_id, call.env, text)
    return payment


async def _payment_request(call: Call, raw: bytes) -> PaymentBody:
    """The body as a request for a payment. Raises InvalidRequest with every fault at once: what the chosen mode
    requires is checked even if other fields are faulty.
    """
    values = parse_object(raw)
    context = {
        **call.validation_context,
        "raw": raw,
        "live": call.caller.env == "live",
    }
    try:
        body = validate(PaymentBody, values, context)
    except InvalidRequest as error:
        details = {field: list(faults) for field, faults in (error.details or {}).items()}
        catalogue = await call.ctx.catalogues.of(call.merchant_id)
        for field, faults in _mode_faults(catalogue, values).items():
            if field not in details and field.partition(".")[0] not in details:
                details[field] = faults
        raise invalid_request(details) from None
    if not PAYMENT_FIGURES.isdisjoint(values):
        catalogue = await call.ctx.catalogues.of(call.merchant_id)
        if details := _mode_faults(catalogue, values):
            raise invalid_request(details)
    return body


def _mode_faults(catalogue: Catalogue, values: dict[str, object]) -> dict[str, list[str]]:
    """What the mode named by a body forbids, and a fee or total that is not the one of this payment: field →
    sentences. Any value may be invalid; the faults of `amount` and `currency` themselves are told first."""
    operator, mode_id = values.get("operator"), values.get("payment_mode_id")
    try:
        mode = catalogue.choose(
            operator if isinstance(operator, str) else None,
            mode_id if isinstance(mode_id, int) and not isinstance(mode_id, bool) else None,
        )
    except InvalidRequest as error:
        return dict(error.details or {})
    amount, stated_currency = amount_or_none(values.get("amount")), values.get("currency") or DEFAULT_CURRENCY
    currency = next((known for known in CURRENCIES if known == stated_currency), None)
    quoted = None if amount is None or currency is None else quote(mode, amount)
    faults = mode_faults(mode, partial(_value_of, values), quoted, currency or DEFAULT_CURRENCY)
    if quoted is None or currency is None:
        return faults
    return faults | payment_faults(values, quoted.fee_amount, quoted.total_amount, currency)


def _value_of(values: dict[str, object], field: str) -> object:
    parent, _, name = field.rpartition(".")
    holder = values.get(parent) if parent else values
    return holder.get(name) if isinstance(holder, dict) else None


def _created(call: Call, result: CreatedPayment) -> PaymentObject:
    """With the `payment_url` of a card, which no other answer has (D11)."""
    payment, mode = result.payment, result.mode
    if not mode.is_card:
        return payment_object(payment, mode)
    test_page = f"{call.ctx.settings.public_url}/checkout/{payment.checkout_token}" if payment.env == "test" else None
    return payment_object(payment, mode, payment.redirect_url or test_page)


def _status(text: str | None) -> PaymentStatus | None:
    """An unknown status means `pending` (D12)."""
    if text is None:
        return None
    return text if text in PAYMENT_STATUSES else "pending"


_MOBILE: Final = {
    "amount": 5000,
    "operator": "mtn",
    "phone_number": "2290197001234",
    "description": "Commande 1042",
    "external_id": "commande-1042",
    "metadata": {"panier": 77},
}
_CARD: Final = {
    "amount": 15000,
    "operator": "VISA",
    "external_id": "commande-1044",
    "return_url": "https://boutique.example/merci?panier=77",
    "customer": {"firstname": "Awa", "lastname": "Diallo", "email": "awa@example.com"},
}
_SCENARIO: Final = {
    "amount": 5000,
    "operator": "mtn",
    "phone_number": "2290197000000",
    "test_scenario": "refund_failed",
}
_WITH_CODE: Final = {
    "amount": 2500,
    "operator": "orange_sn",
    "phone_number": "221771230000",
    "otp": "123456",
    "external_id": "commande-1043",
}

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/payments",
        create_payment,
        "Créer un paiement",
        "Demande à l'opérateur de débiter le client. **Un `201` n'est pas un encaissement** : le paiement est "
        "`pending`, et vous livrez quand il est `succeeded`.\n\n"
        "Répéter un `external_id` rend le paiement existant, aussi avec `201`, et ne crée rien. Un délai dépassé ne "
        "prouve pas que rien n'a été créé : rejouez avec le même `external_id`, ou la "
        "même `Idempotency-Key`. Si le montant, la devise, l'opérateur ou le numéro diffèrent de ceux du paiement "
        "existant, `warnings` le dit.\n\n"
        "Le total débité (montant et frais) d'un paiement Mobile Money doit être compris entre "
        f"{whole_amount(MIN_DEBIT)} et {whole_amount(MAX_DEBIT)}. Un "
        "refus immédiat de l'opérateur donne `402` : le paiement est enregistré `failed`, `error.reference` le nomme "
        "et `error.reason` dit pourquoi. Si c'est notre liaison avec l'opérateur qui ne fonctionne pas, la réponse "
        "est `500`, avec `error.reference` aussi ; rien n'a été débité.",
        PaymentObject,
        201,
        body=PaymentBody,
        parameters=(IDEMPOTENCY_KEY,),
        errors=(InvalidRequest, PaymentFailed, Conflict),
        requests={
            "Mobile Money": _MOBILE,
            "Mobile Money avec code (OTP)": _WITH_CODE,
            "Carte": _CARD,
            "Scénario de test": _SCENARIO,
        },
    ),
    Endpoint(
        "GET",
        "/payments",
        list_payments,
        "Lister les paiements",
        "Les plus récents d'abord, dans l'environnement de la clé. Pour tout parcourir, suivez `after` plutôt que "
        "`page` : des paiements arrivent et changent d'état pendant le parcours.",
        PaymentObject,
        shape="page",
        parameters=(
            Parameter(
                "status",
                "État. Une valeur inconnue vaut `pending`, et `warnings` le dit.",
                {"type": "string", "enum": list(PAYMENT_STATUSES)},
                sample="succeeded",
            ),
            Parameter("external_id", "Votre identifiant de commande, exactement."),
            Parameter("payment_link", "L'`id` d'un lien de paiement : ce qu'il a reçu."),
            Parameter("phone_number", "Le numéro débité, indicatif compris."),
            CREATED_FROM,
            CREATED_TO,
            *paging("la `reference` ou l'`external_id` du dernier paiement reçu"),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "GET",
        "/payments/{reference}",
        read_payment,
        "Lire un paiement",
        "Tant que le paiement est `pending`, l'opérateur est interrogé avant la réponse : prévoyez chez vous un délai "
        "d'attente d'au moins 30 secondes. `payment_url` vaut toujours `null` ici ; `redirect_url` y est tant que "
        "votre client doit confirmer sur la page de l'opérateur.",
        PaymentObject,
        parameters=(PAYMENT_REFERENCE,),
        errors=(NotFound,),
    ),
)
