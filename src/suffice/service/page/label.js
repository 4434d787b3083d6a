// Label: a question of which the gate is unsure, with its hits; one key per answer.

import { get, post } from "./api.js";
import { hitText } from "./evidence.js";
import { byId, emptyState, make, showError } from "./dom.js";

const NAME_ITEM = "suffice-labeller";
const ANSWERS = { y: true, n: false, s: null };
const SAID = { y: "Stored: complete.", n: "Stored: not complete.", s: "Skipped." };
const NONE = "Check questions here or with /v1/check, or start the service with a file of questions and hits:";
const NOTHING_LEFT = ["Nothing is left to label.", NONE, "suffice serve --label questions.jsonl"];
const OFF = ["This service stores no labels.", "Start it with a file for them:", "suffice serve --labels labels.jsonl"];

export async function labelView() {
  const [view, work, problem, status, shown] = ["view-label", "label-work", "label-problem", "label-status", "label-item"].map(byId);
  const name = byId("label-by");
  const buttons = Object.fromEntries([...view.querySelectorAll("[data-key]")].map((one) => [one.dataset.key, one]));
  let item = null;
  let needed = new Set(); // ids of hits
  let busy = false;

  name.value = localStorage.getItem(NAME_ITEM) ?? "";
  if (!name.value) store(`labeller-${crypto.getRandomValues(new Uint16Array(1))[0]}`);
  name.addEventListener("change", () => {
    store(name.value.trim() || localStorage.getItem(NAME_ITEM));
    load();
  });
  for (const [key, button] of Object.entries(buttons)) button.addEventListener("click", () => press(key));
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, dialog");
    if (view.hidden || typing || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key in buttons) press(key);
    else if (/^\d$/.test(key)) toggle((Number(key) + 9) % 10);
    else return;
    event.preventDefault();
  });

  function store(value) {
    name.value = value;
    localStorage.setItem(NAME_ITEM, value);
  }

  const load = () => go(() => get(`v1/label/next?by=${encodeURIComponent(name.value)}`), () => "", false);

  function press(key) {
    if (key === "u") return go(() => post("v1/label/undo", { by: name.value }), ({ stored }) => (stored ? "Undone." : "Nothing to undo."));
    if (item === null) return null;
    // Who marks some hits has looked at all of them: the others are not needed.
    const marks = needed.size ? Object.fromEntries(item.hits.map(({ id }) => [id, needed.has(id)])) : {};
    const answer = { ...item, complete: ANSWERS[key], needed: marks, by: name.value };
    return go(() => post("v1/label", answer), () => SAID[key]);
  }

  /** One request at a time: an answer is about what is shown. */
  async function go(send, say, scroll = true) {
    if (busy) return;
    busy = true;
    try {
      const reply = await send();
      showError(problem);
      show(reply);
      status.textContent = say(reply);
      if (scroll) scrollToTop();
    } catch (error) {
      const off = error.status === 409;
      showError(problem, off ? null : error);
      status.textContent = "";
      if (off) {
        work.hidden = true;
        byId("label-off").replaceChildren(emptyState(...OFF));
      }
    } finally {
      busy = false;
    }
  }

  /** On a phone, the title would take half of the screen. */
  function scrollToTop() {
    if (matchMedia("(max-width: 40rem)").matches) byId("label-state").scrollIntoView({ behavior: "instant" });
    else scrollTo({ top: 0, behavior: "instant" });
  }

  function show({ item: next, progress }) {
    item = next;
    needed = new Set();
    work.hidden = false;
    byId("label-off").replaceChildren();
    for (const key of Object.keys(ANSWERS)) buttons[key].disabled = item === null;
    showProgress(progress);
    shown.replaceChildren(...(item === null ? [emptyState(...NOTHING_LEFT)] : [question(item), hitList(item)]));
  }

  const question = ({ question: text }) => make("h2", { class: "marked", id: "label-question" }, text);

  function hitList({ question: text, hits }) {
    const words = text.match(/(?<=\P{L})\p{Lu}[\p{L}\p{N}]+|\p{N}{3,}/gu) ?? [];
    return make("ol", { class: "hits" }, hits.map((hit, at) =>
      make("li", {},
        make("div", { class: "between" },
          make(hit.title ? "h3" : "span", {}, hit.title),
          make("button", { type: "button", class: "chip mark-needed", "aria-pressed": "false", "aria-label": `Hit ${at + 1} is needed`, onclick: () => toggle(at) }, "needed")),
        hitText(hit.text, words))));
  }

  function toggle(at) {
    const hit = item?.hits[at];
    if (!hit) return;
    if (!needed.delete(hit.id)) needed.add(hit.id);
    shown.querySelectorAll(".mark-needed")[at].setAttribute("aria-pressed", String(needed.has(hit.id)));
  }

  function showProgress({ labelled, complete, skipped, left, enough, adapt }) {
    const bar = byId("label-progress");
    bar.max = enough;
    bar.value = Math.min(labelled, enough);
    const more = enough - labelled;
    const parts = [
      `${labelled} labelled (${complete} complete)`, skipped ? `${skipped} skipped` : "", `${left} left`,
      more > 0 ? `${more} more to adapt the gate` : "",
    ];
    byId("label-count").textContent = parts.filter(Boolean).join(" · ");
    const goal = byId("label-goal");
    const alike = "Enough labels, but all say the same: to adapt, some must be complete and some not.";
    goal.hidden = more > 0;
    goal.replaceChildren(...(adapt ? ["Enough to adapt: ", make("code", {}, adapt)] : [alike]));
  }

  await load();
}
