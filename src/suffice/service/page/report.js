// Report: calibration, thresholds and what they guarantee, difficulty, and drift.

import { calibration, heatmap, riskCoverage } from "./charts.js";
import { get } from "./api.js";
import { byId, emptyState, heading, make, many, percent, showError, two } from "./dom.js";

const MAKE = "suffice evaluate gate --dataset FORMAT --path FILE --out run.json\nsuffice serve --report run.json";
const HOW = "Evaluate a gate on labelled questions, and start the service with the run:";
const NO_RUN = ["There is no run to show yet.", HOW, MAKE];
const MAX_WIDTH = 640;

export async function reportView() {
  const [problem, result] = [byId("report-problem"), byId("report-result")];
  try {
    const { run, drift, drift_checks: checks, drift_from: from } = await get("v1/report");
    const width = Math.min(MAX_WIDTH, Math.max(result.clientWidth, 280));
    const shown = run === null || !run.questions ? [emptyState(...NO_RUN)] : parts(run, width);
    result.replaceChildren(...shown.filter(Boolean), heading("Drift"), ...drifts(drift, checks ?? 0, from ?? 30));
  } catch (error) {
    showError(problem, error);
  }
}

function parts(run, width) {
  const { auroc, brier, ece } = run.figures;
  const number = (value) => (value === null ? "–" : two(value));
  const share = percent(run.complete / run.questions);
  return [
    make("p", {},
      `${run.dataset}, ${run.retriever}, the first ${many(run.k, "hit")}: ${many(run.questions, "question")}, `,
      `of which ${share} had complete evidence. Gate: ${run.gate}.`),
    run.seen ? make("p", { class: "notice" }, `It was fitted on ${many(run.seen, "question")} of these: expect worse results on new ones.`) : null,
    heading("Is it calibrated?"),
    make("p", { class: "soft" },
      "Of the questions at 70 %, seven in ten should be complete: the dashed line is perfect calibration. ",
      "Pale: fewer than ten questions. ",
      `AUROC ${number(auroc)}, Brier ${number(brier)}, calibration error ${number(ece)} (${number(run.ece_by_chance)} by chance alone).`),
    calibration(run.calibration, width),
    heading("When should it answer?"),
    ...threshold(run, width),
    heading("Which questions are hard?"),
    heatmap(run.difficulty),
  ];
}

/** The threshold, moved on the chart or with the slider, and its consequences. */
function threshold(run, width) {
  const away = (at, share) => Math.abs(run.thresholds[at].at - share);
  const nearest = (share) => run.thresholds.reduce((best, _, at) => (away(at, share) < away(best, share) ? at : best), 0);
  const chart = riskCoverage(run.thresholds, run.questions, width, show);
  const last = run.thresholds.length - 1;
  const oninput = () => show(Number(slider.value));
  const slider = make("input", { type: "range", id: "threshold", min: 0, max: last, step: 1, oninput });
  const says = make("output", { for: "threshold", id: "threshold-at" });
  const split = make("div", { class: "split", "aria-hidden": "true" });
  const counts = make("dl", { class: "counts" });
  const kept = make("div", { class: "promise", id: "promise" });

  function show(at) {
    const one = run.thresholds[at];
    slider.value = at;
    slider.setAttribute("aria-valuetext", `answer at ${two(one.at)} or more: ${percent(one.answered / run.questions)} answered`);
    says.textContent = two(one.at);
    chart.show(at);
    const shares = sharesOf(one);
    split.replaceChildren(...shares.map(part));
    counts.replaceChildren(...shares.map(([kind, name, count]) => countOf(kind, name, count, run.questions)));
    kept.replaceChildren(...promise(run, one));
  }
  show(nearest(run.answer_at ?? 0.5));
  return [
    make("p", { class: "soft" },
      "The line shows these questions; the band is its confidence bound. ",
      "Drag it, or move the slider with the arrow keys."),
    chart.node,
    make("p", { class: "row" }, make("label", { for: "threshold" }, "Answer from"), says),
    slider, split, counts, kept,
    run.policy ? make("p", { class: "soft small" }, `The run's own policy: ${run.policy}`) : null,
  ];
}

