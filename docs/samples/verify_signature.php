<?php

/**
 * Vérifie la signature d'un webhook. Aucune dépendance (PHP 8.0 ou plus récent).
 *
 * En ligne de commande : WEBHOOK_SECRET=whsec_… php verify_signature.php "<X-Service-Signature>" < corps.json
 * Code de sortie : 0 si la signature est valide, 1 sinon. Sans secret : une erreur.
 */

declare(strict_types=1);

/** $body est le corps reçu, octet pour octet : file_get_contents('php://input'), avant json_decode. */
function verify_signature(string $secret, mixed $header, string $body, ?int $now = null): bool
{
    if (trim($secret) === '') { // Une clé vide, tout le monde peut la deviner.
        throw new InvalidArgumentException('Le secret du webhook est vide : la signature ne prouverait rien.');
    }
    if (!is_string($header)) { // L'en-tête manque (null), ou votre cadriciel le rend en tableau : passez son texte.
        return false;
    }
    $times = [];
    $signatures = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = array_pad(explode('=', trim($part), 2), 2, '');
        if ($name === 't') {
            $times[] = $value;
        } elseif ($name === 'v1') {
            $signatures[] = $value;
        }
    }
    if (count($times) !== 1 || preg_match('/^[0-9]{1,15}$/D', $times[0]) !== 1) {
        return false;
    }
    if (abs(($now ?? time()) - (int) $times[0]) > 300) { // Plus de 5 minutes : trop vieux, ou dans l'avenir.
        return false;
    }
    $expected = hash_hmac('sha256', $times[0] . '.' . $body, $secret);
    foreach ($signatures as $given) {
        // hash_equals prend le même temps quel que soit l'endroit où les deux textes diffèrent.
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}

// $_SERVER et non $argv, qui n'existe pas quand ce fichier est inclus dans une fonction.
if (PHP_SAPI === 'cli' && realpath($_SERVER['argv'][0] ?? '') === __FILE__) {
    $header = $_SERVER['argv'][1] ?? '';
    $valid = verify_signature((string) getenv('WEBHOOK_SECRET'), $header, file_get_contents('php://stdin'));
    exit($valid ? 0 : 1);
}
