// Webhooks: verify, then read (https://www.standardwebhooks.com).

import { createHmac, timingSafeEqual } from "node:crypto";
import { SignatureVerification } from "./errors.js";
import type { Event } from "./types.js";

/** Seconds between our clock and the receiver's, in both directions. */
const TOLERANCE = 300;

type HeadersLike = Headers | Record<string, string | string[] | undefined>;

/**
 * The event, if one of the secrets signed it at most five minutes ago; else throws SignatureVerification.
 *
 * `rawBody`: what was received, before any decoding. `secrets`: one, or several while one replaces another.
 */
export function unwrap(rawBody: Uint8Array | string, headers: HeadersLike, secrets: string | readonly string[]): Event {
  if (typeof rawBody !== "string" && !(rawBody instanceof Uint8Array)) {
    throw new TypeError("rawBody : les octets reçus, par exemple `await request.text()` ou celui de `express.raw()`.");
  }
  const keys = (typeof secrets === "string" ? [secrets] : secrets).map(key);
  if (keys.length === 0) throw new TypeError("Aucun secret de webhook n'est donné.");
  const lower = lowered(headers);
  const timestamp = lower.get("webhook-timestamp") ?? "";
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE) {
    throw new SignatureVerification("L'horodatage du webhook manque, ou est à plus de cinq minutes.");
  }
  const signed = `${lower.get("webhook-id") ?? ""}.${timestamp}.`;
  const expected = keys.map((secret) => createHmac("sha256", secret).update(signed).update(rawBody).digest());
  const found = signatures(lower.get("webhook-signature") ?? "");
  if (!found.some((theirs) => expected.some((mine) => same(mine, theirs)))) {
    throw new SignatureVerification("Aucune signature du webhook n'est celle d'un de vos secrets.");
  }
  return JSON.parse(typeof rawBody === "string" ? rawBody : new TextDecoder().decode(rawBody));
}

/** An empty secret would accept what anybody signs. */
function key(secret: string): Buffer {
  const text = secret.trim().replace(/^whsec_/, "");
  if (!/^[A-Za-z0-9+/]+=*$/.test(text) || text.length % 4 !== 0) {
    throw new TypeError("Le secret de webhook est vide ou n'en est pas un : il commence par whsec_.");
  }
  return Buffer.from(text, "base64");
}

/** Those of version 1. */
function signatures(header: string): Buffer[] {
  const found = header.split(" ").filter((part) => part.startsWith("v1,"));
  return found.map((part) => Buffer.from(part.slice(3), "base64"));
}

function same(mine: Buffer, theirs: Buffer): boolean {
  return mine.length === theirs.length && timingSafeEqual(mine, theirs);
}

function lowered(headers: HeadersLike): Map<string, string> {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return new Map(entries.map(([name, value]) => [name.toLowerCase(), String(value ?? "")]));
}
