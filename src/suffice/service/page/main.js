// Switches between the views. A view starts when it is first shown.

import { askView } from "./ask.js";
import { checkView } from "./check.js";
import { get } from "./api.js";
import { byId } from "./dom.js";
import { labelView } from "./label.js";
import { reportView } from "./report.js";

const VIEWS = { check: checkView, ask: askView, label: labelView, report: reportView };
const started = new Set();

function show(focus) {
  const named = location.hash.slice(1);
  if (focus && !(named in VIEWS)) return; // an anchor inside a view
  const wanted = named in VIEWS ? named : "check";
  for (const name of Object.keys(VIEWS)) byId(`view-${name}`).hidden = name !== wanted;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === wanted) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${wanted[0].toUpperCase()}${wanted.slice(1)} · suffice`;
  if (focus) {
    byId(`${wanted}-title`).focus({ preventScroll: true });
    scrollTo({ top: 0, behavior: "instant" });
  }
  if (!started.has(wanted)) {
    started.add(wanted);
    VIEWS[wanted](state);
  }
}

/** The service's gates, and its library if it has one. Fetched once, when first needed. */
const state = {
  gates: once(() => get("v1/gates")),
  library: once(() => get("v1/library").catch((error) => (error.status === 409 ? null : Promise.reject(error)))),
};

function once(fetchIt) {
  let result = null;
  return () => (result ??= fetchIt().catch((error) => ((result = null), Promise.reject(error))));
}

addEventListener("hashchange", () => show(true));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
show(false);
get("healthz").then((health) => (byId("about").textContent = `suffice ${health.version}`), () => {});
