// Every page works without this script; it keeps a page fresh that shows something on its way.
"use strict";

// <main data-refresh="5">: what is in it is fetched again after so many seconds, while the page is looked at. A page that
// no longer has the attribute ends it.
const main = document.querySelector("main[data-refresh]");
if (main) {
  const again = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
        if (answer.ok && page) {
          if (page.innerHTML !== main.innerHTML) main.innerHTML = page.innerHTML;
          if (!page.dataset.refresh) return;
        }
      } catch {
        // The network is away: the next try may find it.
      }
    }
    setTimeout(again, 1000 * Number(main.dataset.refresh));
  };
  setTimeout(again, 1000 * Number(main.dataset.refresh));
}

// Passkeys: <form data-passkey="address of the question">. `data-make`: the browser makes a key; without it, it answers
// with one it has. The answer goes into the form, which is then sent like any other.
const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const toText = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
const keysOf = (list) => (list || []).map((key) => ({ ...key, id: toBytes(key.id) }));

const answered = (key) => {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (key.response[name]) response[name] = toText(key.response[name]);
  }
  return JSON.stringify({ id: key.id, rawId: toText(key.rawId), type: key.type, response });
};

const askBrowser = async (form) => {
  const make = "make" in form.dataset;
  const body = new URLSearchParams({ csrf: form.elements.csrf.value, act: make ? "make" : "use" });
  const question = await fetch(form.dataset.passkey, { method: "POST", body });
  if (question.redirected) return location.assign(question.url);
  if (!question.ok) return location.reload();
  const asked = await question.json();
  asked.challenge = toBytes(asked.challenge);
  asked.allowCredentials = keysOf(asked.allowCredentials);
  asked.excludeCredentials = keysOf(asked.excludeCredentials);
  if (make) asked.user.id = toBytes(asked.user.id);
  const key = await navigator.credentials[make ? "create" : "get"]({ publicKey: asked });
  form.elements.answer.value = answered(key);
  form.submit();
};

if (window.PublicKeyCredential) {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      // Whoever closes the browser's question stays on this page.
      askBrowser(form).catch(() => {});
    });
  }
}

// A console that is installed says when it is offline.
const manifest = document.querySelector("link[rel=manifest]");
if (manifest) navigator.serviceWorker?.register(new URL("offline.js", manifest.href)).catch(() => {});

// The telephone's own menu of ways to share a text.
for (const button of document.querySelectorAll("[data-share]")) {
  button.hidden = !navigator.share;
  button.addEventListener("click", () => navigator.share({ text: button.dataset.share }).catch(() => {}));
}

// What needs a script is hidden without one: printing, and copying what `data-copy` names, a field or a text.
for (const button of document.querySelectorAll("[data-print], [data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    if ("print" in button.dataset) return window.print();
    const source = document.getElementById(button.dataset.copy);
    if (source.select) source.select();
    else getSelection().selectAllChildren(source);
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = button.dataset.done;
    } catch {
      // Not allowed here: it is selected, and can be copied by hand.
    }
  });
}

// Lists where several rows are chosen: all of the page at once.
for (const box of document.querySelectorAll("[data-all]")) {
  box.parentElement.hidden = false;
  box.addEventListener("change", () => {
    for (const each of box.form.querySelectorAll("td [type=checkbox]")) each.checked = box.checked;
  });
}

// Passwords: shown while the box is ticked; the meter counts characters, those that repeat one another for less.
for (const box of document.querySelectorAll("[data-reveal]")) {
  box.parentElement.hidden = false;
  box.addEventListener("change", () => {
    document.getElementById(box.dataset.reveal).type = box.checked ? "text" : "password";
  });
}
for (const meter of document.querySelectorAll("[data-strength]")) {
  const field = document.getElementById(meter.dataset.strength);
  meter.hidden = false;
  field.addEventListener("input", () => {
    const text = field.value;
    meter.value = Math.min([...text].length, 2 * new Set(text.toLowerCase()).size);
  });
}
