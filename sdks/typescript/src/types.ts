// The types of the API. Written by `python -m tests.frozen` from the OpenAPI document.

/** Le solde d'un portefeuille. */
export interface Balance {
  /** Solde dans l'unité principale : la valeur à afficher. */
  balance: number;
  /** Le même solde multiplié par 100 dans toutes les devises, XOF compris. */
  balance_minor: number;
  /** Devise du portefeuille. */
  currency: "XOF" | "XAF" | "EUR" | "USD";
  /** Hors de `Actif`, aucun mouvement n'est accepté. */
  status: "Actif" | "Gelé" | "Fermé";
  /** Date du dernier mouvement. */
  updated_at: string;
}

/** Une page de paiement hébergée pour une seule commande : le client y choisit son pays et son moyen de paiement. */
export interface CheckoutSession {
  /** Ce que vous encaissez. */
  amount: number;
  /** Page où mène le renoncement */
  cancel_url: string | null;
  /** Date de création. */
  created_at: string;
  /** Devise. */
  currency: "XOF" | "XAF" | "EUR" | "USD";
  /** Libellé montré au client. */
  description: string;
  /** Fin : personne ne peut plus commencer à payer. */
  expires_at: string;
  /** Votre identifiant de la session */
  external_id: string | null;
  /** Identifiant de la session. */
  id: string;
  /** Exactement ce que vous avez envoyé, octet pour octet, comme dans chacun de ses paiements */
  metadata: Record<string, unknown> | null;
  /** Les seuls opérateurs proposés */
  operators: Array<string> | null;
  /** Référence du paiement qui l'a payée */
  payment_reference: string | null;
  /** Page où le client revient après le paiement */
  return_url: string | null;
  /** `open` → `completed` (un paiement a abouti) ou `expired` (plus aucun n'aboutira). */
  status: "open" | "completed" | "expired";
  /** Page à ouvrir par le client. */
  url: string;
}

export interface CheckoutSessionBody {
  /** Ce que vous encaissez, dans l'unité principale. */
  amount: number;
  /** Page où mène le lien par lequel le client renonce (http ou https). */
  cancel_url?: string | null;
  /** Devise du paiement. */
  currency?: "XOF" | "XAF" | "EUR" | "USD";
  /** Ce que vous savez du client : le formulaire en est prérempli, et ses paiements le portent. */
  customer?: Customer | null;
  /** Libellé montré au client. */
  description: string;
  /** Fin de la session, dans les 30 jours. */
  expires_at?: string | null;
  /** Votre identifiant de la session, unique parmi vos sessions de l'environnement. */
  external_id?: string | null;
  /** Données libres, rendues telles quelles dans la session, dans ses paiements et dans leurs webhooks. */
  metadata?: Record<string, unknown> | null;
  /** Les seuls opérateurs que le client peut choisir. */
  operators?: Array<string> | null;
  /** Page où le client revient après le paiement (http ou https) */
  return_url?: string | null;
}

/** Le corps d'un événement `checkout_session.*`. */
export interface CheckoutSessionNotification {
  /** Date de mise en file. */
  created_at: string;
  /** La session de paiement. */
  data: CheckoutSession;
  /** Nom de l'événement. */
  event: "checkout_session.completed" | "checkout_session.expired";
  /** Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence. */
  id: string;
  /** `false` pour tout ce qui vient de l'environnement de test. */
  livemode: boolean;
}

export interface Customer {
  /** Adresse postale. */
  address?: string | null;
  /** Pays, pour les cartes. */
  country?: string | null;
  /** Adresse e-mail, qui sert à rapprocher vos clients. */
  email?: string | null;
  /** Prénom. */
  firstname?: string | null;
  /** Nom. */
  lastname?: string | null;
}

