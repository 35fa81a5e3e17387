// When a request is sent again, and after how long.

import { ApiConnection, RateLimited, ServerError } from "./errors.js";

/** Seconds before the first repetition; each next one waits twice as long, up to the second number. */
const FIRST = 0.5;
const LONGEST = 8;
/** A longer `Retry-After` is for the caller to decide about. */
const PATIENCE = 60;

/**
 * Seconds to wait after attempt number `attempt` (0 is the first), or undefined: do not repeat.
 *
 * `repeatable`: doing it twice does no harm, as with a read, or a creation with its Idempotency-Key. A `ServerError`
 * with a reference is about a payment that failed for good.
 */
export function delay(error: unknown, attempt: number, repeatable: boolean): number | undefined {
  if (error instanceof RateLimited) {
    const wait = error.retryAfter ?? 0;
    return wait > PATIENCE ? undefined : wait + backoff(attempt);
  }
  const lost = error instanceof ApiConnection || (error instanceof ServerError && error.reference === undefined);
  return repeatable && lost ? backoff(attempt) : undefined;
}

/** With jitter, or everybody whom an outage cut off would come back at one instant. */
function backoff(attempt: number): number {
  return Math.min(FIRST * 2 ** attempt, LONGEST) * (0.5 + Math.random() / 2);
}
