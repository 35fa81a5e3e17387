"""The types of the API. Written by `python -m tests.frozen` from the OpenAPI document."""

from typing import Any, Literal, NotRequired, TypedDict


class Balance(TypedDict):
    """Le solde d'un portefeuille."""

    balance: float
    """Solde dans l'unité principale : la valeur à afficher."""
    balance_minor: int
    """Le même solde multiplié par 100 dans toutes les devises, XOF compris."""
    currency: Literal["XOF", "XAF", "EUR", "USD"]
    """Devise du portefeuille."""
    status: Literal["Actif", "Gelé", "Fermé"]
    """Hors de `Actif`, aucun mouvement n'est accepté."""
    updated_at: str
    """Date du dernier mouvement."""


class CheckoutSession(TypedDict):
    """Une page de paiement hébergée pour une seule commande : le client y choisit son pays et son moyen de paiement."""

    amount: float
    """Ce que vous encaissez."""
    cancel_url: str | None
    """Page où mène le renoncement"""
    created_at: str
    """Date de création."""
    currency: Literal["XOF", "XAF", "EUR", "USD"]
    """Devise."""
    description: str
    """Libellé montré au client."""
    expires_at: str
    """Fin : personne ne peut plus commencer à payer."""
    external_id: str | None
    """Votre identifiant de la session"""
    id: str
    """Identifiant de la session."""
    metadata: dict[str, Any] | None
    """Exactement ce que vous avez envoyé, octet pour octet, comme dans chacun de ses paiements"""
    operators: list[str] | None
    """Les seuls opérateurs proposés"""
    payment_reference: str | None
    """Référence du paiement qui l'a payée"""
    return_url: str | None
    """Page où le client revient après le paiement"""
    status: Literal["open", "completed", "expired"]
    """`open` → `completed` (un paiement a abouti) ou `expired` (plus aucun n'aboutira)."""
    url: str
    """Page à ouvrir par le client."""


class Customer(TypedDict):
    """Customer"""

    address: NotRequired[str | None]
    """Adresse postale."""
    country: NotRequired[str | None]
    """Pays, pour les cartes."""
    email: NotRequired[str | None]
    """Adresse e-mail, qui sert à rapprocher vos clients."""
    firstname: NotRequired[str | None]
    """Prénom."""
    lastname: NotRequired[str | None]
    """Nom."""


class Dispute(TypedDict):
    """Une contestation : le porteur de la carte conteste le paiement auprès de sa banque."""

    amount: float
    """Montant que la banque a repris."""
    closed_at: str | None
    """Date de la décision"""
    created_at: str
    """Date de la contestation."""
    currency: Literal["XOF", "XAF", "EUR", "USD"]
    """Devise du paiement."""
    evidence_due_at: str | None
    """Jusqu'à quand vos justificatifs peuvent être envoyés"""
    payment_reference: str
    """Référence du paiement contesté, dont le statut ne change pas."""
    reason: str
    """Motif, dans les mots du réseau de cartes."""
    reference: str
    """Identifiant de la contestation."""
    status: Literal["open", "won", "lost"]
    """`open` → `won` (le montant est rendu) ou `lost`."""


class EndpointBody(TypedDict):
    """EndpointBody"""

    overlap_hours: NotRequired[int | None]
    """Heures pendant lesquelles l'ancien secret signe encore dans `webhook-signature`, qui porte alors deux signatures."""
    rotate_secret: NotRequired[bool]
    """`true` remplace le secret ; l'ancien cesse aussitôt de valoir, sauf `overlap_hours`."""
    url: str | None
    """Adresse HTTPS publique."""


class FeeBody(TypedDict):
    """FeeBody"""

    amount: float
    """Le montant que vous voulez encaisser."""
    operator: NotRequired[str | None]
    """Code de l'opérateur, sans égard à la casse."""
    payment_mode_id: NotRequired[int | None]
    """Identifiant du moyen de paiement dans le catalogue."""


