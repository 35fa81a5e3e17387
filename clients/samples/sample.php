<?php

// Créer un paiement, le lire, le rembourser, avec le client PHP d'openapi-generator.
// En ligne de commande : GUICHET=http://127.0.0.1:8000/v1 CLE=sk_test_… php sample.php commande-1042

declare(strict_types=1);

require __DIR__ . '/vendor/autoload.php';

use Guichet\Api\PaiementsApi;
use Guichet\Api\RemboursementsApi;
use Guichet\Configuration;
use Guichet\Model\PaymentBody;
use Guichet\Model\RefundBody;

$configuration = (new Configuration())->setHost(getenv('GUICHET'))->setAccessToken(getenv('CLE'));
$payments = new PaiementsApi(config: $configuration);
$refunds = new RemboursementsApi(config: $configuration);

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

$refund = $refunds->createRefund($payment->getReference(), new RefundBody(['reason' => 'Article indisponible']));
echo $payment->getStatus(), ' ', $payment->getTotalAmount(), ' ', $refund->getData()->getStatus(), "\n";
