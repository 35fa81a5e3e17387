// The client.

import { randomUUID } from "node:crypto";
import { ApiConnection, GuichetError, PaymentFailed, readAnswer, type Answer } from "./errors.js";
import { delay } from "./retries.js";
import type * as types from "./types.js";

const VERSION = "1.0.0";

export interface Options {
  /** Ends in `/v1`. */
  baseUrl: string;
  /** Seconds for one attempt. A read of a pending payment asks the operator first, so give it 30 at least. */
  timeout?: number;
  maxRetries?: number;
  fetch?: typeof fetch;
}

/** Of a creation: your own key, where it is kept with the order before the request is sent. */
export interface Creation {
  idempotencyKey?: string;
}

interface Call {
  query?: object;
  body?: object;
  idempotencyKey?: string;
  repeatable?: boolean;
}

/** `key` chooses the environment, and `livemode` says which. */
export class Guichet {
  readonly livemode: boolean;
  readonly payments = new Payments(this);
  readonly refunds = new Refunds(this);
  readonly checkoutSessions = new CheckoutSessions(this);
  readonly paymentLinks = new PaymentLinks(this);
  readonly paymentModes = new PaymentModes(this);
  readonly balance = new Balance(this);
  readonly webhookEndpoint = new WebhookEndpoint(this);
  readonly deliveries = new Deliveries(this);
  readonly events = new Events(this);
  readonly disputes = new Disputes(this);
  readonly #headers: Record<string, string>;
  readonly #options: Required<Options>;

  constructor(key: string, options: Options) {
    if (!key.startsWith("sk_")) throw new TypeError("Une clé secrète commence par sk_test_ ou sk_live_.");
    this.livemode = !key.startsWith("sk_test_");
    this.#headers = { Authorization: `Bearer ${key}`, "User-Agent": `guichet-typescript/${VERSION}` };
    this.#options = { timeout: 35, maxRetries: 3, fetch: globalThis.fetch, ...options };
  }

  /** The whole answer: `data`, and `meta` where there is some. Repeated as `retries.ts` says. */
  async request(method: string, path: string, call: Call = {}): Promise<Answer> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#send(method, path, call);
      } catch (error) {
        const wait = delay(error, attempt, call.repeatable ?? true);
        if (wait === undefined || attempt >= this.#options.maxRetries) throw error;
        await new Promise((resolve) => setTimeout(resolve, wait * 1000));
      }
    }
  }

  async #send(method: string, path: string, call: Call): Promise<Answer> {
    const { baseUrl, timeout, fetch } = this.#options;
    const query = Object.entries(call.query ?? {}).filter(([, value]) => value != null);
    const search = query.length > 0 ? `?${new URLSearchParams(query.map(([name, value]) => [name, String(value)]))}` : "";
    const headers: Record<string, string> = { ...this.#headers };
    if (call.body) headers["Content-Type"] = "application/json";
    if (call.idempotencyKey) headers["Idempotency-Key"] = call.idempotencyKey;
    const request: RequestInit = { method, headers, redirect: "manual", signal: AbortSignal.timeout(timeout * 1000) };
    if (call.body) request.body = JSON.stringify(call.body);
    let response: Response;
    let text: string;
    try {
      response = await fetch(baseUrl.replace(/\/+$/, "") + path + search, request);
      text = await response.text();
    } catch (cause) {
      throw new ApiConnection(`Guichet ne répond pas : ${cause}`, { cause });
    }
    return readAnswer(response.status, response.headers, text);
  }

  /** A creation. Its key is made once and kept over the repetitions, so nothing is created twice. */
  async create(path: string, body: object, { idempotencyKey = randomUUID() }: Creation): Promise<any> {
    return (await this.request("POST", path, { body, idempotencyKey })).data;
  }

  async get(path: string, query: object = {}): Promise<any> {
    return (await this.request("GET", path, { query })).data;
  }

  /** Every row, page after page: none is skipped or repeated, whatever happens to the list meanwhile. */
  async *walk<Row>(path: string, query: object): AsyncGenerator<Row, void, undefined> {
    let after = {};
    for (;;) {
      const { data, meta } = await this.request("GET", path, { query: { per_page: 100, ...query, ...after } });
      yield* data;
      if (data.length === 0 || !(meta.has_more ?? data.length >= meta.per_page)) return;
      after = { after: data.at(-1).reference ?? data.at(-1).id };
    }
  }
}

abstract class Resource {
  constructor(protected readonly client: Guichet) {}
}

class Payments extends Resource {
  /**
   * A payment, `pending` as a rule: deliver when it is `succeeded`. Throws PaymentFailed where it is `failed`, also when
   * it is the existing payment of this `external_id`.
   */
  async create(body: types.PaymentBody, creation: Creation = {}): Promise<types.Payment> {
    const payment: types.Payment = await this.client.create("/payments", body, creation);
    if (payment.status === "failed" && payment.failure) {
      const { message, code } = payment.failure;
      throw new PaymentFailed(message, { code: "payment_failed", reason: code, reference: payment.reference });
    }
    return payment;
  }

