<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

/** WooCommerce → Status → Logs, source "guichet". No secret gets there, whatever an error quotes. */
final class Log
{
    public static function warning(string $message): void
    {
        wc_get_logger()->warning(self::withoutSecrets($message), ['source' => Plugin::ID]);
    }

    public static function withoutSecrets(string $message): string
    {
        return (string) preg_replace('/\b(sk_[a-z]+_|whsec_)[A-Za-z0-9+\/=_-]+/', '$1…', $message);
    }
}
