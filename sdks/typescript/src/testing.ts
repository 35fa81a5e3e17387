// For the tests of a shop: Guichet as it answered when it was recorded, without a network.

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Guichet, type Options } from "./guichet.js";

interface Recorded {
  status: number;
  body: any;
}

const RECORDINGS: {
  answers: Record<string, Recorded>;
  errors: Record<string, Recorded>;
  events: Record<string, any>;
} = JSON.parse(readFileSync(join(__dirname, "../recordings.json"), "utf8"));

export const SECRET = `whsec_${"A".repeat(40)}`;

/** Gives each call its recorded answer; `requests` has what was sent. */
export class FakeGuichet {
  readonly requests: Array<{ method: string; path: string; body: unknown }> = [];
  readonly #next: Recorded[] = [];

  client(key = "sk_test_fake", options: Partial<Options> = {}): Guichet {
    return new Guichet(key, { baseUrl: "https://fake.test/v1", ...options, fetch: this.#answer });
  }

  /** The next request is answered with this error, for example `payment_failed`. */
  failNext(code: string): void {
    const recorded = RECORDINGS.errors[code];
    if (!recorded) throw new TypeError(`Aucune erreur enregistrée : ${code}`);
    this.#next.push(recorded);
  }

  /** The recorded event, signed now; `data` replaces fields of its object. */
  webhook(event: string, data: object = {}, secret = SECRET): { body: string; headers: Record<string, string> } {
    const recorded = RECORDINGS.events[event];
    const body = JSON.stringify({ ...recorded, data: { ...recorded.data, ...data } });
    const timestamp = String(Math.floor(Date.now() / 1000));
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    const signature = createHmac("sha256", key).update(`${recorded.id}.${timestamp}.${body}`).digest("base64");
    return {
      body,
      headers: {
        "webhook-id": recorded.id,
        "webhook-timestamp": timestamp,
        "webhook-signature": `v1,${signature}`,
      },
    };
  }

  #answer: typeof fetch = async (input, init) => {
    const method = init?.method ?? "GET";
    const path = new URL(String(input)).pathname.replace(/^\/v1/, "");
    this.requests.push({ method, path, body: init?.body ? JSON.parse(String(init.body)) : null });
    const { status, body } = this.#next.shift() ?? recordedAnswer(method, path);
    return new Response(JSON.stringify(body), { status, headers: { "X-Request-Id": "fake" } });
  };
}

/** The answer of the route whose segments are these, a braced one being any. */
function recordedAnswer(method: string, path: string): Recorded {
  const route = Object.keys(RECORDINGS.answers).find((each) => {
    const pattern = each.replace(/\{\w+\}/g, "[^/]+");
    return new RegExp(`^${pattern}$`).test(`${method} ${path}`);
  });
  return (route && RECORDINGS.answers[route]) || RECORDINGS.errors["not_found"]!;
}
