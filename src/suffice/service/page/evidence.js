// A verdict and its evidence: gauge, reasons, quotes, the marked question, the graph, and the hits.

import { gauge } from "./gauge.js";
import { graph } from "./graph.js";
import { heading, hidden, make, pieces, placesOf, shortened, two } from "./dom.js";

const ACTIONS = {
  answer: ["Answer", "The hits look complete: nothing the question needs seems to be missing."],
  expand: ["Expand", "Something seems to be missing, and another search is worth it."],
  abstain: ["Abstain", "Something seems to be missing, and another search is not expected to help."],
};
const ANSWER_WITH_GAP = "The hits look complete enough to answer, although no hit covers everything.";
const MAX_CHARS = 420; // of a hit before the rest is folded

export const actionWord = (action) => ACTIONS[action]?.[0] ?? action;

/** A view that stays while verdicts change, so that the gauge can move. */
export function evidenceView({ canExpand, onExpand, onQuery }) {
  const dial = gauge();
  const title = make("h2", { id: "verdict-title" });
  const says = make("p", {});
  const expand = make("button", { type: "button", id: "check-expand", onclick: onExpand }, "Expand from the library");
  const why = make("p", { class: "soft small", id: "expand-why" });
  const from = make("p", { class: "soft small" });
  const unknown = make("p", { class: "unfamiliar", role: "note" });
  const notes = make("p", { class: "soft small", role: "note" });
  const words = make("div", {}, title, says, unknown, notes, from, make("div", { class: "row" }, expand), why);
  const top = make("section", { class: "verdict", "aria-labelledby": "verdict-title" }, dial.node, words);
  const rounds = make("div");
  const rest = make("div");

  expand.disabled = !canExpand;
  expand.setAttribute("aria-describedby", "expand-why");
  why.textContent = canExpand ? "" : "Expanding needs a library: suffice serve --library DIR";

  function show({ question, verdict, hits, answerAt, fresh = new Set() }) {
    const [word, sentence] = ACTIONS[verdict.action];
    top.className = `verdict ${verdict.action}`;
    title.textContent = word;
    says.textContent = verdict.action === "answer" && verdict.missing.length ? ANSWER_WITH_GAP : sentence;
    from.textContent = answerAt === null ? "This gate never answers." : `The gate answers at ${two(answerAt)} or more.`;
    unknown.hidden = !verdict.unfamiliar.length;
    unknown.textContent = `Familiarity ${two(verdict.familiarity)}: ${verdict.unfamiliar.join(" ")} The probability may be far off.`;
    const said = judged(verdict.judged);
    notes.hidden = !verdict.notes.length && !said;
    notes.textContent = [said, ...verdict.notes].filter(Boolean).join(" ");
    dial.show(verdict, answerAt);
    rest.replaceChildren(
      ...section("The question", markedQuestion(question, verdict.graph)),
      ...section("Why", reasons(verdict.reasons)),
      ...quotes(verdict.quotes, hits),
      ...missing(verdict, onQuery),
      ...section("Connections", graph(verdict.graph, hits)),
      ...section("Hits", hitList(verdict.graph, hits, fresh)),
    );
  }

  return { node: make("div", {}, top, rounds, rest), show, rounds, busy: (on) => (expand.disabled = on || !canExpand) };
}

function judged(word) {
  if (!word) return "";
  if (word.p_judge === null) return `The judge ${word.judge} gave no usable answer: the gate alone decides.`;
  const before = `the gate alone said ${word.action_before}, ${two(word.p_before)}`;
  return `The judge ${word.judge} said ${word.p_judge >= 0.5 ? "yes" : "no"} (${two(word.p_judge)}); ${before}.`;
}

const section = (title, ...content) => [heading(title), ...content.flat().filter(Boolean)];

function markedQuestion(question, { names, words }) {
  // The service counts code points, the browser UTF-16 units.
  const letters = Array.from(question);
  const at = (place) => letters.slice(0, place).join("").length;
  const covered = (text) => make("mark", {}, text, hidden(" (covered)"));
  const lacking = (text) => make("span", { class: "lacking" }, text, hidden(" (in no hit)"));
  const held = (text) => make("span", { class: "found-word" }, text);
  const inName = (word) => names.some((one) => one.start <= word.start && word.end <= one.end);
  const loose = words.filter((one) => one.found_in.length && !inName(one));
  const places = [
    ...names.map((one) => [at(one.start), at(one.end), one.found_in.length ? covered : lacking]),
    ...loose.map((one) => [at(one.start), at(one.end), held]),
  ];
  return [
    make("p", { class: "marked" }, pieces(question, places)),
    make("p", { class: "legend soft small", "aria-hidden": "true" },
      make("span", {}, make("mark", {}, "covered"), " by a hit"),
      loose.length ? make("span", {}, make("span", { class: "found-word" }, "word"), " of a hit") : null,
      make("span", {}, make("span", { class: "lacking" }, "missing"), " from all hits")),
  ];
}

