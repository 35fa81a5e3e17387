// Créer un paiement, le lire, le rembourser, ouvrir une page de paiement, avec le client typescript-fetch d'openapi-generator.
// En ligne de commande : GUICHET=http://127.0.0.1:8000/v1 CLE=sk_test_… node js/sample.js commande-1042

import { Configuration, PaiementsApi, RemboursementsApi, ResponseError, SessionsDePaiementApi, type Payment } from "./generated";

const configuration = new Configuration({ basePath: process.env.GUICHET, accessToken: process.env.CLE });
const payments = new PaiementsApi(configuration);
const refunds = new RemboursementsApi(configuration);
const sessions = new SessionsDePaiementApi(configuration);

async function main(externalId: string): Promise<void> {
  const created = await payments.createPayment({
    paymentBody: { amount: 5000, operator: "mtn", phoneNumber: "2290197000000", externalId },
  });

  const payment: Payment = (await payments.readPayment({ reference: created.data.reference })).data;
  if (payment.status !== "succeeded") throw new Error(`encore ${payment.status} : attendez le webhook`);

  const refund = await refunds.createRefund({
    reference: payment.reference,
    refundBody: { reason: "Article indisponible" },
  });

  // Tout parcourir : `after` nomme le dernier élément reçu.
  let after: string | undefined;
  for (let full = true; full; ) {
    const page: Payment[] = (await payments.listPayments({ perPage: 2, order: "asc", after })).data;
    after = page.at(-1)?.reference;
    full = page.length === 2;
  }

  // La page où le client choisit son opérateur : envoyez-le à cette adresse.
  const session = await sessions.createSession({
    checkoutSessionBody: { amount: 5000, description: "Commande 1042", externalId: `page-${externalId}` },
  });
  console.log(session.data.status, session.data.url);
  console.log(payment.status, payment.totalAmount, refund.data.status);
}

// Ce que le compilateur refuse.
export function refused(): void {
  // @ts-expect-error le corps est un objet
  void payments.createPayment({ paymentBody: "anything" });
  // @ts-expect-error `amount` est obligatoire
  void payments.createPayment({ paymentBody: { operator: "mtn" } });
}

main(process.argv[2] ?? "").catch(async (error: unknown) => {
  console.error(error instanceof ResponseError ? await error.response.text() : error);
  process.exit(1);
});
