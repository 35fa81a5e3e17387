"""What the API answers and what webhooks carry, described once for `/openapi.json` and `/docs`.

Nothing is rendered from these models: `wire.render_*` does that, and tests hold one to the other in both directions.
Their docstrings are in French because merchants read them. A field without a default is in every answer.
"""

from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from guichet.domain.catalogue import MODE_TYPES
from guichet.domain.errors import BY_CODE
from guichet.domain.events import (
    DELIVERY_STATUSES,
    EVENTS,
    MAX_ATTEMPTS,
    PAYMENT_FAILED,
    PAYMENT_REFUNDED,
    PAYMENT_SUCCEEDED,
    REFUND_FAILED,
    REFUND_SUCCEEDED,
    WEBHOOK_TEST,
)
from guichet.domain.money import CURRENCIES
from guichet.domain.payment_links import LINK_TYPES
from guichet.domain.payments import PAYMENT_STATUSES, REFUND_STATUSES
from guichet.domain.posting_rules import WALLET_STATUSES


def text(**schema: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", **schema})


def open_list(*known: str) -> WithJsonSchema:
    """A text whose known values are listed, and to which v1 may add: a closed `enum` would break clients that day."""
    return text(**{KNOWN_VALUES: list(known)})


KNOWN_VALUES: Final = "x-extensible-enum"

Money = Annotated[Decimal, WithJsonSchema({"type": "number"})]
Uuid = Annotated[str, text(format="uuid")]
Moment = Annotated[str, text(format="date-time")]
Address = Annotated[str, text(format="uri")]
CurrencyCode = Annotated[str, text(enum=list(CURRENCIES))]
ModeType = Annotated[str, text(enum=list(MODE_TYPES))]

_CREATED: Final = "2026-11-20T10:15:30.123456Z"
_SETTLED: Final = "2026-11-20T10:15:41.234567Z"
_PAYMENT: Final = "5f0c4a52-6d0e-4c8f-9a55-0d7f6c1b2e34"
_REFUND: Final = "8a4a1f0c-2b7e-4c55-8f3d-1e2d3c4b5a69"
_DELIVERY: Final = "0b7d1a0e-3f5b-4f0e-9a4e-6d1c2b3a4f55"
_LINK: Final = "https://pay.example.com/pay/4kQ0yT7ZbN1xWm8RcV2dHs/9uLjE5aPfG3oKi6XtYqBnM"
_HOOK: Final = "https://boutique.example/webhooks/guichet"


def like(*examples: Any) -> Any:
    return Field(examples=list(examples))


class Resource(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)


class PaymentModeSummary(Resource):
    """Le moyen de paiement utilisé, en bref."""

    id: Annotated[int, like(1)]
    """Identifiant dans le catalogue, utilisable comme `payment_mode_id`."""
    name: Annotated[str, like("MTN MoMo")]
    """Nom à afficher."""
    type: Annotated[ModeType, like("mobile_money")]
    """Famille du moyen de paiement."""
    operator: Annotated[str, like("mtn")]
    """Code de l'opérateur, utilisable comme `operator`."""
    country: Annotated[str | None, like("Bénin")]
    """Nom du pays ; `null` pour un moyen qui n'appartient à aucun pays (cartes)."""
    country_code: Annotated[str | None, like("BJ")]
    """Code ISO-2 du pays ; `null` comme ci-dessus."""


class PaymentCustomer(Resource):
    """Le client, tel que vous l'avez décrit ; chaque champ vaut `null` s'il n'a pas été envoyé."""

    firstname: Annotated[str | None, like("Awa")]
    """Prénom."""
    lastname: Annotated[str | None, like("Diallo")]
    """Nom."""
    email: Annotated[str | None, like("awa@example.com")]
    """Adresse e-mail."""
    phone_number: Annotated[str | None, Field(examples=["2290197001234"], pattern="^[0-9]{8,15}$")]
    """Numéro en chiffres seulement, indicatif compris (un `+` initial est retiré)."""


class Payment(Resource):
    """Un paiement."""

    reference: Annotated[Uuid, like(_PAYMENT)]
    """Identifiant du paiement."""
    identifier: Annotated[str, Field(examples=["0000000042"], pattern="^[0-9]{10,}$")]
    """Numéro lisible et croissant, pour l'affichage seulement."""
    external_id: Annotated[str | None, like("commande-1042")]
    """Votre propre identifiant de commande ; `null` s'il n'a pas été envoyé."""
    status: Annotated[str, text(enum=list(PAYMENT_STATUSES)), like("pending")]
    """`pending` → `succeeded` ou `failed` ; `succeeded` → `refunded`. Livrez seulement à `succeeded`."""
    amount: Annotated[Money, like(5000)]
    """Ce que vous encaissez."""
    fee_amount: Annotated[Money, like(87.5)]
    """Frais de service, payés par le client en plus de `amount`."""
    total_amount: Annotated[Money, like(5087.5)]
    """Ce dont le client est débité : `amount` + `fee_amount`."""
    currency: Annotated[CurrencyCode, like("XOF")]
    """Devise du paiement."""
    description: Annotated[str, like("Commande 1042")]
    """Libellé de la commande."""
    payment_mode: PaymentModeSummary | None
    """Le moyen de paiement utilisé ; `null` s'il n'est plus disponible."""
    customer: PaymentCustomer
    """Le client."""
    payment_url: Annotated[Address | None, like(None)]
    """Page de paiement hébergée. Remplie seulement dans la réponse qui crée un paiement par carte, `null` partout
    ailleurs : lectures, listes, webhooks, Mobile Money, répétition d'un `external_id`."""
    metadata: Annotated[dict[str, Any] | None, like({"panier": 77})]
    """Exactement ce que vous avez envoyé, octet pour octet ; `null` sinon."""
    created_at: Annotated[Moment, like(_CREATED)]
    """Date de création (UTC)."""
    updated_at: Annotated[Moment, like(_CREATED)]
    """Date du dernier changement de `status` (UTC)."""


class CreatedPayment(Payment):
    """Un paiement, tel qu'il est répondu à sa création."""

    redirect_url: Annotated[Address, like("https://operateur.example/confirmer/3f2a")] = ""
    """Présent seulement quand l'opérateur confirme sur sa propre page ou application (Wave, Orange selon le pays) :
    envoyez-y votre client."""


class Refund(Resource):
    """Un remboursement : toujours total, et unique pour un paiement."""

    reference: Annotated[Uuid, like(_REFUND)]
    """Identifiant du remboursement (et non du paiement)."""
    payment_reference: Annotated[Uuid, like(_PAYMENT)]
    """Référence du paiement remboursé."""
    amount: Annotated[Money, like(5087.5)]
    """Montant rendu au client : le `total_amount` du paiement."""
    currency: Annotated[CurrencyCode, like("XOF")]
    """Devise du paiement d'origine."""
    status: Annotated[str, text(enum=list(REFUND_STATUSES)), like("pending")]
    """`pending` → `succeeded` ou `failed`."""
    reason: Annotated[str, like("Article indisponible")]
    """Motif enregistré."""
    processed_at: Annotated[Moment | None, like(None)]
    """Date d'exécution ; `null` tant que le remboursement est `pending`."""
    created_at: Annotated[Moment, like(_SETTLED)]
    """Date de la demande."""


class PaymentLink(Resource):
    """Un lien vers une page de paiement hébergée, à montant et libellé fixes."""

    id: Annotated[int, like(12)]
    """Identifiant numérique, pour `GET /payment-links/{id}`. Ce n'est pas le fragment aléatoire de `url`."""
    url: Annotated[Address, like(_LINK)]
    """Adresse publique à partager. Elle est impossible à deviner ; qui la possède peut ouvrir la page."""
    type: Annotated[str, text(enum=list(LINK_TYPES)), like("limité")]
    """`permanent` ou `limité` (avec l'accent)."""
    amount: Annotated[Money, like(10000)]
    """Ce que vous encaissez à chaque paiement, dans la devise par défaut de votre compte."""
    description: Annotated[str, like("Cotisation 2026")]
    """Libellé montré au client."""
    max_uses: Annotated[int | None, like(50)]
    """Nombre d'utilisations permises ; `null` pour un lien permanent."""
    uses_count: Annotated[int, like(3)]
    """Paiements aboutis par ce lien."""
    uses_left: Annotated[int | None, like(47)]
    """Utilisations restantes ; toujours `null` pour un lien permanent."""
    starts_at: Annotated[Moment | None, like(None)]
    """Ouverture ; `null` : dès la création."""
    expires_at: Annotated[Moment | None, like("2026-12-31T23:59:59.000000Z")]
    """Fermeture ; `null` : jamais."""
    created_at: Annotated[Moment, like(_CREATED)]
    """Date de création."""


class PaymentMode(PaymentModeSummary):
    """Un moyen de paiement ouvert à votre compte, avec vos frais."""

    fee_percent: Annotated[Money, like(1.75)]
    """Part proportionnelle des frais, en pourcentage."""
    fee_fixed: Annotated[Money, like(0)]
    """Part fixe des frais."""
    requires_otp: Annotated[bool, like(False)]
    """`true` : `otp` est obligatoire à la création d'un paiement. Lisez toujours ce drapeau, il peut changer."""
    logo: Annotated[Address | None, like(None)]
    """Logo de l'opérateur."""


class FeeQuote(Resource):
    """Une simulation : `fee_amount = amount × fee_percent / 100 + fee_fixed`, arrondi au centième (la moitié vers le
    haut) dans toutes les devises."""

    payment_mode_id: Annotated[int, like(1)]
    """Identifiant du moyen de paiement dans le catalogue."""
    operator: Annotated[str, like("mtn")]
    """Code de l'opérateur."""
    amount: Annotated[Money, like(5000)]
    """Le montant demandé."""
    fee_amount: Annotated[Money, like(87.5)]
    """Les frais."""
    total_amount: Annotated[Money, like(5087.5)]
    """Ce dont le client serait débité."""
    fee_percent: Annotated[Money, like(1.75)]
    """Part proportionnelle appliquée, en pourcentage."""
    fee_fixed: Annotated[Money, like(0)]
    """Part fixe appliquée."""


class Balance(Resource):
    """Le solde d'un portefeuille."""

    currency: Annotated[CurrencyCode, like("XOF")]
    """Devise du portefeuille."""
    balance: Annotated[Money, like(125000)]
    """Solde dans l'unité principale : la valeur à afficher."""
    balance_minor: Annotated[int, like(12500000)]
    """Le même solde multiplié par 100 dans toutes les devises, XOF compris. Ne pas afficher."""
    status: Annotated[str, text(enum=list(WALLET_STATUSES)), like("Actif")]
    """Hors de `Actif`, aucun mouvement n'est accepté."""
    updated_at: Annotated[Moment, like(_SETTLED)]
    """Date du dernier mouvement."""


class WrittenWebhookEndpoint(Resource):
    """Votre point de terminaison, tel qu'il vient d'être enregistré."""

    url: Annotated[str | None, like(_HOOK)]
    """Adresse appelée ; `null` si les webhooks sont désactivés."""
    secret: Annotated[str | None, Field(examples=["whsec_remplacez_par_votre_secret"], pattern="^whsec_")]
    """Clé de signature, `whsec_` compris ; `null` sans adresse."""
    livemode: Annotated[bool, like(False)]
    """`true` en production, `false` en test."""


class WebhookEndpoint(WrittenWebhookEndpoint):
    """Votre point de terminaison pour l'environnement de la clé."""

    events: Annotated[list[Annotated[str, open_list(*EVENTS)]], like(list(EVENTS))]
    """Les événements envoyés. Il n'y a pas d'abonnement sélectif ; d'autres peuvent s'ajouter."""


class WebhookTest(Resource):
    """Le sort d'un événement de test."""

    sent: Annotated[bool, like(True)]
    """`true` : l'envoi est en file. Le journal dit ce qu'il est devenu."""
    delivery_id: Annotated[Uuid | None, like(_DELIVERY)]
    """Identifiant de l'envoi ; `null` s'il n'y en a pas."""
    url: Annotated[str | None, like(_HOOK)]
    """Adresse appelée ; `null` sans point de terminaison."""
    message: Annotated[str, like("Aucun point de terminaison n'est configuré.")] = ""
    """Présent seulement avec `sent: false` : la raison."""


class WebhookDelivery(Resource):
    """Un envoi de webhook, dans le journal."""

    id: Annotated[Uuid, like(_DELIVERY)]
    """Identifiant de l'envoi : l'`id` du corps envoyé et l'en-tête `X-Service-Delivery`."""
    event: Annotated[str, open_list(*EVENTS, WEBHOOK_TEST), like(PAYMENT_SUCCEEDED)]
    """Nom de l'événement."""
    url: Annotated[str, like(_HOOK)]
    """Adresse appelée."""
    status: Annotated[str, text(enum=list(DELIVERY_STATUSES)), like("success")]
    """`pending` tant qu'une tentative reste à faire, puis `success` ou `failed`."""
    attempts: Annotated[int, Field(examples=[1], ge=0, le=MAX_ATTEMPTS)]
    """Tentatives faites."""
    response_code: Annotated[int | None, like(200)]
    """Statut HTTP répondu par votre serveur ; `null` s'il n'a pas pu être joint."""
    created_at: Annotated[Moment, like(_SETTLED)]
    """Mise en file."""
    delivered_at: Annotated[Moment | None, like("2026-11-20T10:15:41.345678Z")]
    """Date de l'envoi réussi ; `null` sinon."""


class Meta(Resource):
    """Les compteurs d'une liste paginée."""

    current_page: Annotated[int, Field(examples=[1], ge=1)]
    """Page répondue."""
    per_page: Annotated[int, Field(examples=[25], ge=1)]
    """Éléments par page."""
    total: Annotated[int, Field(examples=[1], ge=0)]
    """Éléments en tout."""
    last_page: Annotated[int, Field(examples=[1], ge=1)]
    """Dernière page, au moins 1."""


class Failure(Resource):
    """Ce qui a été refusé, ou ce qui n'a pas fonctionné."""

    code: Annotated[str, open_list(*BY_CODE), like("invalid_request")]
    """Identifiant stable : c'est sur lui que votre code décide. Traitez un code inconnu comme un incident passager."""
    message: Annotated[str, like("phone_number : Le numéro de téléphone est obligatoire.")]
    """Phrase en français, pour les humains. Elle peut changer sans préavis."""
    details: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    """Champ → messages, pour les erreurs de validation seulement. Les champs imbriqués s'écrivent avec un point
    (`customer.email`)."""


class Error(Resource):
    """L'enveloppe de toute réponse d'erreur."""

    success: Annotated[bool, WithJsonSchema({"const": False})]
    """Toujours `false`."""
    error: Failure


class WebhookMessage(Resource):
    """Le contenu d'un événement de test."""

    message: Annotated[str, like("Ceci est un événement de test.")]
    """Une phrase."""


class _Notification(Resource):
    id: Annotated[Uuid, like(_DELIVERY)]
    """Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence."""
    livemode: Annotated[bool, like(False)]
    """`false` pour tout ce qui vient de l'environnement de test."""
    created_at: Annotated[Moment, like(_SETTLED)]
    """Date de mise en file."""


class PaymentNotification(_Notification):
    """Le corps d'un événement `payment.*`."""

    event: Annotated[str, text(enum=[PAYMENT_SUCCEEDED, PAYMENT_FAILED, PAYMENT_REFUNDED]), like(PAYMENT_SUCCEEDED)]
    """Nom de l'événement."""
    data: Payment
    """Le paiement."""


class RefundNotification(_Notification):
    """Le corps d'un événement `refund.*`."""

    event: Annotated[str, text(enum=[REFUND_SUCCEEDED, REFUND_FAILED]), like(REFUND_SUCCEEDED)]
    """Nom de l'événement."""
    data: Refund
    """Le remboursement."""


class WebhookTestNotification(_Notification):
    """Le corps de l'événement `webhook.test`."""

    event: Annotated[str, text(enum=[WEBHOOK_TEST]), like(WEBHOOK_TEST)]
    """Nom de l'événement."""
    data: WebhookMessage
    """Le message de test."""


NOTIFICATIONS: Final[dict[str, tuple[type[Resource], str]]] = {
    PAYMENT_SUCCEEDED: (PaymentNotification, "Le client a été débité."),
    PAYMENT_FAILED: (PaymentNotification, "L'opérateur ou le client a refusé, après l'envoi de la demande."),
    PAYMENT_REFUNDED: (PaymentNotification, "Le paiement a été rendu au client."),
    REFUND_SUCCEEDED: (RefundNotification, "Un remboursement demandé a été exécuté."),
    REFUND_FAILED: (RefundNotification, "Un remboursement demandé n'a pas pu être exécuté."),
    WEBHOOK_TEST: (WebhookTestNotification, "Vous avez appelé `POST /webhooks/test`."),
}
