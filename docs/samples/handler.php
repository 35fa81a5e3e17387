<?php

/**
 * Reçoit les webhooks de Guichet. Aucune dépendance (PHP 8.1 ou plus récent) ; verify_signature.php est à côté de ce fichier.
 *
 * WEBHOOK_SECRET=whsec_… INBOX=/var/lib/boutique php -S 127.0.0.1:8080 handler.php
 * À lancer aussi par une tâche planifiée, pour ce qu'un arrêt a interrompu : php handler.php
 */

declare(strict_types=1);

require_once __DIR__ . '/verify_signature.php';

/** Un paiement ne recule jamais : un événement de rang inférieur ou égal est en retard, ou répété. */
const RANKS = ['payment.succeeded' => 1, 'payment.failed' => 1, 'payment.refunded' => 2];

/** Le statut de la réponse. L'événement est sur le disque quand c'est 200. */
function receive(string $inbox, string $body, ?string $header): int
{
    if (!verify_signature((string) getenv('WEBHOOK_SECRET'), $header, $body)) {
        return 400;
    }
    $id = json_decode($body, true, 512, JSON_THROW_ON_ERROR)['id'];
    if (preg_match('/^[0-9a-f-]{36}$/D', $id) !== 1) {
        return 400;
    }
    $part = $inbox . '/' . bin2hex(random_bytes(16)) . '.part';
    $file = fopen($part, 'xb');
    if ($file === false || fwrite($file, $body) !== strlen($body) || !fsync($file)) {
        return 500; // Guichet renverra l'événement.
    }
    fclose($file);
    // Le lien échoue si cet id est déjà là : avec une base de données, une contrainte d'unicité sur l'id.
    $event = "$inbox/$id.event";
    $stored = @link($part, $event) || file_exists($event);
    unlink($part);
    return $stored ? 200 : 500;
}

/** Traite ce qui est reçu et ne l'est pas encore, un processus à la fois. */
function work(string $inbox): void
{
    $lock = fopen("$inbox/lock", 'c');
    flock($lock, LOCK_EX);
    foreach (glob("$inbox/*.event") as $received) {
        $done = substr($received, 0, -6) . '.done';
        if (!file_exists($done)) {
            apply($inbox, json_decode(file_get_contents($received), true, 512, JSON_THROW_ON_ERROR));
            touch($done);
        }
    }
    fclose($lock);
}

/** Avec une base de données : la commande verrouillée, son état et l'id de l'événement dans une transaction. */
function apply(string $inbox, array $event): void
{
    $rank = RANKS[$event['event']] ?? null;
    if ($rank === null) {
        return; // Un événement que vous ne connaissez pas encore, ou dont vous n'avez pas l'usage.
    }
    $order = "$inbox/{$event['data']['reference']}.order";
    $state = file_exists($order) ? file_get_contents($order) : '';
    if ((RANKS[$state] ?? 0) >= $rank) {
        return;
    }
    file_put_contents("$order.part", $event['event']);
    rename("$order.part", $order);
    // Ici : livrer, annuler, ou reprendre la marchandise.
    file_put_contents("$inbox/actions.log", "{$event['data']['reference']} {$event['event']}\n", FILE_APPEND);
}

$inbox = (string) getenv('INBOX');
if (PHP_SAPI !== 'cli') {
    ignore_user_abort(true);
    $body = (string) file_get_contents('php://input'); // Brut, avant tout décodage.
    http_response_code(receive($inbox, $body, $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? null));
    header('Content-Length: 0');
    header('Connection: close');
    function_exists('fastcgi_finish_request') ? fastcgi_finish_request() : flush(); // Le travail vient après la réponse.
}
work($inbox);
