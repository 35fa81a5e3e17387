"""Endpoints of payments."""

from typing import Final

from guichet.api import payments
from guichet.api.endpoints.endpoint import (
    CREATED_FROM,
    CREATED_TO,
    IDEMPOTENCY_KEY,
    PAYMENT_REFERENCE,
    Endpoint,
    Parameter,
    paging,
)
from guichet.api.guide import whole_amount
from guichet.domain.catalogue import MAX_DEBIT, MIN_DEBIT
from guichet.domain.errors import Conflict, InvalidRequest, NotFound, PaymentFailed
from guichet.domain.payments import PAYMENT_STATUSES
from guichet.schemas.payment import PaymentBody, PaymentObject

PAYMENTS: Final = "Paiements"
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
                "État. Une valeur inconnue vaut `pending`, et `warnings` le dit.",
                sample="succeeded",
            ),
            Parameter("external_id", {"type": "string"}, "Votre identifiant de commande, exactement."),
            Parameter("payment_link", {"type": "string"}, "L'`id` d'un lien de paiement : ce qu'il a reçu."),
            Parameter("phone_number", {"type": "string"}, "Le numéro débité, indicatif compris."),
            CREATED_FROM,
            CREATED_TO,
            *paging("la `reference` ou l'`external_id` du dernier paiement reçu"),
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
        parameters=(PAYMENT_REFERENCE,),
        errors=(NotFound,),
    ),
)