class FeeQuote(TypedDict):
    """Une simulation : `fee_amount = amount × fee_percent / 100 + fee_fixed`, arrondi au centième (la moitié vers le haut) dans toutes les devises."""

    amount: float
    """Le montant demandé."""
    fee_amount: float
    """Les frais."""
    fee_fixed: float
    """Part fixe appliquée."""
    fee_percent: float
    """Part proportionnelle appliquée, en pourcentage."""
    operator: str
    """Code de l'opérateur."""
    payment_mode_id: int
    """Identifiant du moyen de paiement dans le catalogue."""
    total_amount: float
    """Ce dont le client serait débité."""


class LinkBody(TypedDict):
    """LinkBody"""

    amount: float
    """Ce que vous encaissez à chaque paiement, dans la devise par défaut de votre compte."""
    description: str
    """Libellé montré au client."""
    expires_at: NotRequired[str | None]
    """Fermeture, postérieure à `starts_at`."""
    external_id: NotRequired[str | None]
    """Votre identifiant du lien, unique parmi vos liens."""
    max_uses: NotRequired[int | None]
    """Nombre d'utilisations."""
    metadata: NotRequired[dict[str, Any] | None]
    """Données libres, rendues telles quelles dans le lien, dans ses paiements et dans leurs webhooks."""
    return_url: NotRequired[str | None]
    """Page vers laquelle la page de paiement renvoie le client à la fin (http ou https)"""
    starts_at: NotRequired[str | None]
    """Ouverture."""
    type: NotRequired[Literal["permanent", "limité"]]
    """`limité` s'écrit avec l'accent, en UTF-8 ; toute autre écriture est refusée."""


class PaymentCustomer(TypedDict):
    """Le client, tel que vous l'avez décrit ; chaque champ vaut `null` s'il n'a pas été envoyé."""

    email: str | None
    """Adresse e-mail."""
    firstname: str | None
    """Prénom."""
    lastname: str | None
    """Nom."""
    phone_number: str | None
    """Numéro en chiffres seulement, indicatif compris (un `+` initial est retiré)."""


class PaymentFailure(TypedDict):
    """Pourquoi le paiement a échoué."""

    code: str
    """Identifiant stable, dont la liste peut s'allonger : traitez un code inconnu comme `other`."""
    message: str
    """Phrase en français que vous pouvez montrer au client."""


class PaymentLink(TypedDict):
    """Un lien vers une page de paiement hébergée, à montant et libellé fixes."""

    amount: float
    """Ce que vous encaissez à chaque paiement, dans la devise par défaut de votre compte."""
    created_at: str
    """Date de création."""
    description: str
    """Libellé montré au client."""
    expires_at: str | None
    """Fermeture"""
    external_id: str | None
    """Votre identifiant du lien"""
    id: int
    """Identifiant numérique, pour `GET /payment-links/{id}`."""
    max_uses: int | None
    """Nombre d'utilisations permises"""
    metadata: dict[str, Any] | None
    """Exactement ce que vous avez envoyé, octet pour octet, comme dans chacun de ses paiements"""
    return_url: str | None
    """Page où le client revient après le paiement"""
    starts_at: str | None
    """Ouverture"""
    type: Literal["permanent", "limité"]
    """`permanent` ou `limité` (avec l'accent)."""
    url: str
    """Adresse publique à partager."""
    uses_count: int
    """Paiements aboutis par ce lien."""
    uses_left: int | None
    """Utilisations restantes, jamais moins de 0 ; toujours `null` pour un lien permanent."""


class PaymentMode(TypedDict):
    """Un moyen de paiement ouvert à votre compte, avec vos frais."""

    availability: str
    """État technique de l'opérateur."""
    country: str | None
    """Nom du pays"""
    country_code: str | None
    """Code ISO-2 du pays"""
    fee_fixed: float
    """Part fixe des frais."""
    fee_percent: float
    """Part proportionnelle des frais, en pourcentage."""
    id: int
    """Identifiant dans le catalogue, utilisable comme `payment_mode_id`."""
    logo: str | None
    """Logo de l'opérateur."""
    name: str
    """Nom à afficher."""
    operator: str
    """Code de l'opérateur, utilisable comme `operator`."""
    requires_otp: bool
    """`true` : `otp` est obligatoire à la création d'un paiement."""
    type: Literal["mobile_money", "card", "bank_transfer", "e_wallet", "other"]
    """Famille du moyen de paiement."""