function reasons(some) {
  if (!some.length) return make("p", { class: "soft" }, "Nothing moved the probability far from the average.");
  const most = Math.max(...some.map((one) => Math.abs(one.effect)), 0.5);
  return make("ul", { class: "bars" }, some.map(({ effect, words }) => {
    const [kind, width] = [effect >= 0 ? "answer" : "abstain", (Math.abs(effect) / most) * 50];
    const bar = make("i");
    bar.style.width = `${width}%`;
    bar.style.left = `${effect >= 0 ? 50 : 50 - width}%`;
    if (!effect) return make("li", {}, make("span", { class: "sign" }, "∗", hidden(" about the action: ")), words);
    const sign = `${effect > 0 ? "+" : "−"}${two(Math.abs(effect))}`;
    return make("li", { class: kind },
      make("span", { class: "sign" }, sign, hidden(effect > 0 ? " for complete: " : " against: ")),
      words,
      make("span", { class: "bar", "aria-hidden": "true" }, bar));
  }));
}

function quotes(some, hits) {
  if (!some.length) return [];
  return section("Evidence", make("ul", { class: "quotes" }, some.map(({ doc_id: id, p_needed: p, text }) =>
    make("li", {},
      make("q", {}, text),
      make("span", { class: "soft small" }, ` ${hits.get(id)?.title || id}, needed with a chance of ${two(p)}`)))));
}

function missing({ missing: names, next_queries: queries }, onQuery) {
  if (!names.length && !queries.length) return [];
  const chips = make("ul", { class: "chips abstain" }, names.map((name) => make("li", { class: "chip" }, name)));
  const look = queries.length ? make("p", { class: "soft small" }, onQuery ? "Search the library for:" : "Search for:") : null;
  const button = (query) => make("button", { type: "button", class: "chip", onclick: () => onQuery(query) }, query);
  const asks = make("ul", { class: "chips" }, queries.map((query) => make("li", {}, onQuery ? button(query) : make("code", {}, query))));
  return section("What is missing", names.length ? chips : null, look, asks);
}

function hitList({ hits: read, names, words, links }, hits, fresh) {
  if (!hits.size) return make("p", { class: "soft" }, "There are no hits for this question.");
  const rows = [...hits.values()].map((hit) => {
    const held = (some) => some.filter((one) => one.found_in.includes(hit.doc_id));
    const named = held(names);
    const covers = named.map((one) => one.text);
    // Words inside a name that the hit covers are told with it.
    const loose = held(words).filter((word) => !named.some((one) => one.start <= word.start && word.end <= one.end));
    const unread = !read.includes(hit.doc_id);
    const led = links.filter(([, to]) => to === hit.doc_id).map(([by]) => hits.get(by)?.title).filter(Boolean);
    const isNew = fresh.has(hit.doc_id);
    const chips = make("ul", { class: "chips answer", "aria-label": "Covers" }, covers.map((name) => make("li", { class: "chip" }, name)));
    return make("li", { class: `${unread ? "unread" : ""} ${isNew ? "fresh" : ""}` },
      hit.title ? make("h3", {}, hit.title, isNew ? make("span", { class: "new" }, " · found") : null) : null,
      hitText(hit.text || "", covers),
      covers.length ? chips : null,
      coverageNotes(unread, led, covers, loose.map((one) => one.text)).map((note) => make("p", { class: "soft small" }, note)));
  });
  return make("ol", { class: "hits" }, rows);
}

function coverageNotes(unread, led, covers, words) {
  if (unread) return ["Not read: the gate reads only the first distinct hits."];
  const notes = [];
  if (led.length) notes.push(`Mentioned by ${led.join(" and ")}.`);
  if (words.length) notes.push(`Holds ${covers.length ? "also " : ""}the words: ${words.join(", ")}.`);
  return notes.length || covers.length ? notes : ["Covers nothing the question says."];
}

/** A hit's text with these words marked; the rest of a long one is folded. */
export function hitText(text, covers) {
  const shown = shortened(text, MAX_CHARS);
  const marked = (part) => pieces(part, placesOf(part, covers).map(([start, end]) => [start, end, (word) => make("mark", {}, word)]));
  if (shown === text) return make("p", {}, marked(text));
  return [make("p", {}, marked(shown)), make("details", {}, make("summary", {}, "Show all"), make("p", {}, marked(text)))];
}
