// Reçoit les webhooks de Guichet. Aucune dépendance ; verify_signature.mjs est à côté de ce fichier.
//
// WEBHOOK_SECRET=whsec_… INBOX=/var/lib/boutique PORT=8080 node handler.mjs

import { randomUUID } from "node:crypto";
import { appendFileSync, closeSync, existsSync, fsyncSync, linkSync, openSync } from "node:fs";
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { verifySignature } from "./verify_signature.mjs";

const INBOX = process.env.INBOX;
// Un paiement ne recule jamais : un événement de rang inférieur ou égal est en retard, ou répété.
const RANKS = new Map([["payment.succeeded", 1], ["payment.failed", 1], ["payment.refunded", 2]]);

/** Le statut de la réponse. L'événement est sur le disque quand c'est 200. */
function receive(body, header) {
  if (!verifySignature(process.env.WEBHOOK_SECRET ?? "", header, body)) return 400;
  const { id } = JSON.parse(body);
  if (!/^[0-9a-f-]{36}$/.test(id)) return 400;
  const part = join(INBOX, `${randomUUID()}.part`);
  const file = openSync(part, "wx");
  writeFileSync(file, body);
  fsyncSync(file);
  closeSync(file);
  try {
    // Le lien échoue si cet id est déjà là : avec une base de données, une contrainte d'unicité sur l'id.
    linkSync(part, join(INBOX, `${id}.event`));
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  } finally {
    rmSync(part);
  }
  return 200;
}

/** Traite ce qui est reçu et ne l'est pas encore. À lancer aussi au démarrage : un arrêt n'oublie rien. */
function work() {
  for (const name of readdirSync(INBOX).filter((file) => file.endsWith(".event")).sort()) {
    const done = join(INBOX, name.replace(/event$/, "done"));
    if (existsSync(done)) continue;
    apply(JSON.parse(readFileSync(join(INBOX, name))));
    writeFileSync(done, "");
  }
}

/** Avec une base de données : la commande verrouillée, son état et l'id de l'événement dans une transaction. */
function apply(event) {
  const rank = RANKS.get(event.event);
  if (rank === undefined) return; // Un événement que vous ne connaissez pas encore, ou dont vous n'avez pas l'usage.
  const order = join(INBOX, `${event.data.reference}.order`);
  const state = existsSync(order) ? readFileSync(order, "utf8") : "";
  if ((RANKS.get(state) ?? 0) >= rank) return;
  writeFileSync(`${order}.part`, event.event);
  renameSync(`${order}.part`, order);
  // Ici : livrer, annuler, ou reprendre la marchandise.
  appendFileSync(join(INBOX, "actions.log"), `${event.data.reference} ${event.event}\n`);
}

work();
createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  let status = 500; // Guichet renverra l'événement.
  try {
    status = receive(Buffer.concat(chunks), request.headers["x-service-signature"]); // Brut, avant tout décodage.
  } catch (error) {
    console.error(error);
  }
  response.writeHead(status, { "Content-Length": 0 }).end(() => setImmediate(work)); // Le travail vient après la réponse.
}).listen(Number(process.env.PORT), "127.0.0.1");