class PaymentModeSummary(TypedDict):
    """Le moyen de paiement utilisé, en bref."""

    country: str | None
    """Nom du pays"""
    country_code: str | None
    """Code ISO-2 du pays"""
    id: int
    """Identifiant dans le catalogue, utilisable comme `payment_mode_id`."""
    name: str
    """Nom à afficher."""
    operator: str
    """Code de l'opérateur, utilisable comme `operator`."""
    type: Literal["mobile_money", "card", "bank_transfer", "e_wallet", "other"]
    """Famille du moyen de paiement."""


class PaymentSession(TypedDict):
    """La session de paiement dont il vient."""

    external_id: str | None
    """Votre identifiant de la session"""
    id: str
    """Identifiant de la session, pour `GET /checkout-sessions/{id}`."""


class PaymentSourceLink(TypedDict):
    """Le lien de paiement par lequel le client a payé."""

    external_id: str | None
    """Votre identifiant du lien"""
    id: int
    """Identifiant numérique, pour `GET /payment-links/{id}`."""


class RefundBody(TypedDict):
    """RefundBody"""

    reason: NotRequired[str | None]
    """Motif, pour vos archives."""


class RefundFailure(TypedDict):
    """Pourquoi un remboursement a échoué."""

    code: str
    """Code stable ; il peut s'en ajouter."""
    message: str
    """Phrase pour vous, qui peut changer."""


class RefundProposal(TypedDict):
    """Un remboursement qu'un programme propose, et qu'une personne de votre équipe confirme ou décline."""

    amount: float
    """Le `total_amount` du paiement : un remboursement est toujours total."""
    created_at: str
    """Date de la proposition."""
    currency: Literal["XOF", "XAF", "EUR", "USD"]
    """Devise du paiement."""
    expires_at: str
    """Fin : sans décision avant cette date, la proposition est `expired`."""
    payment_reference: str
    """Référence du paiement."""
    reason: str | None
    """Motif proposé, que la personne peut changer"""
    refund_reference: str | None
    """Référence du remboursement"""
    status: Literal["open", "confirmed", "declined", "expired"]
    """`open` → `confirmed` (le paiement est remboursé, ou va l'être), `declined` ou `expired`."""
    url: str
    """Page de la console où une personne qui a le droit de rembourser confirme ou décline."""


class WebhookDelivery(TypedDict):
    """Un envoi de webhook, dans le journal."""

    attempts: int
    """Tentatives faites."""
    created_at: str
    """Mise en file."""
    delivered_at: str | None
    """Date de l'envoi réussi"""
    error: str | None
    """Pourquoi la dernière tentative a échoué, en une phrase pour les humains"""
    event: str
    """Nom de l'événement."""
    id: str
    """Identifiant de l'envoi : l'`id` du corps envoyé et l'en-tête `X-Service-Delivery`."""
    next_attempt_at: str | None
    """Prochaine tentative, au plus tôt"""
    payment_reference: str | None
    """Le paiement dont parle l'événement, ou dont parle son remboursement"""
    response_code: int | None
    """Statut HTTP répondu par votre serveur"""
    status: Literal["pending", "success", "failed"]
    """`pending` tant qu'une tentative reste à faire, puis `success` ou `failed`."""
    url: str
    """Adresse appelée."""


class WebhookEndpoint(TypedDict):
    """Votre point de terminaison pour l'environnement de la clé."""

    events: list[str]
    """Les événements envoyés."""
    livemode: bool
    """`true` en production, `false` en test."""
    secret: str | None
    """Clé de signature, `whsec_` compris"""
    url: str | None
    """Adresse appelée"""


class WebhookMessage(TypedDict):
    """Le contenu d'un événement de test."""

    message: str
    """Une phrase."""


class WebhookTest(TypedDict):
    """Le sort d'un événement de test."""

    delivery_id: str | None
    """Identifiant de l'envoi"""
    message: NotRequired[str]
    """Présent seulement avec `sent: false` : la raison."""
    sent: bool
    """`true` : l'envoi est en file."""
    url: str | None
    """Adresse appelée"""


