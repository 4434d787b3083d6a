// The graph of the question, the hits and their links, with the same below it in words.

import { draw, many, make, shortened } from "./dom.js";

const [HEIGHT, GAP, LETTER] = [34, 16, 6.6];
const KINDS = ["names", "links", "dangles"];

/** What joins the question to the hits: its names, or its words where it names nothing. */
const asks = ({ names, words }) => (names.length ? names : words);

/** A figure that redraws itself when its width changes. */
export function graph(data, hits) {
  const place = make("div");
  const watch = new ResizeObserver(([{ contentRect }]) => {
    const width = Math.round(contentRect.width);
    if (width > 0 && width !== Number(place.dataset.width)) {
      place.dataset.width = width;
      place.replaceChildren(render(data, hits, width));
    }
  });
  watch.observe(place);
  return make("figure", {}, place, legend(data), inWords(data, hits));
}

function render(data, hits, width) {
  const { hits: ids, links, missing } = data;
  const rows = Math.max(ids.length, missing.length, 1);
  const height = rows * (HEIGHT + GAP) + 2 * GAP;
  const spread = (count, at) => GAP + ((at + 0.5) * (height - 2 * GAP)) / Math.max(count, 1);
  const columns = { question: [2, width * 0.21], hits: [width * 0.32, width * 0.36], missing: [width * 0.79, width * 0.21 - 2] };
  const asked = { x: columns.question[0], w: columns.question[1], y: height / 2 };
  const hit = new Map(ids.map((id, at) => [id, { x: columns.hits[0], w: columns.hits[1], y: spread(ids.length, at), at }]));
  const gap = missing.map((_, at) => ({ x: columns.missing[0], w: columns.missing[1], y: spread(missing.length, at) }));
  const held = new Set(asks(data).flatMap((one) => one.found_in));
  const edges = [
    ...ids.filter((id) => held.has(id)).map((id) => across(asked, hit.get(id), "names")),
    ...links.filter(([by, to]) => hit.has(by) && hit.has(to)).map(([by, to]) => beside(hit.get(by), hit.get(to))),
    ...missing.flatMap((one, at) =>
      one.mentioned_by.filter((id) => hit.has(id)).map((id) => across(hit.get(id), gap[at], "dangles"))),
    ...missing.map((one, at) => (one.in_question ? below(asked, gap[at], height) : null)),
  ];
  const nodes = [
    box(asked, "Question", "q"),
    ...ids.map((id) => box(hit.get(id), nameOf(hits, id), held.has(id) ? "held" : "plain")),
    ...missing.map((one, at) => box(gap[at], one.text, "gap")),
  ];
  const how = { class: "evidence-graph", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" };
  return draw("svg", how, draw("defs", {}, KINDS.map(tip)), edges, nodes);
}

const nameOf = (hits, id) => hits.get(id)?.title || hits.get(id)?.text || id;

const tip = (kind) =>
  draw("marker", { id: `tip-${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    draw("path", { class: `tip end-${kind}`, d: "M 0 0 L 8 4 L 0 8 z" }));

const edge = (d, kind) => draw("path", { class: `edge ${kind}`, d, "marker-end": `url(#tip-${kind})` });

function across(from, to, kind) {
  const [x1, x2] = [from.x + from.w, to.x];
  const middle = (x1 + x2) / 2;
  return edge(`M ${x1} ${from.y} C ${middle} ${from.y} ${middle} ${to.y} ${x2 - 1} ${to.y}`, kind);
}

/** From hit to hit, in a bow on the right of their column: the farther apart, the wider. */
function beside(from, to) {
  const x = from.x + from.w;
  const bow = x + Math.min(14 + 8 * Math.abs(from.at - to.at), from.w * 0.3);
  const side = to.y > from.y ? 7 : -7;
  return edge(`M ${x} ${from.y + side} C ${bow} ${from.y + side} ${bow} ${to.y - side} ${x + 2} ${to.y - side}`, "links");
}

function below(from, to, height) {
  const [x1, x2, floor] = [from.x + from.w / 2, to.x + to.w / 2, height - 3];
  const down = `M ${x1} ${from.y + HEIGHT / 2} C ${x1} ${floor + 4} ${x1} ${floor} ${(x1 + x2) / 2} ${floor}`;
  return edge(`${down} S ${x2} ${floor + 4} ${x2} ${to.y + HEIGHT / 2 + 2}`, "dangles");
}

function box({ x, w, y }, text, kind) {
  const fits = Math.max(3, Math.floor((w - 14) / LETTER));
  return draw("g", { class: kind },
    draw("rect", { x, y: y - HEIGHT / 2, width: w, height: HEIGHT, rx: 8 }),
    draw("title", {}, text),
    draw("text", { x: x + 8, y: y + 4 }, shortened(text, fits)));
}

function legend({ names, links, missing }) {
  const dangling = missing.length ? `Dashed: ${many(missing.length, "gap")}.` : "There are no gaps.";
  const arrows = links.length ? "Grey arrows: a hit mentions another." : "No hit mentions another.";
  return make("figcaption", { class: "soft small" }, `Green: hits that contain ${names.length ? "names" : "words"} from the question. ${arrows} ${dangling}`);
}

function inWords(data, hits) {
  const { hits: ids, names, links, missing } = data;
  const called = (id) => `“${shortened(nameOf(hits, id), 60)}”`;
  const all = (some) => some.map(called).join(", ");
  const connected = new Set([...asks(data), ...missing].flatMap((one) => one.found_in ?? one.mentioned_by).concat(links.flat()));
  const lines = [
    ...names.map(({ text, found_in: by }) => `The question names ${text}: found in ${by.length ? all(by) : "no hit"}.`),
    ...links.map(([by, to]) => `${called(by)} mentions ${called(to)}.`),
    ...missing.map(({ text, mentioned_by: by }) =>
      by.length ? `${all(by)} mentions ${text}, which no hit covers.` : `${text} is missing, and no hit mentions it.`),
    ...ids.filter((id) => !connected.has(id)).map((id) => `${called(id)} is not connected.`),
  ];
  return make("details", {}, make("summary", {}, "The same in words"), make("ul", {}, lines.map((line) => make("li", {}, line))));
}
