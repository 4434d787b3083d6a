// The probability as a gauge: an arc from 0 to 1, with the interval and the gate's threshold.

import { calm, draw, percent, two } from "./dom.js";

const [X, Y, R] = [110, 108, 84];
const MOVE_MS = 650;

const point = (share, radius) => {
  const angle = Math.PI * (1 - share);
  return [X + radius * Math.cos(angle), Y - radius * Math.sin(angle)].map((one) => one.toFixed(2)).join(" ");
};
const arc = (from, to) => `M ${point(from, R)} A ${R} ${R} 0 0 1 ${point(Math.max(to, from + 0.0005), R)}`;

/** A gauge that can be moved: `gauge.show(verdict, answerAt)`. */
export function gauge() {
  const span = draw("path", { class: "span" });
  const value = draw("path", { class: "value" });
  const needle = draw("circle", { class: "needle", r: 7 });
  const mark = draw("line", { class: "at" });
  const says = draw("text", { class: "big", x: X, y: Y - 14 });
  const about = draw("text", { x: X, y: Y + 6 });
  const node = draw(
    "svg", { class: "gauge", viewBox: "0 0 220 132", role: "img" },
    draw("path", { class: "track", d: arc(0, 1) }), span, value, mark, needle, says, about,
    draw("text", { x: X - R, y: Y + 20 }, "0"), draw("text", { x: X + R, y: Y + 20 }, "1"),
  );
  let shown = 0;
  let move = 0;

  function place(p) {
    value.setAttribute("d", arc(0, p));
    const [x, y] = point(p, R).split(" ");
    needle.setAttribute("cx", x);
    needle.setAttribute("cy", y);
    says.textContent = two(p);
    shown = p;
  }

  function show(verdict, answerAt) {
    const { p_complete: p, low, high } = verdict;
    span.setAttribute("d", arc(low, high));
    about.textContent = `${two(low)} to ${two(high)}`;
    mark.setAttribute("visibility", answerAt === null ? "hidden" : "visible");
    if (answerAt !== null) {
      const [[x1, y1], [x2, y2]] = [R - 12, R + 12].map((radius) => point(answerAt, radius).split(" "));
      for (const [name, at] of Object.entries({ x1, y1, x2, y2 })) mark.setAttribute(name, at);
    }
    const threshold = answerAt === null ? "" : ` The gate answers at ${two(answerAt)} or more.`;
    node.setAttribute("aria-label", `Complete with probability ${percent(p)}, between ${percent(low)} and ${percent(high)}.${threshold}`);
    cancelAnimationFrame(move);
    if (calm()) return place(p);
    const [from, began] = [shown, performance.now()];
    const step = (now) => {
      const gone = Math.min(1, (now - began) / MOVE_MS);
      place(from + (p - from) * (1 - (1 - gone) ** 3));
      if (gone < 1) move = requestAnimationFrame(step);
    };
    move = requestAnimationFrame(step);
  }

  return { node, show };
}
