"""The contract's table of endpoints: each route with everything that `/openapi.json` says about it.

Texts are in French because merchants read them. The errors that every endpoint can answer (401, 403, 429, 500) are not
repeated: see guichet/api/openapi.py. Source: docs/contract.md, "Endpoints".
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from starlette.responses import Response

from guichet.api import balance, catalogue, links, payments, refunds, webhooks
from guichet.api.guide import whole_amount
from guichet.api.http import DEFAULT_PER_PAGE, MAX_PER_PAGE, ORDERS, Call
from guichet.domain.catalogue import MAX_DEBIT, MIN_DEBIT, MODE_TYPES
from guichet.domain.errors import Conflict, GuichetError, InvalidRequest, NotFound, PaymentFailed
from guichet.domain.events import DELIVERY_STATUSES, EVENT_NAMES
from guichet.domain.money import CURRENCIES, DEFAULT_CURRENCY
from guichet.domain.payments import PAYMENT_STATUSES
from guichet.schemas.fee_quote import FeeBody, FeeQuoteObject
from guichet.schemas.object_fields import REFUND_REFERENCE
from guichet.schemas.payment import PaymentBody, PaymentObject
from guichet.schemas.payment_link import LinkBody, PaymentLinkObject
from guichet.schemas.payment_mode import PaymentModeObject
from guichet.schemas.refund import RefundBody, RefundObject
from guichet.schemas.validation import Body
from guichet.schemas.wallet import BalanceObject
from guichet.schemas.webhook_delivery import WebhookDeliveryObject
from guichet.schemas.webhook_endpoint import (
    EndpointBody,
    WebhookEndpointObject,
    WebhookTestObject,
    WrittenWebhookEndpointObject,
)

Handler = Callable[[Call], Awaitable[Response]]
#: The class (a TypedDict) of an object that is answered.
ObjectClass = type[Any]
Example = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A path or query parameter. `schema` is its JSON Schema, `sample` its value in the examples."""

    name: str
    schema: Mapping[str, Any]
    description: str
    where: Literal["query", "path"] = "query"
    sample: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One line of the contract's table of endpoints; `path` is relative to the API's base URL.

    `data` is the object answered; `shape` says whether one, an array or a page of them is. `requests` are whole example
    bodies by title, and tests send each of them. `live_only` endpoints refuse a test key.
    """

    method: str
    path: str
    handler: Handler
    tag: str
    summary: str
    description: str
    data: ObjectClass
    status: int = 200
    shape: Literal["one", "array", "page"] = "one"
    body: type[Body] | None = None
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[type[GuichetError], ...] = ()
    requests: Mapping[str, Example] = field(default_factory=dict)
    live_only: bool = False


PAYMENTS: Final = "Paiements"
REFUNDS: Final = "Remboursements"
LINKS: Final = "Liens de paiement"
CATALOGUE: Final = "Catalogue"
WALLET: Final = "Solde"
WEBHOOKS: Final = "Webhooks"

TAGS: Final = {
    PAYMENTS: "Débiter un client par Mobile Money ou par carte, relire et lister les paiements.",
    REFUNDS: "Rendre au client la totalité d'un paiement réussi.",
    LINKS: "Des pages de paiement hébergées, à montant fixe, à partager. En production seulement.",
    CATALOGUE: "Les moyens de paiement ouverts à votre compte, et vos frais.",
    WALLET: "Ce qui vous revient.",
    WEBHOOKS: "Où vous notifier, avec quelle clé signer, et ce que sont devenus les envois.",
}


def _paging(after: str) -> tuple[Parameter, ...]:
    """`after`: what the element before a page is called."""
    return (
        Parameter(
            "per_page",
            {"type": "integer", "minimum": 1, "maximum": MAX_PER_PAGE, "default": DEFAULT_PER_PAGE},
            "Éléments par page.",
        ),
        Parameter(
            "page",
            {"type": "integer", "minimum": 1, "default": 1},
            "Numéro de page. Au-delà de la dernière, la liste est vide. Ne s'envoie pas avec `after`.",
        ),
        Parameter(
            "order",
            {"type": "string", "enum": list(ORDERS), "default": ORDERS[0]},
            "`desc` : les plus récents d'abord ; `asc` : les plus anciens d'abord.",
        ),
        Parameter(
            "after",
            {"type": "string"},
            f"Commence juste après cet élément : {after}. Un parcours avec `after` ne saute ni ne répète rien, quoi "
            "qu'il arrive entre deux pages ; il est fini quand une page compte moins de `per_page` éléments.",
        ),
    )


_DATES: Final = "`AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."
_PAYMENT_REFERENCE: Final = Parameter(
    "reference",
    {"type": "string"},
    "La référence du paiement, ou votre `external_id` encodé pour une adresse (`/` devient `%2F`).",
    "path",
    "commande-1042",
)
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
        payments.create_payment,
        PAYMENTS,
        "Créer un paiement",
        "Demande à l'opérateur de débiter le client. **Un `201` n'est pas un encaissement** : le paiement est "
        "`pending`, et vous livrez quand il est `succeeded`.\n\n"
        "Répéter un `external_id` rend le paiement existant, aussi avec `201`, et ne crée rien. Un délai dépassé ne "
        "prouve pas que rien n'a été créé : rejouez avec le même `external_id`. Si le montant, la devise, l'opérateur "
        "ou le numéro diffèrent de ceux du paiement existant, `warnings` le dit.\n\n"
        "Le total débité (montant et frais) d'un paiement Mobile Money doit être compris entre "
        f"{whole_amount(MIN_DEBIT)} et {whole_amount(MAX_DEBIT)}. Un "
        "refus immédiat de l'opérateur donne `402` : le paiement est enregistré `failed`, `error.reference` le nomme "
        "et `error.reason` dit pourquoi. Si c'est notre liaison avec l'opérateur qui ne fonctionne pas, la réponse "
        "est `500`, avec `error.reference` aussi ; rien n'a été débité.",
        PaymentObject,
        201,
        body=PaymentBody,
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
        payments.list_payments,
        PAYMENTS,
        "Lister les paiements",
        "Les plus récents d'abord, dans l'environnement de la clé. Pour tout parcourir, suivez `after` plutôt que "
        "`page` : des paiements arrivent et changent d'état pendant le parcours.",
        PaymentObject,
        shape="page",
        parameters=(
            Parameter(
                "status",
                {"type": "string", "enum": list(PAYMENT_STATUSES)},
                "État. Une valeur inconnue vaut `pending`, et `meta.ignored` le dit.",
                sample="succeeded",
            ),
            Parameter("external_id", {"type": "string"}, "Votre identifiant de commande, exactement."),
            Parameter("from", {"type": "string"}, f"Début : {_DATES}", sample="2026-11-01"),
            Parameter(
                "to",
                {"type": "string"},
                f"Fin : {_DATES} Une date seule est ce jour à 00:00:00, ce qui exclut les paiements du jour : envoyez "
                "le lendemain ou un horodatage complet.",
                sample="2026-12-01",
            ),
            *_paging("la `reference` ou l'`external_id` du dernier paiement reçu"),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "GET",
        "/payments/{reference}",
        payments.read_payment,
        PAYMENTS,
        "Lire un paiement",
        "Tant que le paiement est `pending`, l'opérateur est interrogé avant la réponse : prévoyez chez vous un délai "
        "d'attente d'au moins 30 secondes. `payment_url` vaut toujours `null` ici ; `redirect_url` y est tant que "
        "votre client doit confirmer sur la page de l'opérateur.",
        PaymentObject,
        parameters=(_PAYMENT_REFERENCE,),
        errors=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/payments/{reference}/refund",
        refunds.create_refund,
        REFUNDS,
        "Rembourser un paiement",
        "Enregistre la demande de remboursement total d'un paiement `succeeded`. Le versement est exécuté ensuite ; "
        "l'issue arrive par `refund.succeeded` ou `refund.failed`. En test, la réponse est déjà `succeeded`.\n\n"
        "Il n'y a pas de remboursement partiel : un `amount` autre que le `total_amount` du paiement est refusé.\n\n"
        "Un paiement n'a jamais qu'un remboursement. Le client reçoit `total_amount` ; votre solde est débité de "
        "`amount`, et les frais sont rendus par le service. Si le solde ne suffit pas, le remboursement échoue et rien "
        "n'est pris. Un `409` dit pourquoi dans `error.reason` ; `already_refunded` donne la référence du "
        "remboursement.",
        RefundObject,
        201,
        body=RefundBody,
        parameters=(_PAYMENT_REFERENCE,),
        errors=(InvalidRequest, NotFound, Conflict),
        requests={"Avec un motif": {"reason": "Article indisponible"}, "Sans motif": {}},
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
            Parameter("payment_reference", {"type": "string"}, "La référence du paiement remboursé, exactement."),
            *_paging("la `reference` du dernier remboursement reçu"),
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
    Endpoint(
        "POST",
        "/payment-links",
        links.create_link,
        LINKS,
        "Créer un lien de paiement",
        "Clé de production seulement : avec une clé de test, la demande est refusée (`invalid_request`, sans "
        "`details`). Un lien ne se modifie pas et ne se désactive pas par l'API.\n\n"
        "Répéter un `external_id` rend le lien existant, aussi avec `201`, et ne crée rien. `metadata` est copié dans "
        "chaque paiement du lien et dans ses webhooks ; `payment_link` y dit de quel lien il vient.",
        PaymentLinkObject,
        201,
        body=LinkBody,
        errors=(InvalidRequest,),
        requests={
            "Limité": {
                "amount": 10000,
                "description": "Cotisation 2026",
                "type": "limité",
                "max_uses": 50,
                "expires_at": "2026-12-31T23:59:59Z",
            },
            "Permanent": {"amount": 2000, "description": "Don"},
            "Rejouable, avec retour chez vous": {
                "amount": 10000,
                "description": "Cotisation 2026",
                "type": "limité",
                "max_uses": 50,
                "expires_at": "2026-12-31T23:59:59Z",
                "external_id": "cotisation-2026",
                "metadata": {"association": 7},
                "return_url": "https://boutique.example/merci",
            },
        },
        live_only=True,
    ),
    Endpoint(
        "GET",
        "/payment-links",
        links.list_links,
        LINKS,
        "Lister les liens de paiement",
        "Les plus récents d'abord. La liste est toujours vide avec une clé de test.",
        PaymentLinkObject,
        shape="page",
        parameters=_paging("l'`id` du dernier lien reçu"),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "GET",
        "/payment-links/{id}",
        links.read_link,
        LINKS,
        "Lire un lien de paiement",
        "Toujours `404` avec une clé de test.",
        PaymentLinkObject,
        parameters=(Parameter("id", {"type": "string"}, "L'`id` numérique du lien.", "path", "1"),),
        errors=(NotFound,),
    ),
    Endpoint(
        "GET",
        "/payment-modes",
        catalogue.list_modes,
        CATALOGUE,
        "Lister les moyens de paiement",
        "Les moyens ouverts à votre compte, avec vos frais. Ce catalogue seul fait foi. Il n'est pas paginé ; les deux "
        "filtres se combinent.",
        PaymentModeObject,
        shape="array",
        parameters=(
            Parameter("country", {"type": "string"}, "Code ISO-2, sans égard à la casse.", sample="bj"),
            Parameter(
                "type",
                {"type": "string", "enum": [kind for kind in MODE_TYPES if kind != "other"]},
                "Famille du moyen de paiement.",
                sample="mobile_money",
            ),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "POST",
        "/payment-modes/fees",
        catalogue.quote_fees,
        CATALOGUE,
        "Simuler les frais",
        "Ne crée rien.",
        FeeQuoteObject,
        body=FeeBody,
        errors=(InvalidRequest,),
        requests={
            "Par opérateur": {"amount": 5000, "operator": "mtn"},
            "Par identifiant": {"amount": 5000, "payment_mode_id": 1},
        },
    ),
    Endpoint(
        "GET",
        "/balance",
        balance.read_balance,
        WALLET,
        "Lire le solde",
        "Avec une clé de test, la somme des encaissements de test, et non le solde réel.",
        BalanceObject,
        parameters=(
            Parameter(
                "currency",
                {"type": "string", "default": DEFAULT_CURRENCY, "examples": list(CURRENCIES)},
                f"Devise, sans égard à la casse : {', '.join(f'`{code}`' for code in CURRENCIES)}.",
                sample=DEFAULT_CURRENCY,
            ),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "GET",
        "/webhooks/endpoint",
        webhooks.read_endpoint,
        WEBHOOKS,
        "Lire le point de terminaison",
        "Celui de l'environnement de la clé.",
        WebhookEndpointObject,
    ),
    Endpoint(
        "PUT",
        "/webhooks/endpoint",
        webhooks.configure_endpoint,
        WEBHOOKS,
        "Configurer le point de terminaison",
        "N'agit que sur l'environnement de la clé. Le secret est créé avec la première adresse. `warnings` dit si "
        "aucun webhook ne pourra atteindre l'adresse.",
        WrittenWebhookEndpointObject,
        body=EndpointBody,
        errors=(InvalidRequest,),
        requests={
            "Configurer": {"url": "https://boutique.example/webhooks/guichet"},
            "Changer de secret": {"url": "https://boutique.example/webhooks/guichet", "rotate_secret": True},
            "Désactiver": {"url": None},
        },
    ),
    Endpoint(
        "POST",
        "/webhooks/test",
        webhooks.send_test,
        WEBHOOKS,
        "Envoyer un événement de test",
        "Met en file un événement `webhook.test`, signé comme un vrai. Sans point de terminaison, la réponse est aussi "
        "`200`, avec `sent: false` et la raison dans `message`.",
        WebhookTestObject,
    ),
    Endpoint(
        "GET",
        "/webhooks/deliveries",
        webhooks.list_deliveries,
        WEBHOOKS,
        "Lire le journal des envois",
        "Les plus récents d'abord, dans l'environnement de la clé. Un envoi terminé reste au journal 90 jours, sauf "
        "réglage contraire de l'exploitant.",
        WebhookDeliveryObject,
        shape="page",
        parameters=(
            Parameter("status", {"type": "string", "enum": list(DELIVERY_STATUSES)}, "État de l'envoi."),
            Parameter("event", {"type": "string", "enum": list(EVENT_NAMES)}, "Nom de l'événement."),
            Parameter(
                "payment_reference",
                {"type": "string"},
                "La référence du paiement : ses événements et ceux de son remboursement.",
            ),
            *_paging("l'`id` du dernier envoi reçu"),
        ),
        errors=(InvalidRequest,),
    ),
)
