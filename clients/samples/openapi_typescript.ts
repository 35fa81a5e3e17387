// Créer un paiement, le lire, le rembourser, ouvrir une page de paiement. Types : npx openapi-typescript document.json -o generated/schema.ts
// En ligne de commande : GUICHET=http://127.0.0.1:8000/v1 CLE=sk_test_… node js/sample.js commande-1042

import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema";

type Payment = components["schemas"]["Payment"];

const guichet = createClient<paths>({
  baseUrl: process.env.GUICHET,
  headers: { Authorization: `Bearer ${process.env.CLE}` },
});

async function main(externalId: string): Promise<void> {
  const created = await guichet.POST("/payments", {
    body: { amount: 5000, operator: "mtn", phone_number: "2290197000000", external_id: externalId },
  });
  if (created.error) throw new Error(created.error.error.message);

  const read = await guichet.GET("/payments/{reference}", { params: { path: { reference: created.data.data.reference } } });
  if (read.error) throw new Error(read.error.error.message);
  const payment: Payment = read.data.data;
  if (payment.status !== "succeeded") throw new Error(`encore ${payment.status} : attendez le webhook`);

  const refunded = await guichet.POST("/payments/{reference}/refund", {
    params: { path: { reference: payment.reference } },
    body: { reason: "Article indisponible" },
  });
  if (refunded.error) throw new Error(refunded.error.error.message);

  // Tout parcourir : `after` nomme le dernier élément reçu.
  let after: string | undefined;
  for (let full = true; full; ) {
    const page = await guichet.GET("/payments", { params: { query: { per_page: 2, order: "asc", after } } });
    if (page.error) throw new Error(page.error.error.message);
    after = page.data.data.at(-1)?.reference;
    full = page.data.data.length === 2;
  }

  // La page où le client choisit son opérateur : envoyez-le à cette adresse.
  const session = await guichet.POST("/checkout-sessions", {
    body: { amount: 5000, description: "Commande 1042", external_id: `page-${externalId}` },
  });
  if (session.error) throw new Error(session.error.error.message);
  console.log(session.data.data.status, session.data.data.url);
  console.log(payment.status, payment.total_amount, refunded.data.data.status);
}

// Ce que le compilateur refuse.
export function refused(): void {
  // @ts-expect-error le corps est un objet
  void guichet.POST("/payments", { body: "anything" });
  // @ts-expect-error un montant est un nombre
  void guichet.POST("/payments", { body: { amount: "5000", operator: "mtn" } });
  // @ts-expect-error `amount` est obligatoire
  void guichet.POST("/payments", { body: { operator: "mtn" } });
  // @ts-expect-error devise inconnue
  void guichet.POST("/payments", { body: { amount: 5000, operator: "mtn", currency: "GBP" } });
}

main(process.argv[2] ?? "").catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
