// The report's charts: calibration, risk against coverage with a draggable threshold, and the heatmap.

import { draw, make, many, percent, two } from "./dom.js";

const [HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [290, 44, 40, 30, 22];
const MIN_BIN = 10; // questions in a bin that the line goes through; fewer are mostly chance
const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** An empty chart: scales for x and y, and its frame. */
function chart(width, most = 1) {
  const x = (share) => LEFT + share * (width - LEFT - RIGHT);
  const y = (value) => TOP + (1 - Math.min(value / most, 1)) * (HEIGHT - TOP - BOTTOM);
  const rows = TICKS.map((share) => share * most);
  const framed = (label, below, above, ...content) =>
    draw("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label },
      rows.map((value) => draw("line", { class: "grid", x1: x(0), x2: x(1), y1: y(value), y2: y(value) })),
      rows.map((value) => draw("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, percent(value))),
      TICKS.map((share) => draw("text", { x: x(share), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, percent(share))),
      draw("line", { class: "axis", x1: x(0), x2: x(1), y1: y(0), y2: y(0) }),
      draw("text", { class: "name", x: x(0.5), y: HEIGHT - 6, "text-anchor": "middle" }, below),
      draw("text", { class: "name", x: 0, y: 12 }, above),
      content);
  return { x, y, framed };
}

const through = (points) => points.map(([x, y], at) => `${at ? "L" : "M"} ${x.toFixed(1)} ${y.toFixed(1)}`).join(" ");

export function calibration(bins, width) {
  const { x, y, framed } = chart(width);
  const known = bins.filter((one) => one.count > 0);
  const most = Math.max(...known.map((one) => one.count), 1);
  const enough = known.filter((one) => one.count >= MIN_BIN);
  const dots = known.map(({ predicted, observed, count }) =>
    draw("circle", { class: count < MIN_BIN ? "dot few" : "dot", cx: x(predicted), cy: y(observed), r: 3 + 6 * Math.sqrt(count / most) },
      draw("title", {}, `${count} questions: predicted ${two(predicted)}, observed ${two(observed)}`)));
  const text = known.map((one) => `predicted ${percent(one.predicted)}, complete ${percent(one.observed)}`).join("; ");
  return framed(`Calibration: ${text}`, "predicted", "observed",
    draw("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    draw("path", { class: "curve", d: through(enough.map((one) => [x(one.predicted), y(one.observed)])) }),
    dots);
}

/** Risk against coverage. Calls `move(index)` with the threshold under the pointer. */
export function riskCoverage(thresholds, questions, width, move) {
  const points = thresholds.map((one, at) => ({ ...one, index: at, share: one.answered / questions })).filter((one) => one.answered);
  const highest = Math.max(0.1, ...points.filter((one) => one.share > 0.03).map((one) => one.risk_below));
  const { x, y, framed } = chart(width, Math.min(1, Math.ceil(highest * 5) / 5));
  const line = points.map((one) => [x(one.share), y(one.risk)]);
  const bound = points.map((one) => [x(one.share), y(one.risk_below)]);
  const grip = draw("line", { class: "grip", y1: TOP, y2: HEIGHT - BOTTOM });
  const handle = draw("circle", { class: "handle", r: 9 });
  const hold = draw("rect", { class: "hold", x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM });
  const node = framed("Risk against coverage; the slider below moves the threshold.", "share answered", "incomplete among answered",
    draw("path", { class: "bound", d: `${through([...bound, ...line.toReversed()])} Z` }),
    draw("path", { class: "curve", d: through(line) }),
    grip, handle, hold);

  function nearest(event) {
    const box = hold.getBoundingClientRect();
    const away = (one) => Math.abs(one.share - (event.clientX - box.left) / box.width);
    return points.reduce((best, one) => (away(one) < away(best) ? one : best)).index;
  }
  hold.addEventListener("pointerdown", (event) => {
    hold.setPointerCapture(event.pointerId);
    move(nearest(event));
  });
  hold.addEventListener("pointermove", (event) => hold.hasPointerCapture(event.pointerId) && move(nearest(event)));

  function show(at) {
    const place = x(thresholds[at].answered / questions);
    grip.setAttribute("x1", place);
    grip.setAttribute("x2", place);
    handle.setAttribute("cx", place);
    handle.setAttribute("cy", y(thresholds[at].risk ?? 0));
  }
  return { node, show };
}

export function heatmap({ rows, columns, cells }) {
  const head = make("tr", {}, make("td", { class: "none" }), columns.map((name) => make("th", { scope: "col" }, name.replaceAll("_", " "))));
  const body = rows.map((row, at) => make("tr", {}, make("th", { scope: "row" }, many(row, "hop")), cells[at].map(cell)));
  const text = "Share of questions with incomplete evidence, and the gate's estimate; wrong: answered from incomplete evidence.";
  const table = make("table", { class: "heat" }, make("caption", {}, text), make("thead", {}, head), make("tbody", {}, body));
  return make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Difficulty by hops and kind" }, table);
}

function cell({ questions, complete, p, answered, wrong }) {
  if (!questions) return make("td", { class: "none" }, "–");
  const share = 1 - complete / questions;
  return make("td", { class: "deep", "--share": Math.round(share * 100) },
    make("strong", {}, percent(share)),
    make("small", {}, `of ${questions}, gate: ${percent(1 - p)}`),
    make("small", {}, answered ? `wrong: ${wrong} of ${answered}` : "none answered"));
}
