// The service worker of the console: a page that is opened without a connection says so. It keeps nothing.
"use strict";

const TEXTS = {
  fr: ["Hors connexion", "Vérifiez le réseau de ce téléphone. Rien n’est perdu : ce qui a été encaissé est chez Guichet.", "Réessayer"],
  en: ["Offline", "Check the network of this telephone. Nothing is lost: what was collected is with Guichet.", "Try again"],
};

const offline = () => {
  const language = navigator.language.startsWith("en") ? "en" : "fr";
  const [title, text, again] = TEXTS[language];
  const page = `<!doctype html><html lang="${language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${title} · Guichet</title><main><h1>${title}</h1><p>${text}</p><p><a href="">${again}</a></p></main></html>`;
  return new Response(page, {
    status: 503,
    headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'" },
  });
};

addEventListener("install", () => skipWaiting());
addEventListener("fetch", (event) => {
  const { mode, method } = event.request;
  if (mode === "navigate" && method === "GET") event.respondWith(fetch(event.request).catch(offline));
});