const sharesOf = ({ answered, expanded, undecided, abstained }) => [
  ["answer", "answered", answered],
  ["expand", "expanded", expanded],
  ...(undecided ? [["undecided", "no longer answered", undecided]] : []),
  ["abstain", "abstained", abstained],
];

function part([kind, , count]) {
  const made = make("i", { class: kind });
  made.style.flexGrow = count;
  return made;
}

const countOf = (kind, name, count, all) =>
  make("div", { class: kind }, make("dt", {}, name),
    make("dd", {}, percent(count / all), make("span", { class: "soft small" }, ` ${count.toLocaleString("en")}`)));

/** The observed risk, and the smallest one that `suffice fit --policy risk` can guarantee at this threshold or below. */
function promise(run, one) {
  const sure = percent(run.confidence);
  const wrong = `Of ${many(one.answered, "answered question")}, ${percent(one.risk ?? 0)} had incomplete evidence.`;
  const seen = one.answered ? wrong : "Nothing is answered here.";
  const best = one.answered ? run.promises.find((each) => each.answer_at !== null && each.answer_at <= one.at) : null;
  const can = best
    ? `Guarantee: of the answered questions, at most ${percent(best.alpha)} are incomplete, with confidence ${sure}.`
    : `No guarantee with confidence ${sure}: too many are incomplete, or there are too few questions.`;
  const from = best && one.at - best.answer_at > 0.01;
  const lower = from ? make("p", {}, `It holds at ${two(best.answer_at)} or more, which answers ${percent(best.coverage)}.`) : null;
  const when = "It holds for new questions like these, if the share was chosen before looking at them.";
  return [make("p", {}, seen), make("p", {}, make("strong", {}, can)), lower, make("p", { class: "soft small" }, when)].filter(Boolean);
}

const ABOUT = "Are recent questions and hits like those the gate was fitted on? If not, its probabilities may be off.";
const NEXT = "Next: label some recent questions, and adapt the gate to them.";
const ACTIONS = ["answer", "expand", "abstain"];

const few = (checks, from) =>
  `Too few checks so far to tell: this worker has seen ${many(checks, "check")}, and ${from} are needed.`;

function drifts(found, checks, from) {
  const about = make("p", { class: "soft" }, ABOUT);
  if (!found.length) return [about, make("p", { class: "soft" }, few(checks, from))];
  return [about, ...found.flatMap(({ gate, words, recalibrate, actions_then: then, actions_now: now, ...drift }) => [
    make("p", { class: recalibrate ? "notice" : "" }, found.length > 1 ? `${gate}: ${words}` : words),
    ...(recalibrate ? [make("p", {}, NEXT)] : []),
    moved(drift),
    make("p", { class: "soft small" },
      `Then and now: ${ACTIONS.map((name) => `${name} ${percent(then[name] ?? 0)} → ${percent(now[name] ?? 0)}`).join(", ")}.`),
  ])];
}

function moved({ questions, features }) {
  const head = make("tr", {}, ["feature", "stability index", "Kolmogorov-Smirnov distance"].map((name) => make("th", { scope: "col" }, name)));
  const name = (one) => make("th", { scope: "row" }, one.feature, one.meaning ? make("span", { class: "soft small" }, ` ${one.meaning}`) : null);
  const row = (one) => [name(one), make("td", {}, two(one.psi)), make("td", {}, two(one.ks))];
  const rows = features.map((one) => make("tr", {}, row(one)));
  const text = `What moved most, over ${many(questions, "recent check")} of this worker; a stability index of 0.25 or more is much.`;
  return make("div", { class: "wide" }, make("table", {}, make("caption", {}, text), make("thead", {}, head), make("tbody", {}, rows)));
}