/** Une contestation : le porteur de la carte conteste le paiement auprès de sa banque. */
export interface Dispute {
  /** Montant que la banque a repris. */
  amount: number;
  /** Date de la décision */
  closed_at: string | null;
  /** Date de la contestation. */
  created_at: string;
  /** Devise du paiement. */
  currency: "XOF" | "XAF" | "EUR" | "USD";
  /** Jusqu'à quand vos justificatifs peuvent être envoyés */
  evidence_due_at: string | null;
  /** Référence du paiement contesté, dont le statut ne change pas. */
  payment_reference: string;
  /** Motif, dans les mots du réseau de cartes. */
  reason: string;
  /** Identifiant de la contestation. */
  reference: string;
  /** `open` → `won` (le montant est rendu) ou `lost`. */
  status: "open" | "won" | "lost";
}

/** Le corps d'un événement `dispute.*`. */
export interface DisputeNotification {
  /** Date de mise en file. */
  created_at: string;
  /** La contestation. */
  data: Dispute;
  /** Nom de l'événement. */
  event: "dispute.opened" | "dispute.won" | "dispute.lost";
  /** Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence. */
  id: string;
  /** `false` pour tout ce qui vient de l'environnement de test. */
  livemode: boolean;
}

export interface EndpointBody {
  /** Heures pendant lesquelles l'ancien secret signe encore dans `webhook-signature`, qui porte alors deux signatures. */
  overlap_hours?: number | null;
  /** `true` remplace le secret ; l'ancien cesse aussitôt de valoir, sauf `overlap_hours`. */
  rotate_secret?: boolean;
  /** Adresse HTTPS publique. */
  url: string | null;
}

export interface FeeBody {
  /** Le montant que vous voulez encaisser. */
  amount: number;
  /** Code de l'opérateur, sans égard à la casse. */
  operator?: string | null;
  /** Identifiant du moyen de paiement dans le catalogue. */
  payment_mode_id?: number | null;
}

/** Une simulation : `fee_amount = amount × fee_percent / 100 + fee_fixed`, arrondi au centième (la moitié vers le haut) dans toutes les devises. */
export interface FeeQuote {
  /** Le montant demandé. */
  amount: number;
  /** Les frais. */
  fee_amount: number;
  /** Part fixe appliquée. */
  fee_fixed: number;
  /** Part proportionnelle appliquée, en pourcentage. */
  fee_percent: number;
  /** Code de l'opérateur. */
  operator: string;
  /** Identifiant du moyen de paiement dans le catalogue. */
  payment_mode_id: number;
  /** Ce dont le client serait débité. */
  total_amount: number;
}

export interface LinkBody {
  /** Ce que vous encaissez à chaque paiement, dans la devise par défaut de votre compte. */
  amount: number;
  /** Libellé montré au client. */
  description: string;
  /** Fermeture, postérieure à `starts_at`. */
  expires_at?: string | null;
  /** Votre identifiant du lien, unique parmi vos liens. */
  external_id?: string | null;
  /** Nombre d'utilisations. */
  max_uses?: number | null;
  /** Données libres, rendues telles quelles dans le lien, dans ses paiements et dans leurs webhooks. */
  metadata?: Record<string, unknown> | null;
  /** Page vers laquelle la page de paiement renvoie le client à la fin (http ou https) */
  return_url?: string | null;
  /** Ouverture. */
  starts_at?: string | null;
  /** `limité` s'écrit avec l'accent, en UTF-8 ; toute autre écriture est refusée. */
  type?: "permanent" | "limité";
}

