// Makes waiting smoother and printing one tap; every page is complete without it.
(function () {
  "use strict";
  function ready() {
    document.querySelectorAll("[data-print]").forEach(function (button) {
      button.hidden = false;
      button.onclick = function () { window.print(); };
    });
    var wait = document.querySelector("[data-wait]");
    if (wait) { watch(wait, 0); }
  }
  function watch(wait, asked) {
    // Every 3 s for two minutes, then every 10 s.
    setTimeout(function () {
      fetch(wait.dataset.wait, { cache: "no-store", credentials: "omit" })
        .then(function (answer) { return answer.ok ? answer.json() : null; })
        .then(function (state) {
          if (state && state.stage !== wait.dataset.stage) { return show(); }
          watch(wait, asked + 1);
        })
        .catch(function () { watch(wait, asked + 1); });
    }, asked < 40 ? 3000 : 10000);
  }
  function show() {
    return fetch(location.href, { cache: "no-store", credentials: "omit" })
      .then(function (answer) { return answer.text(); })
      .then(function (text) {
        var page = new DOMParser().parseFromString(text, "text/html");
        document.title = page.title;
        document.querySelector("main").replaceWith(page.querySelector("main"));
        var title = document.querySelector("h1");
        title.tabIndex = -1;
        title.focus();
        ready();
      });
  }
  ready();
})();