class WrittenWebhookEndpoint(TypedDict):
    """Votre point de terminaison, tel qu'il vient d'être enregistré."""

    livemode: bool
    """`true` en production, `false` en test."""
    secret: str | None
    """Clé de signature, `whsec_` compris"""
    url: str | None
    """Adresse appelée"""


class ReadBalanceQuery(TypedDict):
    """Lire le solde."""

    currency: NotRequired[str]
    """Devise, sans égard à la casse : `XOF`, `XAF`, `EUR`, `USD`."""


class ListDisputesQuery(TypedDict):
    """Lister les contestations."""

    status: NotRequired[Literal["open", "won", "lost"]]
    """État de la contestation."""
    payment_reference: NotRequired[str]
    """La référence du paiement contesté, exactement."""
    per_page: NotRequired[int]
    """Éléments par page."""
    order: NotRequired[Literal["desc", "asc"]]
    """`desc` : les plus récents d'abord"""
    after: NotRequired[str]
    """Commence juste après cet élément : la `reference` de la dernière contestation reçue."""


class ListEventsQuery(TypedDict):
    """Lister les événements."""

    type: NotRequired[Literal["payment.succeeded", "payment.failed", "payment.refunded", "refund.succeeded", "refund.failed", "dispute.opened", "dispute.won", "dispute.lost", "webhook.test", "checkout_session.completed", "checkout_session.expired"]]
    """Nom de l'événement."""
    from_: NotRequired[str]
    """Début : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."""
    to: NotRequired[str]
    """Fin : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."""
    per_page: NotRequired[int]
    """Éléments par page."""
    after: NotRequired[str]
    """Commence juste après cet événement, nommé par son `id`."""


class ListLinksQuery(TypedDict):
    """Lister les liens de paiement."""

    external_id: NotRequired[str]
    """Votre identifiant du lien, exactement."""
    per_page: NotRequired[int]
    """Éléments par page."""
    order: NotRequired[Literal["desc", "asc"]]
    """`desc` : les plus récents d'abord"""
    after: NotRequired[str]
    """Commence juste après cet élément : l'`id` du dernier lien reçu."""


class ListModesQuery(TypedDict):
    """Lister les moyens de paiement."""

    country: NotRequired[str]
    """Code ISO-2, sans égard à la casse."""
    type: NotRequired[Literal["mobile_money", "card", "bank_transfer", "e_wallet"]]
    """Famille du moyen de paiement."""


class ListPaymentsQuery(TypedDict):
    """Lister les paiements."""

    status: NotRequired[Literal["pending", "succeeded", "failed", "refunded"]]
    """État."""
    external_id: NotRequired[str]
    """Votre identifiant de commande, exactement."""
    payment_link: NotRequired[str]
    """L'`id` d'un lien de paiement : ce qu'il a reçu."""
    phone_number: NotRequired[str]
    """Le numéro débité, indicatif compris."""
    from_: NotRequired[str]
    """Début : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."""
    to: NotRequired[str]
    """Fin : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."""
    per_page: NotRequired[int]
    """Éléments par page."""
    order: NotRequired[Literal["desc", "asc"]]
    """`desc` : les plus récents d'abord"""
    after: NotRequired[str]
    """Commence juste après cet élément : la `reference` ou l'`external_id` du dernier paiement reçu."""


class ListRefundsQuery(TypedDict):
    """Lister les remboursements."""

    status: NotRequired[Literal["pending", "succeeded", "failed"]]
    """État du remboursement."""
    from_: NotRequired[str]
    """Début : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."""
    to: NotRequired[str]
    """Fin : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."""
    payment_reference: NotRequired[str]
    """La référence du paiement remboursé, exactement."""
    per_page: NotRequired[int]
    """Éléments par page."""
    order: NotRequired[Literal["desc", "asc"]]
    """`desc` : les plus récents d'abord"""
    after: NotRequired[str]
    """Commence juste après cet élément : la `reference` du dernier remboursement reçu."""