/** Un paiement. */
export interface Payment {
  /** Ce que vous encaissez. */
  amount: number;
  /** La session de paiement dont il vient. */
  checkout_session?: PaymentSession;
  /** Date de création (UTC). */
  created_at: string;
  /** Devise du paiement. */
  currency: "XOF" | "XAF" | "EUR" | "USD";
  /** Le client. */
  customer: PaymentCustomer;
  /** Ce que l'opérateur débite réellement au client : `total_amount`, arrondi à l'unité (la moitié vers le haut) en XOF et XAF, cartes comprises. */
  debited_amount: number;
  /** Libellé de la commande. */
  description: string;
  /** Votre propre identifiant de commande */
  external_id: string | null;
  /** Pourquoi le paiement a échoué */
  failure: PaymentFailure | null;
  /** Frais de service, payés par le client en plus de `amount`. */
  fee_amount: number;
  /** Numéro lisible et croissant, pour l'affichage seulement. */
  identifier: string;
  /** Exactement ce que vous avez envoyé, octet pour octet */
  metadata: Record<string, unknown> | null;
  /** Le lien de paiement dont il vient */
  payment_link: PaymentSourceLink | null;
  /** Le moyen de paiement utilisé */
  payment_mode: PaymentModeSummary | null;
  /** Page de paiement hébergée. */
  payment_url: string | null;
  /** Présent seulement tant que le paiement est `pending` et que l'opérateur confirme sur sa propre page ou application (Wave, Orange selon le pays) : envoyez-y votre client. */
  redirect_url?: string;
  /** Identifiant du paiement. */
  reference: string;
  /** `pending` → `succeeded` ou `failed` */
  status: "pending" | "succeeded" | "failed" | "refunded";
  /** Ce dont le client est débité : `amount` + `fee_amount`. */
  total_amount: number;
  /** Date du dernier changement de `status` (UTC). */
  updated_at: string;
}

export interface PaymentBody {
  /** Ce que vous encaissez, dans l'unité principale. */
  amount: number;
  /** Adresse HTTPS qui reçoit les événements de ce paiement et de son remboursement à la place de celle du compte. */
  callback_url?: string | null;
  /** Devise du paiement. */
  currency?: "XOF" | "XAF" | "EUR" | "USD";
  /** Le client. */
  customer?: Customer | null;
  /** Libellé de la commande. */
  description?: string | null;
  /** Votre identifiant de commande, unique dans chaque environnement. */
  external_id?: string | null;
  /** Données libres, rendues telles quelles dans les réponses et les webhooks. */
  metadata?: Record<string, unknown> | null;
  /** Code de l'opérateur, sans égard à la casse. */
  operator?: string | null;
  /** Code de validation obtenu par le client auprès de son opérateur. */
  otp?: string | null;
  /** Identifiant du moyen de paiement dans le catalogue. */
  payment_mode_id?: number | null;
  /** De 8 à 15 chiffres, indicatif compris, sans espace ni tiret ; un `+` initial est toléré. */
  phone_number?: string | null;
  /** Page où le client revient après le paiement (http ou https) */
  return_url?: string | null;
  /** Ce que ce paiement de test doit vivre et qu'aucun numéro n'atteint (voir « Environnement de test »). */
  test_scenario?: "refund_failed" | "refund_pending" | "redirect" | "wrong_otp" | "expired" | "payment_link" | "amount_mismatch" | "webhook_twice" | "webhook_out_of_order";
}

/** Le client, tel que vous l'avez décrit ; chaque champ vaut `null` s'il n'a pas été envoyé. */
export interface PaymentCustomer {
  /** Adresse e-mail. */
  email: string | null;
  /** Prénom. */
  firstname: string | null;
  /** Nom. */
  lastname: string | null;
  /** Numéro en chiffres seulement, indicatif compris (un `+` initial est retiré). */
  phone_number: string | null;
}

/** Pourquoi le paiement a échoué. */
export interface PaymentFailure {
  /** Identifiant stable, dont la liste peut s'allonger : traitez un code inconnu comme `other`. */
  code: string;
  /** Phrase en français que vous pouvez montrer au client. */
  message: string;
}

/** Un lien vers une page de paiement hébergée, à montant et libellé fixes. */
export interface PaymentLink {
  /** Ce que vous encaissez à chaque paiement, dans la devise par défaut de votre compte. */
  amount: number;
  /** Date de création. */
  created_at: string;
  /** Libellé montré au client. */
  description: string;
  /** Fermeture */
  expires_at: string | null;
  /** Votre identifiant du lien */
  external_id: string | null;
  /** Identifiant numérique, pour `GET /payment-links/{id}`. */
  id: number;
  /** Nombre d'utilisations permises */
  max_uses: number | null;
  /** Exactement ce que vous avez envoyé, octet pour octet, comme dans chacun de ses paiements */
  metadata: Record<string, unknown> | null;
  /** Page où le client revient après le paiement */
  return_url: string | null;
  /** Ouverture */
  starts_at: string | null;
  /** `permanent` ou `limité` (avec l'accent). */
  type: "permanent" | "limité";
  /** Adresse publique à partager. */
  url: string;
  /** Paiements aboutis par ce lien. */
  uses_count: number;
  /** Utilisations restantes, jamais moins de 0 ; toujours `null` pour un lien permanent. */
  uses_left: number | null;
}