  /** `reference`: the payment's, or your `external_id`. A pending payment is asked about first. */
  retrieve(reference: string): Promise<types.Payment> {
    return this.client.get(`/payments/${encodeURIComponent(reference)}`);
  }

  list(query: types.ListPaymentsQuery = {}): AsyncGenerator<types.Payment, void, undefined> {
    return this.client.walk("/payments", query);
  }

  /** The whole payment, and once only. `pending` is not done yet. */
  refund(reference: string, body: types.RefundBody = {}, creation: Creation = {}): Promise<types.Refund> {
    return this.client.create(`/payments/${encodeURIComponent(reference)}/refund`, body, creation);
  }
}

class Refunds extends Resource {
  /** `reference`: the refund's, not the payment's. */
  retrieve(reference: string): Promise<types.Refund> {
    return this.client.get(`/refunds/${encodeURIComponent(reference)}`);
  }

  list(query: types.ListRefundsQuery = {}): AsyncGenerator<types.Refund, void, undefined> {
    return this.client.walk("/refunds", query);
  }
}

/** A hosted page for one order, where the customer chooses the operator: send them to `url`. */
class CheckoutSessions extends Resource {
  create(body: types.CheckoutSessionBody, creation: Creation = {}): Promise<types.CheckoutSession> {
    return this.client.create("/checkout-sessions", body, creation);
  }

  /** `id`: the session's, or your `external_id`. A pending payment is asked about first. */
  retrieve(id: string): Promise<types.CheckoutSession> {
    return this.client.get(`/checkout-sessions/${encodeURIComponent(id)}`);
  }

  /** Nothing will be paid any more. Throws Conflict while a payment of it is pending. */
  async expire(id: string): Promise<types.CheckoutSession> {
    return (await this.client.request("POST", `/checkout-sessions/${encodeURIComponent(id)}/expire`)).data;
  }
}

/** With a live key only. */
class PaymentLinks extends Resource {
  create(body: types.LinkBody, creation: Creation = {}): Promise<types.PaymentLink> {
    return this.client.create("/payment-links", body, creation);
  }

  retrieve(id: number): Promise<types.PaymentLink> {
    return this.client.get(`/payment-links/${id}`);
  }

  list(query: types.ListLinksQuery = {}): AsyncGenerator<types.PaymentLink, void, undefined> {
    return this.client.walk("/payment-links", query);
  }

  async close(id: number): Promise<types.PaymentLink> {
    return (await this.client.request("POST", `/payment-links/${id}/close`)).data;
  }
}

class PaymentModes extends Resource {
  list(query: types.ListModesQuery = {}): Promise<types.PaymentMode[]> {
    return this.client.get("/payment-modes", query);
  }

  /** What a payment would cost. Nothing is created. */
  async fees(body: types.FeeBody): Promise<types.FeeQuote> {
    return (await this.client.request("POST", "/payment-modes/fees", { body })).data;
  }
}

class Balance extends Resource {
  retrieve(query: types.ReadBalanceQuery = {}): Promise<types.Balance> {
    return this.client.get("/balance", query);
  }
}

class WebhookEndpoint extends Resource {
  retrieve(): Promise<types.WebhookEndpoint> {
    return this.client.get("/webhooks/endpoint");
  }

  /** Not repeated with `rotate_secret`: a second rotation would end the secret that the first one made. */
  async update(body: types.EndpointBody): Promise<types.WrittenWebhookEndpoint> {
    return (await this.client.request("PUT", "/webhooks/endpoint", { body, repeatable: !body.rotate_secret })).data;
  }

  async test(): Promise<types.WebhookTest> {
    return (await this.client.request("POST", "/webhooks/test", { repeatable: false })).data;
  }
}

class Deliveries extends Resource {
  list(query: types.ListDeliveriesQuery = {}): AsyncGenerator<types.WebhookDelivery, void, undefined> {
    return this.client.walk("/webhooks/deliveries", query);
  }

  async resend(id: string): Promise<types.WebhookDelivery> {
    const path = `/webhooks/deliveries/${encodeURIComponent(id)}/resend`;
    return (await this.client.request("POST", path, { repeatable: false })).data;
  }
}

class Events extends Resource {
  /** The oldest first. Keep the `id` of the last one, and continue with `after` the next time. */
  list(query: types.ListEventsQuery = {}): AsyncGenerator<types.Event, void, undefined> {
    return this.client.walk("/events", query);
  }
}

class Disputes extends Resource {
  list(query: types.ListDisputesQuery = {}): AsyncGenerator<types.Dispute, void, undefined> {
    return this.client.walk("/disputes", query);
  }
}
