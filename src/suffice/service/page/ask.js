// Ask: a plan that fills in while the question is worked on, with citations that link to their sentence.

import { askEvents, documents } from "./api.js";
import { actionWord } from "./evidence.js";
import { byId, calm, emptyState, heading, make, many, pieces, showError, two } from "./dom.js";

const BUILD = "suffice build FOLDER --out library\nsuffice serve --library library";
const MAX_CHARS = 1500; // of a source

export async function askView(state) {
  const [question, problem, status, result] = ["question", "problem", "status", "result"].map((id) => byId(`ask-${id}`));
  const stop = byId("ask-stop");
  let running = null;

  byId("ask-form").addEventListener("submit", (event) => (event.preventDefault(), go()));
  stop.addEventListener("click", () => running?.abort());
  const library = await state.library().catch((error) => (showError(problem, error), undefined));
  if (library === null) {
    byId("ask-form").hidden = true;
    result.replaceChildren(emptyState("There is no library to ask.", "Build one from your documents, and serve it:", BUILD));
  }

  async function go() {
    running?.abort();
    showError(problem);
    question.removeAttribute("aria-invalid");
    if (!question.value.trim()) {
      question.setAttribute("aria-invalid", "true");
      question.focus();
      return showError(problem, { message: "There is no question yet.", hint: "Write one, like: Who directed the film Dog Law?" });
    }
    const mine = (running = new AbortController());
    const view = traceView();
    result.replaceChildren(view.node);
    stop.hidden = false;
    status.textContent = "Planning…";
    try {
      await follow(view, mine.signal);
    } catch (error) {
      if (mine !== running) return;
      if (error.name === "AbortError") status.textContent = "Stopped.";
      else (showError(problem, error), (status.textContent = ""));
    } finally {
      if (mine === running) stop.hidden = true;
    }
  }

  async function follow(view, signal) {
    for await (const { name, data } of askEvents(question.value.trim(), "default", signal)) {
      if (name === "plan") view.plan(data.plan);
      if (name === "step") view.step(data.step);
      if (name === "end") {
        view.end(data);
        status.textContent = data.answer === null ? "No answer: the gate abstains." : `Answer: ${data.answer}`;
        view.sources(await documents([...view.cited()], signal));
      } else status.textContent = name === "plan" ? `${many(data.plan.length, "step")} planned.` : data.step.question;
    }
  }
}

