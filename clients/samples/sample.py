"""Créer un paiement, le lire, le rembourser, ouvrir une page de paiement, avec le client Python d'openapi-generator.

En ligne de commande : GUICHET=http://127.0.0.1:8000/v1 CLE=sk_test_… python sample.py commande-1042
"""

import os
import sys

from guichet_client import (
    ApiClient,
    CheckoutSessionBody,
    Configuration,
    PaiementsApi,
    PaymentBody,
    RefundBody,
    RemboursementsApi,
    SessionsDePaiementApi,
)

configuration = Configuration(host=os.environ["GUICHET"], access_token=os.environ["CLE"])
with ApiClient(configuration) as client:
    payments = PaiementsApi(client)
    created = payments.create_payment(
        PaymentBody(amount=5000, operator="mtn", phone_number="2290197000000", external_id=sys.argv[1])
    ).data
    payment = payments.read_payment(str(created.reference)).data
    if payment.status != "succeeded":
        sys.exit(f"encore {payment.status} : attendez le webhook")
    refund = (
        RemboursementsApi(client)
        .create_refund(
            str(payment.reference),
            idempotency_key=f"refund-{payment.reference}",
            refund_body=RefundBody(reason="Article indisponible"),
        )
        .data
    )
    # Tout parcourir : `after` nomme le dernier élément reçu.
    page = payments.list_payments(per_page=2, order="asc").data
    while len(page) == 2:
        page = payments.list_payments(per_page=2, order="asc", after=str(page[-1].reference)).data
    # La page où le client choisit son opérateur : envoyez-le à cette adresse.
    order = CheckoutSessionBody(amount=5000, description="Commande 1042", external_id=f"page-{sys.argv[1]}")
    session = SessionsDePaiementApi(client).create_session(order).data
    print(session.status, session.url)
    print(payment.status, payment.total_amount, refund.status)
