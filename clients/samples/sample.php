<?php

// Créer un paiement, le lire, le rembourser, ouvrir une page de paiement, avec le client PHP d'openapi-generator.
// En ligne de commande : GUICHET=http://127.0.0.1:8000/v1 CLE=sk_test_… php sample.php commande-1042

declare(strict_types=1);

require __DIR__ . '/vendor/autoload.php';

use Guichet\Api\PaiementsApi;
use Guichet\Api\RemboursementsApi;
use Guichet\Api\SessionsDePaiementApi;
use Guichet\Configuration;
use Guichet\Model\CheckoutSessionBody;
use Guichet\Model\PaymentBody;
use Guichet\Model\RefundBody;

$configuration = (new Configuration())->setHost(getenv('GUICHET'))->setAccessToken(getenv('CLE'));
$payments = new PaiementsApi(config: $configuration);
$refunds = new RemboursementsApi(config: $configuration);
$sessions = new SessionsDePaiementApi(config: $configuration);

$created = $payments->createPayment(new PaymentBody([
    'amount' => 5000,
    'operator' => 'mtn',
    'phone_number' => '2290197000000',
    'external_id' => $argv[1],
]))->getData();

$payment = $payments->readPayment($created->getReference())->getData();
if ($payment->getStatus() !== 'succeeded') {
    throw new RuntimeException("encore {$payment->getStatus()} : attendez le webhook");
}

$refund = $refunds->createRefund(
    $payment->getReference(),
    idempotency_key: 'refund-' . $payment->getReference(),
    refund_body: new RefundBody(['reason' => 'Article indisponible']),
);

// Tout parcourir : `after` nomme le dernier élément reçu.
$last = null;
do {
    $page = $payments->listPayments(per_page: 2, order: 'asc', after: $last)->getData();
    $last = $page === [] ? null : end($page)->getReference();
} while (count($page) === 2);

// La page où le client choisit son opérateur : envoyez-le à cette adresse.
$session = $sessions->createSession(new CheckoutSessionBody([
    'amount' => 5000,
    'description' => 'Commande 1042',
    'external_id' => 'page-' . $argv[1],
]))->getData();

echo $session->getStatus(), ' ', $session->getUrl(), "\n";
echo $payment->getStatus(), ' ', $payment->getTotalAmount(), ' ', $refund->getData()->getStatus(), "\n";
