// The client library of Guichet. README.md begins with ten lines to the first payment.

export * from "./errors.js";
export { Guichet, type Options } from "./guichet.js";
export type * from "./types.js";
export * as webhooks from "./webhooks.js";
