<?php

declare(strict_types=1);

namespace Guichet;

/**
 * Webhooks: verify, then read (https://www.standardwebhooks.com).
 *
 * @phpstan-import-type Event from Types
 */
final class Webhooks
{
    /** Seconds between our clock and the receiver's, in both directions. */
    private const TOLERANCE = 300;

    /**
     * The event, if one of the secrets signed it at most five minutes ago; else throws SignatureVerification.
     *
     * @param string $rawBody what was received, before any decoding: file_get_contents('php://input')
     * @param array<string, string|string[]> $headers getallheaders(), those of PSR-7, or $_SERVER
     * @param string|string[] $secrets one, or several while one replaces another
     * @return Event
     */
    public static function unwrap(string $rawBody, array $headers, $secrets): array
    {
        $keys = array_map([self::class, 'key'], (array) $secrets);
        if ($keys === []) {
            throw new \InvalidArgumentException("Aucun secret de webhook n'est donné.");
        }
        $lower = self::lowered($headers);
        $timestamp = $lower['webhook-timestamp'] ?? '';
        if (!ctype_digit($timestamp) || abs(time() - (float) $timestamp) > self::TOLERANCE) {
            throw new SignatureVerification("L'horodatage du webhook manque, ou est à plus de cinq minutes.");
        }
        $signed = ($lower['webhook-id'] ?? '') . ".$timestamp.$rawBody";
        foreach (explode(' ', $lower['webhook-signature'] ?? '') as $theirs) {
            foreach ($keys as $key) {
                if (hash_equals('v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true)), $theirs)) {
                    return json_decode($rawBody, true, 512, JSON_THROW_ON_ERROR);
                }
            }
        }
        throw new SignatureVerification("Aucune signature du webhook n'est celle d'un de vos secrets.");
    }

    /** An empty secret would accept what anybody signs. */
    private static function key(string $secret): string
    {
        $key = base64_decode((string) preg_replace('/^whsec_/', '', trim($secret)), true);
        if ($key === false || $key === '') {
            throw new \InvalidArgumentException(
                "Le secret de webhook est vide ou n'en est pas un : il commence par whsec_."
            );
        }
        return $key;
    }

    /**
     * @param array<string, mixed> $headers
     * @return array<string, string>
     */
    private static function lowered(array $headers): array
    {
        $lower = [];
        foreach ($headers as $name => $value) {
            $name = strtr(strtolower((string) $name), '_', '-');
            $name = strpos($name, 'http-') === 0 ? substr($name, 5) : $name;
            $lower[$name] = is_array($value) ? implode(' ', $value) : (is_string($value) ? $value : '');
        }
        return $lower;
    }
}