/** Un moyen de paiement ouvert à votre compte, avec vos frais. */
export interface PaymentMode {
  /** État technique de l'opérateur. */
  availability: string;
  /** Nom du pays */
  country: string | null;
  /** Code ISO-2 du pays */
  country_code: string | null;
  /** Part fixe des frais. */
  fee_fixed: number;
  /** Part proportionnelle des frais, en pourcentage. */
  fee_percent: number;
  /** Identifiant dans le catalogue, utilisable comme `payment_mode_id`. */
  id: number;
  /** Logo de l'opérateur. */
  logo: string | null;
  /** Nom à afficher. */
  name: string;
  /** Code de l'opérateur, utilisable comme `operator`. */
  operator: string;
  /** `true` : `otp` est obligatoire à la création d'un paiement. */
  requires_otp: boolean;
  /** Famille du moyen de paiement. */
  type: "mobile_money" | "card" | "bank_transfer" | "e_wallet" | "other";
}

/** Le moyen de paiement utilisé, en bref. */
export interface PaymentModeSummary {
  /** Nom du pays */
  country: string | null;
  /** Code ISO-2 du pays */
  country_code: string | null;
  /** Identifiant dans le catalogue, utilisable comme `payment_mode_id`. */
  id: number;
  /** Nom à afficher. */
  name: string;
  /** Code de l'opérateur, utilisable comme `operator`. */
  operator: string;
  /** Famille du moyen de paiement. */
  type: "mobile_money" | "card" | "bank_transfer" | "e_wallet" | "other";
}

/** Le corps d'un événement `payment.*`. */
export interface PaymentNotification {
  /** Date de mise en file. */
  created_at: string;
  /** Le paiement. */
  data: Payment;
  /** Nom de l'événement. */
  event: "payment.succeeded" | "payment.failed" | "payment.refunded";
  /** Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence. */
  id: string;
  /** `false` pour tout ce qui vient de l'environnement de test. */
  livemode: boolean;
}

/** La session de paiement dont il vient. */
export interface PaymentSession {
  /** Votre identifiant de la session */
  external_id: string | null;
  /** Identifiant de la session, pour `GET /checkout-sessions/{id}`. */
  id: string;
}

/** Le lien de paiement par lequel le client a payé. */
export interface PaymentSourceLink {
  /** Votre identifiant du lien */
  external_id: string | null;
  /** Identifiant numérique, pour `GET /payment-links/{id}`. */
  id: number;
}

/** Un remboursement : toujours total, et unique pour un paiement. */
export interface Refund {
  /** Le `total_amount` du paiement. */
  amount: number;
  /** Date de la demande. */
  created_at: string;
  /** Devise du paiement d'origine. */
  currency: "XOF" | "XAF" | "EUR" | "USD";
  /** Pourquoi il est `failed` */
  failure: RefundFailure | null;
  /** Référence du paiement remboursé. */
  payment_reference: string;
  /** Date d'exécution */
  processed_at: string | null;
  /** Motif enregistré. */
  reason: string;
  /** Identifiant du remboursement (et non du paiement). */
  reference: string;
  /** Ce que l'opérateur rend au client : `amount` arrondi à la plus petite unité de la devise, comme le `debited_amount` du paiement. */
  refunded_amount: number;
  /** `pending` → `succeeded` ou `failed`. */
  status: "pending" | "succeeded" | "failed";
}

export interface RefundBody {
  /** Motif, pour vos archives. */
  reason?: string | null;
}

/** Pourquoi un remboursement a échoué. */
export interface RefundFailure {
  /** Code stable ; il peut s'en ajouter. */
  code: string;
  /** Phrase pour vous, qui peut changer. */
  message: string;
}

