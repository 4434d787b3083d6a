// Helpers that make elements. Text is only ever set as text: a document cannot inject markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

export const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);
export const heading = (text, id = null) => make("h2", { id }, text);

export const hidden = (text) => make("span", { class: "only-read" }, text);
export const percent = (share) => `${Math.round(share * 100)} %`;
export const two = (number) => number.toFixed(2);
export const many = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
export const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
export const pause = (ms, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

/** Split a text: each [start, end, wrap] becomes wrap(part), the rest stays text. Overlapping ranges are skipped. */
export function pieces(text, places) {
  const made = [];
  let at = 0;
  for (const [start, end, wrap] of [...places].sort((one, two) => one[0] - two[0])) {
    if (start < at || end > text.length) continue;
    made.push(text.slice(at, start), wrap(text.slice(start, end)));
    at = end;
  }
  return [...made, text.slice(at)];
}

/** Ranges of whole words in the text, ignoring case. */
export function placesOf(text, words) {
  const found = [];
  const low = text.toLowerCase();
  if (low.length !== text.length) return found;
  for (const word of words.map((one) => one.toLowerCase()).filter((one) => one.length > 1)) {
    for (let at = low.indexOf(word); at >= 0; at = low.indexOf(word, at + word.length)) {
      const alone = !/[\p{L}\p{N}]/u.test(low[at - 1] ?? " ") && !/[\p{L}\p{N}]/u.test(low[at + word.length] ?? " ");
      if (alone) found.push([at, at + word.length]);
    }
  }
  return found;
}

/** Show an error with its hint; null clears it. */
export function showError(place, error = null) {
  if (error === null) return place.replaceChildren();
  const hint = error.hint ? make("p", { class: "soft small" }, error.hint) : null;
  place.replaceChildren(make("div", { class: "problem" }, make("p", {}, error.message || "Something went wrong."), hint));
}

export const emptyState = (title, text, command) =>
  make("div", { class: "empty" }, make("h3", {}, title), make("p", { class: "soft" }, text), make("pre", {}, make("code", {}, command)));
