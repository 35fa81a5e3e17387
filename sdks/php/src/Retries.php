<?php

declare(strict_types=1);

namespace Guichet;

/** When a request is sent again, and after how long. */
final class Retries
{
    /** Seconds before the first repetition; each next one waits twice as long, up to the second number. */
    private const FIRST = 0.5;
    private const LONGEST = 8.0;
    /** A longer `Retry-After` is for the caller to decide about. */
    private const PATIENCE = 60;

    /**
     * Seconds to wait after attempt number `$attempt` (0 is the first), or null: do not repeat.
     *
     * `$repeatable`: doing it twice does no harm, as with a read, or a creation with its Idempotency-Key. A `ServerError`
     * with a reference is about a payment that failed for good.
     */
    public static function delay(GuichetError $error, int $attempt, bool $repeatable): ?float
    {
        if ($error instanceof RateLimited) {
            $wait = $error->retryAfter ?? 0;
            return $wait > self::PATIENCE ? null : $wait + self::backoff($attempt);
        }
        $lost = $error instanceof ApiConnection || ($error instanceof ServerError && $error->reference === null);
        return $repeatable && $lost ? self::backoff($attempt) : null;
    }

    /** With jitter, or everybody whom an outage cut off would come back at one instant. */
    private static function backoff(int $attempt): float
    {
        return min(self::FIRST * 2 ** $attempt, self::LONGEST) * random_int(500, 1000) / 1000;
    }
}