/** Le corps d'un événement `refund.*`. */
export interface RefundNotification {
  /** Date de mise en file. */
  created_at: string;
  /** Le remboursement. */
  data: Refund;
  /** Nom de l'événement. */
  event: "refund.succeeded" | "refund.failed";
  /** Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence. */
  id: string;
  /** `false` pour tout ce qui vient de l'environnement de test. */
  livemode: boolean;
}

/** Un remboursement qu'un programme propose, et qu'une personne de votre équipe confirme ou décline. */
export interface RefundProposal {
  /** Le `total_amount` du paiement : un remboursement est toujours total. */
  amount: number;
  /** Date de la proposition. */
  created_at: string;
  /** Devise du paiement. */
  currency: "XOF" | "XAF" | "EUR" | "USD";
  /** Fin : sans décision avant cette date, la proposition est `expired`. */
  expires_at: string;
  /** Référence du paiement. */
  payment_reference: string;
  /** Motif proposé, que la personne peut changer */
  reason: string | null;
  /** Référence du remboursement */
  refund_reference: string | null;
  /** `open` → `confirmed` (le paiement est remboursé, ou va l'être), `declined` ou `expired`. */
  status: "open" | "confirmed" | "declined" | "expired";
  /** Page de la console où une personne qui a le droit de rembourser confirme ou décline. */
  url: string;
}

/** Un envoi de webhook, dans le journal. */
export interface WebhookDelivery {
  /** Tentatives faites. */
  attempts: number;
  /** Mise en file. */
  created_at: string;
  /** Date de l'envoi réussi */
  delivered_at: string | null;
  /** Pourquoi la dernière tentative a échoué, en une phrase pour les humains */
  error: string | null;
  /** Nom de l'événement. */
  event: string;
  /** Identifiant de l'envoi : l'`id` du corps envoyé et l'en-tête `X-Service-Delivery`. */
  id: string;
  /** Prochaine tentative, au plus tôt */
  next_attempt_at: string | null;
  /** Le paiement dont parle l'événement, ou dont parle son remboursement */
  payment_reference: string | null;
  /** Statut HTTP répondu par votre serveur */
  response_code: number | null;
  /** `pending` tant qu'une tentative reste à faire, puis `success` ou `failed`. */
  status: "pending" | "success" | "failed";
  /** Adresse appelée. */
  url: string;
}

/** Votre point de terminaison pour l'environnement de la clé. */
export interface WebhookEndpoint {
  /** Les événements envoyés. */
  events: Array<string>;
  /** `true` en production, `false` en test. */
  livemode: boolean;
  /** Clé de signature, `whsec_` compris */
  secret: string | null;
  /** Adresse appelée */
  url: string | null;
}

/** Le contenu d'un événement de test. */
export interface WebhookMessage {
  /** Une phrase. */
  message: string;
}

/** Le sort d'un événement de test. */
export interface WebhookTest {
  /** Identifiant de l'envoi */
  delivery_id: string | null;
  /** Présent seulement avec `sent: false` : la raison. */
  message?: string;
  /** `true` : l'envoi est en file. */
  sent: boolean;
  /** Adresse appelée */
  url: string | null;
}

/** Le corps de l'événement `webhook.test`. */
export interface WebhookTestNotification {
  /** Date de mise en file. */
  created_at: string;
  /** Le message de test. */
  data: WebhookMessage;
  /** Nom de l'événement. */
  event: "webhook.test";
  /** Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence. */
  id: string;
  /** `false` pour tout ce qui vient de l'environnement de test. */
  livemode: boolean;
}

/** Votre point de terminaison, tel qu'il vient d'être enregistré. */
export interface WrittenWebhookEndpoint {
  /** `true` en production, `false` en test. */
  livemode: boolean;
  /** Clé de signature, `whsec_` compris */
  secret: string | null;
  /** Adresse appelée */
  url: string | null;
}

/** Lire le solde. */
export interface ReadBalanceQuery {
  /** Devise, sans égard à la casse : `XOF`, `XAF`, `EUR`, `USD`. */
  currency?: string;
}

