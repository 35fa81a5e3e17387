// The cash desk works without this script. It draws the keys, changes the screen in place, rings when the customer has
// paid, and says since when the connection is lost.
"use strict";

const one = (selector) => document.querySelector(selector);
const say = (text) => { one("#said").textContent = text; };
let timer, since;

// Counts the seconds without a connection.
const count = () => {
  const lost = one("#lost");
  lost.hidden = !since;
  lost.querySelector("b span").textContent = since ? Math.round((Date.now() - since) / 1000) : "";
};
setInterval(count, 1000);
const lose = () => {
  if (since) return;
  since = Date.now();
  count();
  say(one("#lost").textContent);
};

const ring = () => {
  navigator.vibrate?.([200, 100, 300]);
  const audio = new AudioContext();
  [880, 1320].forEach((pitch, step) => {
    const tone = audio.createOscillator();
    tone.frequency.value = pitch;
    tone.connect(audio.destination);
    tone.start(audio.currentTime + step / 5);
    tone.stop(audio.currentTime + step / 5 + 0.18);
  });
};

// Shows what was fetched; a page that is none of the cash desk's, such as that of a sign-in, is opened.
const show = async (response) => {
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const before = one("main"), main = page.querySelector("main.desk");
  if (!main) return location.assign(response.url);
  since = 0;
  count();
  before.dataset.refresh = main.dataset.refresh || "";
  if (main.innerHTML === before.innerHTML) return;
  document.title = page.title;
  document.body.className = page.body.className;
  before.replaceWith(main);
  say(main.querySelector("h1").textContent);
  if ("rings" in main.dataset && !("rings" in before.dataset)) ring();
  start();
};

// Asks for a page, or sends a form; `then` is done with the answer.
const ask = async (address, options, then) => {
  clearTimeout(timer);
  try {
    const response = await fetch(address, { ...options, signal: AbortSignal.timeout(15000) });
    if (response.status > 500) throw response;
    await show(response);
    then?.(response);
  } catch {
    lose();
  }
  later();
};
const again = () => ask(location.href);

// Slowly while nobody looks; who looks again sees at once what is true.
const later = () => {
  clearTimeout(timer);
  const refresh = one("main").dataset.refresh;
  if (refresh) timer = setTimeout(again, 1000 * refresh * (document.hidden ? 10 : 1));
};
const catchUp = () => document.hidden || !one("main").dataset.refresh || again();
document.addEventListener("visibilitychange", catchUp);
addEventListener("online", catchUp);
addEventListener("offline", lose);
addEventListener("popstate", () => location.reload());

// The page stays when an amount is sent: a browser lets only a page that was touched ring and vibrate.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-sale]")) return;
  event.preventDefault();
  const fields = new FormData(form), button = event.submitter;
  if (button?.name) fields.append(button.name, button.value);
  ask(form.action, { method: "POST", body: new URLSearchParams(fields) }, (response) =>
    history.pushState(null, "", response.url));
});

const grouped = (text) =>
  text.replace(/\D/g, "").replace(/^0+/, "").slice(0, 8).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const start = () => {
  const keys = one(".keys"), field = one("#amount");
  if (keys) {
    keys.hidden = false;
    field.inputMode = "none";
    keys.onclick = ({ target }) => {
      const key = target.closest("button")?.value;
      if (key) field.value = grouped(key === "del" ? field.value.slice(0, -1) : field.value + key);
    };
  }
};
start();
later();
