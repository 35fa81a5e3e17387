// Makes the calls of cases.json through the installed TypeScript library: one line of JSON in, one out.

import { createInterface } from "node:readline";
import { Guichet, GuichetError, webhooks } from "guichet-sdk";

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

async function answer(call) {
  if (call.call === "webhooks.unwrap") {
    return webhooks.unwrap(Buffer.from(call.body, "base64"), call.headers, call.secrets);
  }
  const [resource, method] = call.call.split(".").map(camel);
  const { key, ...options } = Object.fromEntries(Object.entries(call.client).map(([name, value]) => [camel(name), value]));
  const given = [call.at, call.with, call.key === null ? null : { idempotencyKey: call.key }];
  if (given[2] !== null && given[1] === null) given[1] = {};
  const found = new Guichet(key, options)[resource][method](...given.filter((each) => each !== null));
  if (found[Symbol.asyncIterator] === undefined) return found;
  const rows = [];
  for await (const row of found) rows.push(row);
  return rows;
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = { value: await answer(JSON.parse(line)) };
  } catch (error) {
    if (error instanceof GuichetError) {
      const { name, status, code, reason, reference, requestId, retryAfter, details } = error;
      const facts = { status, code, reason, reference, request_id: requestId, retry_after: retryAfter };
      said = { error: { type: name, fields: Object.keys(details), ...facts } };
    } else if (error instanceof TypeError) {
      said = { error: { type: "InvalidArgument", message: error.message } };
    } else {
      throw error;
    }
  }
  console.log(JSON.stringify(said));
}
