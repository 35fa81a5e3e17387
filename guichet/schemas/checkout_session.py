"""A checkout session, and the body that creates one (docs/contract.md, "Checkout sessions")."""

from typing import Annotated, Final, cast

from msgspec import Raw
from pydantic import Field
from typing_extensions import TypedDict

from guichet.clock import Instant, iso
from guichet.domain.money import number
from guichet.domain.payment_links import SESSION_STATUSES, PaymentLink, SessionStatus
from guichet.schemas import body_fields, stated_fields
from guichet.schemas.body_fields import Date, Metadata
from guichet.schemas.object_fields import (
    CREATED_AT,
    LINK_URL,
    SESSION_ID,
    CurrencyCode,
    Number,
    RawJsonObject,
    Timestamp,
    Url,
    Uuid,
    example,
    text_schema,
)
from guichet.schemas.payment import Customer
from guichet.schemas.validation import Amount, Body, ExternalId, OperatorCode, RequestedCurrency, Text255

#: How long a session is open where the merchant does not say it, and at most.
LASTS_HOURS: Final = 24
LASTS_AT_MOST_DAYS: Final = 30


class CheckoutSessionObject(TypedDict):
    """Une page de paiement hébergée pour une seule commande : le client y choisit son pays et son moyen de paiement."""

    id: Annotated[Uuid, example(SESSION_ID)]
    """Identifiant de la session."""
    url: Annotated[Url, example(LINK_URL)]
    """Page à ouvrir par le client. Impossible à deviner ; qui la possède peut l'ouvrir, et y voit où en est le
    paiement."""
    status: Annotated[SessionStatus, text_schema(enum=list(SESSION_STATUSES)), example("open")]
    """`open` → `completed` (un paiement a abouti) ou `expired` (plus aucun n'aboutira). Elle reste `open` tant qu'un de
    ses paiements est `pending`, même après `expires_at`."""
    payment_reference: Annotated[Uuid | None, example(None)]
    """Référence du paiement qui l'a payée ; `null` tant qu'elle n'est pas `completed`."""
    amount: Annotated[Number, example(5000)]
    """Ce que vous encaissez."""
    currency: Annotated[CurrencyCode, example("XOF")]
    """Devise."""
    description: Annotated[str, example("Commande 1042")]
    """Libellé montré au client."""
    external_id: Annotated[str | None, example("commande-1042")]
    """Votre identifiant de la session ; `null` s'il n'a pas été envoyé. Ses paiements le rappellent dans
    `checkout_session`."""
    return_url: Annotated[Url | None, example("https://boutique.example/merci")]
    """Page où le client revient après le paiement ; `null` si elle n'a pas été envoyée."""
    cancel_url: Annotated[Url | None, example("https://boutique.example/panier")]
    """Page où mène le renoncement ; `null` si elle n'a pas été envoyée."""
    metadata: Annotated[RawJsonObject | None, example({"panier": 77})]
    """Exactement ce que vous avez envoyé, octet pour octet, comme dans chacun de ses paiements ; `null` sinon."""
    operators: Annotated[list[str] | None, example(None)]
    """Les seuls opérateurs proposés ; `null` : tous ceux qui sont ouverts à votre compte."""
    expires_at: Annotated[Timestamp, example("2026-11-21T11:16:42.456789Z")]
    """Fin : personne ne peut plus commencer à payer."""
    created_at: Annotated[Timestamp, example(CREATED_AT)]
    """Date de création."""


class CheckoutSessionBody(Body):
    """POST /checkout-sessions."""

    misread = stated_fields.SESSION

    currency: RequestedCurrency = "XOF"
    """Devise du paiement."""
    amount: Amount
    """Ce que vous encaissez, dans l'unité principale. Entier en XOF et XAF, deux décimales au plus en EUR et USD."""
    description: Annotated[Text255, Field(examples=["Commande 1042"])]
    """Libellé montré au client."""
    external_id: Annotated[ExternalId | None, Field(examples=["commande-1042"])] = None
    """Votre identifiant de la session, unique parmi vos sessions de l'environnement. Il rend l'appel rejouable :
    répété, il rend la session existante et ne crée rien."""
    return_url: body_fields.Url | None = None
    """Page où le client revient après le paiement (http ou https) ; `reference` et `status` du paiement y sont
    ajoutés."""
    cancel_url: body_fields.Url | None = None
    """Page où mène le lien par lequel le client renonce (http ou https)."""
    metadata: Metadata = None
    """Données libres, rendues telles quelles dans la session, dans ses paiements et dans leurs webhooks."""
    customer: Customer | None = None
    """Ce que vous savez du client : le formulaire en est prérempli, et ses paiements le portent."""
    operators: Annotated[list[OperatorCode] | None, Field(min_length=1, examples=[["mtn", "moov"]])] = None
    """Les seuls opérateurs que le client peut choisir. Sans ce champ, tous ceux qui sont ouverts à votre compte."""
    expires_at: Date = None
    """Fin de la session, dans les 30 jours. Sans ce champ, 24 heures après la création. Sans fuseau, la date est lue en
    UTC."""


def checkout_session_object(session: PaymentLink, pages_url: str) -> CheckoutSessionObject:
    """`pages_url` is the public address of the link pages, without a slash at its end."""
    return {
        "id": cast("str", session.session_reference),
        "url": f"{pages_url}/{session.path}",
        "status": cast("SessionStatus", session.session_status),
        "payment_reference": session.payment_reference,
        "amount": number(session.amount),
        "currency": session.currency,
        "description": session.description,
        "external_id": session.external_id,
        "return_url": session.return_url,
        "cancel_url": session.cancel_url,
        "metadata": None if session.metadata is None else Raw(session.metadata.encode()),
        "operators": None if session.operators is None else session.operators.split(","),
        "expires_at": iso(cast("Instant", session.expires_at)),
        "created_at": iso(session.created_at),
    }
