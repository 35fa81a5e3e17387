// Créer un paiement, le lire, le rembourser, ouvrir une page de paiement, avec le client typescript-axios d'openapi-generator.
// En ligne de commande : GUICHET=http://127.0.0.1:8000/v1 CLE=sk_test_… node js/sample.js commande-1042

import { isAxiosError } from "axios";
import { Configuration, PaiementsApi, RemboursementsApi, SessionsDePaiementApi, type Payment } from "./generated";

const configuration = new Configuration({ basePath: process.env.GUICHET, accessToken: process.env.CLE });
const payments = new PaiementsApi(configuration);
const refunds = new RemboursementsApi(configuration);
const sessions = new SessionsDePaiementApi(configuration);

async function main(externalId: string): Promise<void> {
  const created = await payments.createPayment({
    amount: 5000,
    operator: "mtn",
    phone_number: "2290197000000",
    external_id: externalId,
  });

  const payment: Payment = (await payments.readPayment(created.data.data.reference)).data.data;
  if (payment.status !== "succeeded") throw new Error(`encore ${payment.status} : attendez le webhook`);

  const refund = await refunds.createRefund(payment.reference, `refund-${payment.reference}`, {
    reason: "Article indisponible",
  });

  // Tout parcourir : `after` nomme le dernier élément reçu.
  let after: string | undefined;
  for (let full = true; full; ) {
    const none = undefined;
    const listed = await payments.listPayments(none, none, none, none, none, none, 2, none, "asc", after);
    const page: Payment[] = listed.data.data;
    after = page.at(-1)?.reference;
    full = page.length === 2;
  }

  // La page où le client choisit son opérateur : envoyez-le à cette adresse.
  const order = { amount: 5000, description: "Commande 1042", external_id: `page-${externalId}` };
  const session = (await sessions.createSession(order)).data.data;
  console.log(session.status, session.url);
  console.log(payment.status, payment.total_amount, refund.data.data.status);
}

// Ce que le compilateur refuse.
export function refused(): void {
  // @ts-expect-error le corps est un objet
  void payments.createPayment("anything");
  // @ts-expect-error `amount` est obligatoire
  void payments.createPayment({ operator: "mtn" });
}

main(process.argv[2] ?? "").catch((error: unknown) => {
  console.error(isAxiosError(error) ? error.response?.data : error);
  process.exit(1);
});