/** Lister les contestations. */
export interface ListDisputesQuery {
  /** État de la contestation. */
  status?: "open" | "won" | "lost";
  /** La référence du paiement contesté, exactement. */
  payment_reference?: string;
  /** Éléments par page. */
  per_page?: number;
  /** `desc` : les plus récents d'abord */
  order?: "desc" | "asc";
  /** Commence juste après cet élément : la `reference` de la dernière contestation reçue. */
  after?: string;
}

/** Lister les événements. */
export interface ListEventsQuery {
  /** Nom de l'événement. */
  type?: "payment.succeeded" | "payment.failed" | "payment.refunded" | "refund.succeeded" | "refund.failed" | "dispute.opened" | "dispute.won" | "dispute.lost" | "webhook.test" | "checkout_session.completed" | "checkout_session.expired";
  /** Début : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse. */
  from?: string;
  /** Fin : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse. */
  to?: string;
  /** Éléments par page. */
  per_page?: number;
  /** Commence juste après cet événement, nommé par son `id`. */
  after?: string;
}

/** Lister les liens de paiement. */
export interface ListLinksQuery {
  /** Votre identifiant du lien, exactement. */
  external_id?: string;
  /** Éléments par page. */
  per_page?: number;
  /** `desc` : les plus récents d'abord */
  order?: "desc" | "asc";
  /** Commence juste après cet élément : l'`id` du dernier lien reçu. */
  after?: string;
}

/** Lister les moyens de paiement. */
export interface ListModesQuery {
  /** Code ISO-2, sans égard à la casse. */
  country?: string;
  /** Famille du moyen de paiement. */
  type?: "mobile_money" | "card" | "bank_transfer" | "e_wallet";
}

/** Lister les paiements. */
export interface ListPaymentsQuery {
  /** État. */
  status?: "pending" | "succeeded" | "failed" | "refunded";
  /** Votre identifiant de commande, exactement. */
  external_id?: string;
  /** L'`id` d'un lien de paiement : ce qu'il a reçu. */
  payment_link?: string;
  /** Le numéro débité, indicatif compris. */
  phone_number?: string;
  /** Début : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse. */
  from?: string;
  /** Fin : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse. */
  to?: string;
  /** Éléments par page. */
  per_page?: number;
  /** `desc` : les plus récents d'abord */
  order?: "desc" | "asc";
  /** Commence juste après cet élément : la `reference` ou l'`external_id` du dernier paiement reçu. */
  after?: string;
}

/** Lister les remboursements. */
export interface ListRefundsQuery {
  /** État du remboursement. */
  status?: "pending" | "succeeded" | "failed";
  /** Début : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse. */
  from?: string;
  /** Fin : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse. */
  to?: string;
  /** La référence du paiement remboursé, exactement. */
  payment_reference?: string;
  /** Éléments par page. */
  per_page?: number;
  /** `desc` : les plus récents d'abord */
  order?: "desc" | "asc";
  /** Commence juste après cet élément : la `reference` du dernier remboursement reçu. */
  after?: string;
}

/** Lire le journal des envois. */
export interface ListDeliveriesQuery {
  /** État de l'envoi. */
  status?: "pending" | "success" | "failed";
  /** Nom de l'événement. */
  event?: "payment.succeeded" | "payment.failed" | "payment.refunded" | "refund.succeeded" | "refund.failed" | "dispute.opened" | "dispute.won" | "dispute.lost" | "webhook.test" | "checkout_session.completed" | "checkout_session.expired";
  /** La référence du paiement : ses événements et ceux de son remboursement. */
  payment_reference?: string;
  /** Début : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse. */
  from?: string;
  /** Fin : `AAAA-MM-JJ` ou ISO-8601, UTC sans autre indication, comparée à `created_at` et incluse. */
  to?: string;
  /** Éléments par page. */
  per_page?: number;
  /** `desc` : les plus récents d'abord */
  order?: "desc" | "asc";
  /** Commence juste après cet élément : l'`id` du dernier envoi reçu. */
  after?: string;
}

export type Event = CheckoutSessionNotification | DisputeNotification | PaymentNotification | RefundNotification | WebhookTestNotification;