class ListDeliveriesQuery(TypedDict):
    """Lire le journal des envois."""

    status: NotRequired[Literal["pending", "success", "failed"]]
    """État de l'envoi."""
    event: NotRequired[Literal["payment.succeeded", "payment.failed", "payment.refunded", "refund.succeeded", "refund.failed", "dispute.opened", "dispute.won", "dispute.lost", "webhook.test", "checkout_session.completed", "checkout_session.expired"]]
    """Nom de l'événement."""
    payment_reference: NotRequired[str]
    """La référence du paiement : ses événements et ceux de son remboursement."""
    from_: NotRequired[str]
    """Début : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."""
    to: NotRequired[str]
    """Fin : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse."""
    per_page: NotRequired[int]
    """Éléments par page."""
    order: NotRequired[Literal["desc", "asc"]]
    """`desc` : les plus récents d'abord"""
    after: NotRequired[str]
    """Commence juste après cet élément : l'`id` du dernier envoi reçu."""


class CheckoutSessionBody(TypedDict):
    """CheckoutSessionBody"""

    amount: float
    """Ce que vous encaissez, dans l'unité principale."""
    cancel_url: NotRequired[str | None]
    """Page où mène le lien par lequel le client renonce (http ou https)."""
    currency: NotRequired[Literal["XOF", "XAF", "EUR", "USD"]]
    """Devise du paiement."""
    customer: NotRequired[Customer | None]
    """Ce que vous savez du client : le formulaire en est prérempli, et ses paiements le portent."""
    description: str
    """Libellé montré au client."""
    expires_at: NotRequired[str | None]
    """Fin de la session, dans les 30 jours."""
    external_id: NotRequired[str | None]
    """Votre identifiant de la session, unique parmi vos sessions de l'environnement."""
    metadata: NotRequired[dict[str, Any] | None]
    """Données libres, rendues telles quelles dans la session, dans ses paiements et dans leurs webhooks."""
    operators: NotRequired[list[str] | None]
    """Les seuls opérateurs que le client peut choisir."""
    return_url: NotRequired[str | None]
    """Page où le client revient après le paiement (http ou https)"""


class CheckoutSessionNotification(TypedDict):
    """Le corps d'un événement `checkout_session.*`."""

    created_at: str
    """Date de mise en file."""
    data: CheckoutSession
    """La session de paiement."""
    event: Literal["checkout_session.completed", "checkout_session.expired"]
    """Nom de l'événement."""
    id: str
    """Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence."""
    livemode: bool
    """`false` pour tout ce qui vient de l'environnement de test."""


class DisputeNotification(TypedDict):
    """Le corps d'un événement `dispute.*`."""

    created_at: str
    """Date de mise en file."""
    data: Dispute
    """La contestation."""
    event: Literal["dispute.opened", "dispute.won", "dispute.lost"]
    """Nom de l'événement."""
    id: str
    """Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence."""
    livemode: bool
    """`false` pour tout ce qui vient de l'environnement de test."""


class Payment(TypedDict):
    """Un paiement."""

    amount: float
    """Ce que vous encaissez."""
    checkout_session: NotRequired[PaymentSession]
    """La session de paiement dont il vient."""
    created_at: str
    """Date de création (UTC)."""
    currency: Literal["XOF", "XAF", "EUR", "USD"]
    """Devise du paiement."""
    customer: PaymentCustomer
    """Le client."""
    debited_amount: float
    """Ce que l'opérateur débite réellement au client : `total_amount`, arrondi à l'unité (la moitié vers le haut) en XOF et XAF, cartes comprises."""
    description: str
    """Libellé de la commande."""
    external_id: str | None
    """Votre propre identifiant de commande"""
    failure: PaymentFailure | None
    """Pourquoi le paiement a échoué"""
    fee_amount: float
    """Frais de service, payés par le client en plus de `amount`."""
    identifier: str
    """Numéro lisible et croissant, pour l'affichage seulement."""
    metadata: dict[str, Any] | None
    """Exactement ce que vous avez envoyé, octet pour octet"""
    payment_link: PaymentSourceLink | None
    """Le lien de paiement dont il vient"""
    payment_mode: PaymentModeSummary | None
    """Le moyen de paiement utilisé"""
    payment_url: str | None
    """Page de paiement hébergée."""
    redirect_url: NotRequired[str]
    """Présent seulement tant que le paiement est `pending` et que l'opérateur confirme sur sa propre page ou application (Wave, Orange selon le pays) : envoyez-y votre client."""
    reference: str
    """Identifiant du paiement."""
    status: Literal["pending", "succeeded", "failed", "refunded"]
    """`pending` → `succeeded` ou `failed`"""
    total_amount: float
    """Ce dont le client est débité : `amount` + `fee_amount`."""
    updated_at: str
    """Date du dernier changement de `status` (UTC)."""


