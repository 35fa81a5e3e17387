// What the library throws.
//
// GuichetError
// ├── ApiConnection            no answer, or one that nobody can read
// ├── Unauthorized             401
// ├── PaymentFailed            402: `reason` says why, `reference` names the payment
// ├── Forbidden                403
// ├── NotFound                 404
// ├── Conflict                 409: `reason` says why
// ├── InvalidRequest           422: `details` names the fields
// ├── RateLimited              429: `retryAfter`, in seconds
// ├── ServerError              5xx
// └── SignatureVerification    a webhook that is not ours, or too old

export interface Facts {
  status?: number | undefined;
  code?: string | undefined;
  reason?: string | undefined;
  reference?: string | undefined;
  details?: Record<string, string[]> | undefined;
  requestId?: string | undefined;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/** Decide by the class, `code` and `reason`. The message is a sentence for people, and may change. */
export class GuichetError extends Error {
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly reason: string | undefined;
  readonly reference: string | undefined;
  readonly details: Record<string, string[]>;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(message: string, facts: Facts = {}) {
    super(facts.requestId ? `${message} (X-Request-Id: ${facts.requestId})` : message, { cause: facts.cause });
    this.name = new.target.name;
    this.status = facts.status;
    this.code = facts.code;
    this.reason = facts.reason;
    this.reference = facts.reference;
    this.details = facts.details ?? {};
    this.requestId = facts.requestId;
    this.retryAfter = facts.retryAfter;
  }
}

export class ApiConnection extends GuichetError {}
export class Unauthorized extends GuichetError {}
export class PaymentFailed extends GuichetError {}
export class Forbidden extends GuichetError {}
export class NotFound extends GuichetError {}
export class Conflict extends GuichetError {}
export class InvalidRequest extends GuichetError {}
export class RateLimited extends GuichetError {}
export class ServerError extends GuichetError {}
export class SignatureVerification extends GuichetError {}

const CLASSES: Record<number, typeof GuichetError> = {
  401: Unauthorized,
  402: PaymentFailed,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  422: InvalidRequest,
  429: RateLimited,
};

export interface Answer {
  data: any;
  meta?: any;
}

/** The decoded body of a success; throws the error of anything else. */
export function readAnswer(status: number, headers: Headers, body: string): Answer {
  const requestId = headers.get("x-request-id") ?? undefined;
  let answer: any;
  try {
    answer = JSON.parse(body);
  } catch {
    answer = undefined;
  }
  if (status >= 200 && status < 300) {
    if (answer?.data !== undefined) return answer;
    throw new ApiConnection("La réponse est illisible.", { status, requestId });
  }
  const error = answer?.error ?? {};
  const seconds = headers.get("retry-after") ?? "";
  throw new (CLASSES[status] ?? (status >= 500 ? ServerError : GuichetError))(
    error.message ?? `Réponse inattendue : HTTP ${status}.`,
    {
      status,
      code: error.code,
      reason: error.reason,
      reference: error.reference,
      details: error.details,
      requestId,
      retryAfter: /^\d+$/.test(seconds) ? Number(seconds) : undefined,
    },
  );
}
