// Check: a question and its hits give a verdict; Expand completes them from the library.

import { documents, post } from "./api.js";
import { evidenceView } from "./evidence.js";
import { byId, calm, heading, make, many, pause, showError, two } from "./dom.js";

const SEARCH_K = 6; // hits taken from the library
const QUERY_K = 3; // hits added by a query of the verdict
const STEP_MS = 900; // between two rounds of an expansion, so that you can follow
const EXAMPLE = {
  question: "Which film has the director born first, Shadows in Paradise or Dog Law?",
  hits: [
    "Dog Law | Dog Law is a 1928 American silent western film directed by Jerome Storm.",
    "Jerome Storm | Jerome Storm (November 11, 1890 – July 10, 1958) was an American film director.",
    "Shadows in Paradise | Shadows in Paradise is a 1986 Finnish film directed by Aki Kaurismäki.",
  ].join("\n"),
};

/** Pasted hits: JSON, JSON lines, or one per line as "title | text". */
export function readHits(text) {
  const trimmed = text.trim();
  if (!trimmed) return [];
  if (/^[[{]/.test(trimmed)) return withIds(fromJson(trimmed));
  const lines = trimmed.split("\n").map((line) => line.trim()).filter(Boolean);
  return withIds(lines.map((line) => {
    const at = line.indexOf(" | ");
    return at < 0 ? { text: line } : { title: line.slice(0, at).trim(), text: line.slice(at + 3).trim() };
  }));
}

function fromJson(text) {
  try {
    const value = JSON.parse(text);
    return Array.isArray(value) ? value : Array.isArray(value.hits) ? value.hits : [value];
  } catch {
    return text.split("\n").filter((line) => line.trim()).map((line, at) => {
      try {
        return JSON.parse(line);
      } catch {
        const hint = 'A list like [{"title": "…", "text": "…"}], or one object a line.';
        throw Object.assign(new Error(`The hits are not valid JSON: line ${at + 1} is broken.`), { hint });
      }
    });
  }
}

/** Give every hit an id. A hit with only an id stays so: the library has its text. */
const withIds = (hits) => hits.map((hit, at) => {
  if (typeof hit === "string") return { doc_id: `hit ${at + 1}`, title: "", text: hit };
  if (hit === null || typeof hit !== "object" || Array.isArray(hit)) {
    throw Object.assign(new Error(`Hit ${at + 1} is neither a text nor an object.`), { hint: 'For example {"title": "…", "text": "…"}.' });
  }
  const text = hit.text ?? hit.content ?? hit.page_content ?? hit.body;
  const doc_id = String(hit.doc_id ?? hit.id ?? hit._id ?? `hit ${at + 1}`);
  return { ...hit, doc_id, ...(text === undefined ? {} : { text, title: hit.title ?? "" }) };
});

const toLines = (hits) => hits.map(({ doc_id, title, text, score }) => JSON.stringify({ doc_id, title, text, score })).join("\n");

export async function checkView(state) {
  const [question, hits, problem, status, result] = ["question", "hits", "problem", "status", "result"].map((id) => byId(`check-${id}`));
  let view = null;
  let running = null;
  let gates = [];
  let library = null;

  byId("check-form").addEventListener("submit", (event) => (event.preventDefault(), go(check)));
  byId("check-search").addEventListener("click", () => go(search));
  byId("check-example").addEventListener("click", () => {
    question.value = EXAMPLE.question;
    hits.value = EXAMPLE.hits;
    question.focus();
  });
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("check-form").requestSubmit();
  });
  try {
    gates = await state.gates();
    library = await state.library();
  } catch (error) {
    showError(problem, error);
  }
  byId("check-search").hidden = library === null;
  const chooser = byId("check-gate");
  chooser.replaceChildren(...gates.map((one) => make("option", { value: one.name }, one.name)));
  byId("check-gate-choice").hidden = gates.length < 2;

  /** One task at a time: a new one ends the running one. */
  async function go(work) {
    running?.abort();
    const mine = (running = new AbortController());
    showError(problem);
    question.removeAttribute("aria-invalid");
    try {
      if (!question.value.trim()) {
        question.setAttribute("aria-invalid", "true");
        question.focus();
        throw Object.assign(new Error("There is no question yet."), { hint: "Write one, or fill in the example." });
      }
      await work(question.value.trim(), mine.signal);
    } catch (error) {
      if (error.name !== "AbortError") {
        showError(problem, error);
        status.textContent = "";
      }
    }
  }

  const gate = () => gates.find((one) => one.name === chooser.value) ?? { name: "default", policy: {} };

  async function check(text, signal) {
    status.textContent = "Checking…";
    const given = readHits(hits.value);
    const verdict = await getVerdict(text, given, signal);
    await show(text, given, verdict, new Set(), signal);
    status.textContent = `${verdict.action}: complete with probability ${two(verdict.p_complete)}`;
    view.rounds.replaceChildren();
  }

  const getVerdict = (text, given, signal) => post("v1/check", { question: text, hits: given, gate: gate().name, graph: true }, signal);

  async function show(text, given, verdict, fresh, signal) {
    const bare = given.filter((one) => one.text === undefined && library).map((one) => one.doc_id);
    const stored = bare.length ? await documents(bare, signal) : new Map();
    const all = new Map(given.map((one) => [one.doc_id, stored.get(one.doc_id) ?? one]));
    if (view === null) {
      view = evidenceView({
        canExpand: library !== null, onExpand: () => go(expand),
        onQuery: library === null ? null : (query) => go((text, at) => add(text, query, at)),
      });
      result.replaceChildren(view.node);
    }
    view.show({ question: text, verdict, hits: all, answerAt: gate().policy.answer_at ?? null, fresh });
  }

  async function search(text, signal) {
    status.textContent = "Searching…";
    const found = (await post("v1/search", { question: text, k: SEARCH_K }, signal)).hits;
    if (!found.length) throw Object.assign(new Error("The library has no hits for this question."), { hint: "Try other words." });
    hits.value = toLines(found);
    await check(text, signal);
  }

  async function add(text, query, signal) {
    status.textContent = `Searching for ${query}…`;
    const held = readHits(hits.value);
    const known = new Set(held.flatMap((one) => [one.doc_id, one.text]));
    const listed = (await post("v1/search", { question: query, k: QUERY_K }, signal)).hits;
    const found = listed.filter((one) => !known.has(one.doc_id) && !known.has(one.text));
    const all = [...held, ...found];
    hits.value = toLines(all);
    const verdict = await getVerdict(text, all, signal);
    await show(text, all, verdict, new Set(found.map((one) => one.doc_id)), signal);
    status.textContent = `${many(found.length, "hit")} added; complete with probability ${two(verdict.p_complete)}`;
  }

  async function expand(text, signal) {
    view.busy(true);
    status.textContent = "Expanding…";
    try {
      const completion = await post("v1/complete", { question: text, gate: gate().name }, signal);
      await replay(text, completion, signal);
    } finally {
      view.busy(false);
    }
  }

  /** Show the rounds of an expansion: the documents, and what the gate said. */
  async function replay(text, completion, signal) {
    const list = make("ol", { class: "rounds" });
    const start = "It starts with the library's first hit and adds documents that make the evidence more complete.";
    view.rounds.replaceChildren(heading("Expansion"), make("p", { class: "soft small" }, start), list);
    const texts = await documents([...new Set(completion.rounds.flatMap((one) => one.held))], signal);
    let before = new Set();
    const last = { held: completion.hits.map((one) => one.doc_id), p_complete: completion.verdict.p_complete, last: true };
    for (const round of [...completion.rounds, last]) {
      const same = round.last && round.held.length === before.size && round.held.every((id) => before.has(id));
      if (!same) {
        const held = round.held.map((id) => texts.get(id)).filter(Boolean);
        const verdict = await getVerdict(text, held, signal);
        await show(text, held, verdict, new Set(round.held.filter((id) => !before.has(id))), signal);
        list.append(roundLine(round, before, texts));
        status.textContent = `${many(held.length, "document")}: complete with probability ${two(verdict.p_complete)}`;
        before = new Set(round.held);
        await pause(calm() ? 0 : STEP_MS, signal);
        if (signal.aborted) return;
      }
    }
    hits.value = toLines(completion.hits);
    const end = `${many(completion.hits.length, "document")}, complete with probability ${two(completion.verdict.p_complete)}`;
    status.textContent = `Ended: ${completion.stopped}. ${end}.`;
    list.after(make("p", { class: "small" }, `Ended: ${completion.stopped}.`));
  }

  function roundLine({ p_complete: p, held, last }, before, texts) {
    const fill = make("i");
    fill.style.width = `${Math.round((p ?? 0) * 100)}%`;
    const title = (id) => texts.get(id)?.title || id;
    const came = held.filter((id) => !before.has(id)).map((id) => `+ ${title(id)}`);
    const went = [...before].filter((id) => !held.includes(id)).map((id) => `− ${title(id)}`);
    return make("li", {},
      make("span", { class: "p" }, p === null ? "–" : two(p)),
      make("span", { class: "line", "aria-hidden": "true" }, fill),
      make("span", {}, last ? "kept: " : "", [...came, ...went].join(", ")));
  }
}