/** Shows one trace. Every citation links to its sentence in the sources at the end. */
function traceView() {
  const answer = make("div", { id: "answer" });
  const plan = make("ol", { class: "plan", id: "plan" });
  const planned = make("div", {}, heading("Plan"), plan);
  const below = make("div");
  const notes = make("div", { class: "small soft" });
  const items = new Map(); // number in the plan -> its line
  const cited = new Map(); // document -> sentence number -> its words
  const links = [];

  function line(number, text, depth) {
    const item = make("li", { "--depth": depth, class: "waiting" }, make("h3", {}, text), make("p", { class: "state" }, "waiting"));
    items.set(number, item);
    return item;
  }

  const link = ({ doc_id, sentence, text }) => {
    if (!cited.has(doc_id)) cited.set(doc_id, new Map());
    cited.get(doc_id).set(sentence, text);
    const attributes = { class: "cite", href: `#${anchor(doc_id, sentence)}`, title: text, "data-of": doc_id, "data-sentence": sentence };
    links.push(make("a", { ...attributes, onclick: jump }, called(doc_id, sentence)));
    return links.at(-1);
  };

  function showPlan(questions) {
    const depths = [];
    for (const text of questions) depths.push(1 + Math.max(-1, ...needs(text).map((one) => depths[one - 1] ?? 0)));
    items.clear();
    plan.replaceChildren(...questions.map((text, at) => line(at + 1, `${at + 1}. ${text}`, depths[at])));
    plan.firstElementChild?.classList.replace("waiting", "working");
  }

  function step(data) {
    const item = items.get(data.number) ?? plan.appendChild(line(data.number, data.question, 0));
    const asked = item.firstElementChild.textContent.endsWith(data.question) ? null : make("p", { class: "soft small" }, data.question);
    const found = data.answer === null ? null : make("p", { class: "found" }, data.answer);
    const cites = data.citations.length ? make("p", {}, data.citations.map(link)) : null;
    const parts = [item.firstElementChild, asked, found, make("p", { class: "state" }, stateOf(data)), cites];
    item.className = data.answer !== null || data.verdict?.action === "answer" ? "done" : "open";
    item.replaceChildren(...parts.filter(Boolean));
    const next = [...items.values()].find((one) => one.className === "waiting");
    next?.classList.replace("waiting", "working");
  }

  function end(trace) {
    for (const one of items.values()) {
      if (one.className !== "waiting" && one.className !== "working") continue;
      one.className = "";
      one.querySelector(".state").textContent = "not needed";
    }
    const kind = trace.action ?? "abstain";
    const verdict = trace.steps.findLast((one) => one.verdict)?.verdict;
    const sure = verdict ? `The evidence is complete with probability ${two(verdict.estimate.p_complete)}.` : "";
    const lacks = make("ul", { class: "chips", "aria-label": "Missing" }, trace.missing.map((one) => make("li", { class: "chip" }, one)));
    answer.replaceChildren(make("section", { class: `verdict alone ${kind}`, "aria-label": "The answer" }, make("div", {},
      make("h2", {}, trace.answer ?? actionWord(kind)),
      make("p", { class: "soft" }, trace.answer === null ? `The evidence is not complete. ${sure}` : sure),
      trace.missing.length ? lacks : null,
      make("p", {}, trace.citations.map(link)))));
    const { rounds, calls, tokens, seconds } = trace.cost;
    notes.replaceChildren(...trace.notes.map((note) => make("p", {}, note)),
      make("p", {}, `${many(rounds, "round")}, ${many(calls, "call")} to a model, ${many(tokens, "token")}, ${seconds.toFixed(1)} s.`));
  }

  function sources(found) {
    if (!cited.size) return;
    for (const one of links) one.textContent = called(found.get(one.dataset.of)?.title || one.dataset.of, Number(one.dataset.sentence));
    below.replaceChildren(heading("Sources"), ...[...cited].map(([id, sentences]) => source(id, found.get(id), sentences)));
  }

  return { node: make("div", {}, answer, planned, below, notes), plan: showPlan, step, end, sources, cited: () => cited.keys() };
}

const called = (name, sentence) => `${name} · sentence ${sentence + 1}`;
const READERS = {
  model: "read by the model",
  reader: "read by the gate's reader",
  extractive: "read by rules",
  both: "read by two readers alike",
  joined: "combined from earlier answers",
};

/** Who read it and how confident, or the gate's verdict, or why there is no answer. */
function stateOf({ answer, by, review, verdict, note }) {
  if (verdict) return `${note ? `${note}: ` : ""}complete with probability ${two(verdict.estimate.p_complete)}, ${verdict.action}`;
  if (answer === null) return note || "no answer found";
  const sure = review ? ` · confidence ${two(review.confidence)}, ${review.support}` : "";
  return `${READERS[by] ?? "read"}${sure}`;
}

const needs = (text) => [...text.matchAll(/#(\d+)/g)].map((found) => Number(found[1]));
const anchor = (id, sentence) => `cited-${encodeURIComponent(id)}-${sentence}`;

function source(id, document, sentences) {
  const text = document?.text ?? "";
  const places = [];
  const loose = []; // cited words that are not in the text as read
  for (const [number, words] of sentences) {
    const at = text.indexOf(words);
    const marked = (part) => make("mark", { id: anchor(id, number), tabindex: -1 }, part);
    if (at >= 0) places.push([at, at + words.length, marked]);
    else loose.push(make("p", {}, marked(words)));
  }
  const [from, to] = [Math.min(...places.map(([start]) => start), 0), Math.max(MAX_CHARS, ...places.map(([, end]) => end))];
  const shown = pieces(text.slice(from, to), places);
  return make("article", { class: "source" }, make("h3", {}, document?.title || id), make("p", {}, shown, text.length > to ? "…" : ""), loose);
}

/** Scroll to the sentence and focus it; the address stays that of the view. */
function jump(event) {
  event.preventDefault();
  const place = byId(event.currentTarget.getAttribute("href").slice(1));
  if (!place) return;
  place.scrollIntoView({ block: "center", behavior: calm() ? "instant" : "smooth" });
  place.focus({ preventScroll: true });
}
