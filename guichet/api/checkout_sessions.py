"""POST /checkout-sessions, GET /checkout-sessions/{id}, POST /checkout-sessions/{id}/expire (docs/contract.md,
"Checkout sessions")."""

from typing import Final

from starlette.responses import Response

from guichet.api.endpoint import IDEMPOTENCY_KEY, Endpoint, Parameter
from guichet.api.http import Call, SuccessResponse, requested_key
from guichet.domain.errors import Conflict, InvalidRequest, NotFound
from guichet.domain.money import plain
from guichet.domain.payment_links import PaymentLink
from guichet.links import session_repository as sessions
from guichet.links.links import create_link, created_before
from guichet.payments import checkout_sessions
from guichet.payments.polling import poll_payment
from guichet.schemas.checkout_session import CheckoutSessionBody, CheckoutSessionObject, checkout_session_object
from guichet.schemas.envelope import RequestWarning, warning
from guichet.schemas.validation import invalid_request


async def create_session(call: Call) -> Response:
    """The new session, or the one that has the body's external_id already."""
    raw = await call.body()
    new_session, faults = await checkout_sessions.requested_session(call.ctx, call.caller, raw)
    key = requested_key(call, raw)
    if faults and await created_before(call.ctx.db, new_session, key) is None:
        raise invalid_request(faults)
    result = await create_link(call.ctx.db, call.caller, new_session, key)
    warnings = [] if result.created else _differences(result.link, new_session)
    return SuccessResponse(_object(call, result.link), 201, warnings=warnings)


def _differences(stored: PaymentLink, requested: PaymentLink) -> list[RequestWarning]:
    compared = {
        "amount": (plain(stored.amount), plain(requested.amount)),
        "currency": (stored.currency, requested.currency),
    }
    named = [f"{name} ({is_so} au lieu de {sent})" for name, (is_so, sent) in compared.items() if is_so != sent]
    return [warning("session_differs", differences=" ; ".join(named))] if named else []


async def read_session(call: Call) -> Response:
    """Polls the providers of its pending payments first."""
    session = await _find_session(call)
    pending = [row for row in await checkout_sessions.payments_of(call.ctx, session) if row.status == "pending"]
    for payment in pending:
        await poll_payment(call.ctx, payment)
    return SuccessResponse(_object(call, await _find_session(call) if pending else session))


async def expire_session(call: Call) -> Response:
    """Closed from now on; one that has expired stays as it is."""
    session = await _find_session(call)
    return SuccessResponse(_object(call, await checkout_sessions.expire(call.ctx, session.id)))


async def _find_session(call: Call) -> PaymentLink:
    """The merchant's session with this id or, if there is none, with this external_id. Raises NotFound."""
    text = call.path_text("id")
    session = await call.find(sessions.by_reference, text)
    session = session or await sessions.by_external_id(call.ctx.db, *call.merchant_scope, text)
    if session is None:
        raise NotFound("Aucune session de paiement de votre compte ne porte cet identifiant.")
    return session


def _object(call: Call, session: PaymentLink) -> CheckoutSessionObject:
    return checkout_session_object(session, f"{call.ctx.settings.public_url}/pay")


_ID: Final = Parameter(
    "id",
    "L'`id` de la session, ou votre `external_id` encodé pour une adresse (`/` devient `%2F`).",
    where="path",
    sample="commande-1042",
)

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/checkout-sessions",
        create_session,
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
        read_session,
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
        expire_session,
        "Fermer une session de paiement",
        "Plus personne ne pourra la payer. `409 conflict` tant qu'un de ses paiements est `pending` (`reason` : "
        "`session_pending`), ou si elle est payée (`session_completed`) ; `reference` est celle du paiement. Une "
        "session déjà `expired` est rendue telle quelle.",
        CheckoutSessionObject,
        parameters=(_ID,),
        errors=(Conflict, NotFound),
    ),
)
