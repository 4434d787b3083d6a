// Which view is shown, and what the service is. A view is begun when it is first looked at.

import { askView } from "./ask.js";
import { checkView } from "./check.js";
import { get } from "./doors.js";
import { byId } from "./make.js";
import { reportView } from "./report.js";

const VIEWS = { check: checkView, ask: askView, report: reportView };
const begun = new Set();

function show(focus) {
  const named = location.hash.slice(1);
  if (focus && !(named in VIEWS)) return; // a place inside a view
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
  if (!begun.has(wanted)) {
    begun.add(wanted);
    VIEWS[wanted](house);
  }
}

/** What the service holds: its gates, and its library where it has one. Asked once, when first needed. */
const house = {
  gates: once(() => get("v1/gates")),
  library: once(() => get("v1/library").catch((error) => (error.status === 409 ? null : Promise.reject(error)))),
};

function once(ask) {
  let told = null;
  return () => (told ??= ask().catch((error) => ((told = null), Promise.reject(error))));
}

addEventListener("hashchange", () => show(true));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
show(false);
get("healthz").then((told) => (byId("about").textContent = `suffice ${told.version}`), () => {});