class PaymentBody(TypedDict):
    """PaymentBody"""

    amount: float
    """Ce que vous encaissez, dans l'unité principale."""
    callback_url: NotRequired[str | None]
    """Adresse HTTPS qui reçoit les événements de ce paiement et de son remboursement à la place de celle du compte."""
    currency: NotRequired[Literal["XOF", "XAF", "EUR", "USD"]]
    """Devise du paiement."""
    customer: NotRequired[Customer | None]
    """Le client."""
    description: NotRequired[str | None]
    """Libellé de la commande."""
    external_id: NotRequired[str | None]
    """Votre identifiant de commande, unique dans chaque environnement."""
    metadata: NotRequired[dict[str, Any] | None]
    """Données libres, rendues telles quelles dans les réponses et les webhooks."""
    operator: NotRequired[str | None]
    """Code de l'opérateur, sans égard à la casse."""
    otp: NotRequired[str | None]
    """Code de validation obtenu par le client auprès de son opérateur."""
    payment_mode_id: NotRequired[int | None]
    """Identifiant du moyen de paiement dans le catalogue."""
    phone_number: NotRequired[str | None]
    """De 8 à 15 chiffres, indicatif compris, sans espace ni tiret ; un `+` initial est toléré."""
    return_url: NotRequired[str | None]
    """Page où le client revient après le paiement (http ou https)"""
    test_scenario: NotRequired[Literal["refund_failed", "refund_pending", "redirect", "wrong_otp", "expired", "payment_link", "amount_mismatch", "webhook_twice", "webhook_out_of_order"]]
    """Ce que ce paiement de test doit vivre et qu'aucun numéro n'atteint (voir « Environnement de test »)."""


class Refund(TypedDict):
    """Un remboursement : toujours total, et unique pour un paiement."""

    amount: float
    """Le `total_amount` du paiement."""
    created_at: str
    """Date de la demande."""
    currency: Literal["XOF", "XAF", "EUR", "USD"]
    """Devise du paiement d'origine."""
    failure: RefundFailure | None
    """Pourquoi il est `failed`"""
    payment_reference: str
    """Référence du paiement remboursé."""
    processed_at: str | None
    """Date d'exécution"""
    reason: str
    """Motif enregistré."""
    reference: str
    """Identifiant du remboursement (et non du paiement)."""
    refunded_amount: float
    """Ce que l'opérateur rend au client : `amount` arrondi à la plus petite unité de la devise, comme le `debited_amount` du paiement."""
    status: Literal["pending", "succeeded", "failed"]
    """`pending` → `succeeded` ou `failed`."""


class WebhookTestNotification(TypedDict):
    """Le corps de l'événement `webhook.test`."""

    created_at: str
    """Date de mise en file."""
    data: WebhookMessage
    """Le message de test."""
    event: Literal["webhook.test"]
    """Nom de l'événement."""
    id: str
    """Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence."""
    livemode: bool
    """`false` pour tout ce qui vient de l'environnement de test."""


class PaymentNotification(TypedDict):
    """Le corps d'un événement `payment.*`."""

    created_at: str
    """Date de mise en file."""
    data: Payment
    """Le paiement."""
    event: Literal["payment.succeeded", "payment.failed", "payment.refunded"]
    """Nom de l'événement."""
    id: str
    """Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence."""
    livemode: bool
    """`false` pour tout ce qui vient de l'environnement de test."""


class RefundNotification(TypedDict):
    """Le corps d'un événement `refund.*`."""

    created_at: str
    """Date de mise en file."""
    data: Refund
    """Le remboursement."""
    event: Literal["refund.succeeded", "refund.failed"]
    """Nom de l'événement."""
    id: str
    """Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence."""
    livemode: bool
    """`false` pour tout ce qui vient de l'environnement de test."""


Event = CheckoutSessionNotification | DisputeNotification | PaymentNotification | RefundNotification | WebhookTestNotification
