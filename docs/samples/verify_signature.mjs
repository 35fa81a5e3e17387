// Vérifie la signature d'un webhook. Aucune dépendance (Node 18 ou plus récent).
//
// En ligne de commande : WEBHOOK_SECRET=whsec_… node verify_signature.mjs "<X-Service-Signature>" < corps.json
// Code de sortie : 0 si la signature est valide, 1 sinon. Sans secret : une erreur.

import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

const MAX_AGE = 300; // secondes

/** `body` est le Buffer reçu, octet pour octet : avec Express, express.raw({ type: "application/json" }). */
export function verifySignature(secret, header, body, now = Date.now() / 1000) {
  if (typeof secret !== "string" || secret.trim() === "") {
    // Une clé vide, tout le monde peut la deviner.
    throw new Error("Le secret du webhook est vide : la signature ne prouverait rien.");
  }
  if (typeof header !== "string") return false; // L'en-tête manque : la requête ne vient pas de Guichet.
  const pairs = header.split(",").map((part) => {
    const [name, ...rest] = part.trim().split("=");
    return [name, rest.join("=")];
  });
  const times = pairs.filter(([name]) => name === "t").map(([, value]) => value);
  const signatures = pairs.filter(([name]) => name === "v1").map(([, value]) => value);
  if (times.length !== 1 || !/^[0-9]{1,15}$/.test(times[0])) return false;
  if (Math.abs(now - Number(times[0])) > MAX_AGE) return false; // Ni trop vieux, ni dans l'avenir.
  const expected = Buffer.from(createHmac("sha256", secret).update(`${times[0]}.`).update(body).digest("hex"));
  return signatures.some((signature) => {
    const given = Buffer.from(signature);
    // timingSafeEqual prend le même temps quel que soit l'endroit où les deux textes diffèrent.
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const valid = verifySignature(process.env.WEBHOOK_SECRET ?? "", process.argv[2] ?? "", readFileSync(0));
  process.exit(valid ? 0 : 1);
}
