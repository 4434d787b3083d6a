// Report: is the gate honest, what would another threshold come to, what can be promised, where is it hard, has it drifted?

import { calibration, heatmap, riskCoverage } from "./charts.js";
import { get } from "./doors.js";
import { byId, empty, heading, make, many, percent, tell, two } from "./make.js";

const MAKE = "suffice evaluate gate --dataset FORMAT --path FILE --out run.json\nsuffice serve --report run.json";
const HOW = "Judge a gate on questions whose evidence is known, and start the service with the run:";
const NO_RUN = ["There is no run to show yet.", HOW, MAKE];
const WIDEST = 640;

export async function reportView() {
  const [problem, result] = [byId("report-problem"), byId("report-result")];
  try {
    const { run, drift } = await get("v1/report");
    const width = Math.min(WIDEST, Math.max(result.clientWidth, 280));
    const shown = run === null || !run.questions ? [empty(...NO_RUN)] : parts(run, width);
    result.replaceChildren(...shown.filter(Boolean), heading("Drift"), ...drifts(drift));
  } catch (error) {
    tell(problem, error);
  }
}

function parts(run, width) {
  const { auroc, brier, ece } = run.figures;
  const told = (value) => (value === null ? "–" : two(value));
  const share = percent(run.complete / run.questions);
  return [
    make("p", {},
      `${run.dataset}, ${run.retriever}, the first ${many(run.k, "hit")}: ${many(run.questions, "question")}, `,
      `of which ${share} had complete evidence. Gate: ${run.gate}.`),
    run.seen ? make("p", { class: "notice" }, `It was fitted on ${many(run.seen, "question")} of these: on new ones it is less good.`) : null,
    heading("Is it honest?"),
    make("p", { class: "soft" },
      "Where it says 70 %, seven of ten should be complete; on the dashed line it would be perfect. ",
      "Pale: fewer than ten questions. ",
      `AUROC ${told(auroc)}, Brier ${told(brier)}, calibration error ${told(ece)} (${told(run.ece_by_chance)} by chance alone).`),
    calibration(run.calibration, width),
    heading("From where on to answer?"),
    ...threshold(run, width),
    heading("Where is it hard?"),
    heatmap(run.difficulty),
  ];
}

/** The threshold, moved by pointer on the chart or by keys on the slider, and everything that follows from it. */
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
    slider.setAttribute("aria-valuetext", `answer from ${two(one.at)} on: ${percent(one.answered / run.questions)} answered`);
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
      "The line is what these questions came to, the band what they bear out with confidence. ",
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

/** What was seen, and the smallest share that the test behind `suffice fit --policy risk` bears out at this threshold or below. */
function promise(run, one) {
  const sure = percent(run.confidence);
  const wrong = `Of ${many(one.answered, "answered question")}, ${percent(one.risk ?? 0)} had incomplete evidence.`;
  const seen = one.answered ? wrong : "Nothing is answered here.";
  const best = one.answered ? run.promises.find((each) => each.answer_at !== null && each.answer_at <= one.at) : null;
  const can = best
    ? `The promise that can be kept: among answered, at most ${percent(best.alpha)} are incomplete, with confidence ${sure}.`
    : `No promise can be kept here with confidence ${sure}: too many are incomplete, or too few questions tell.`;
  const from = best && one.at - best.answer_at > 0.01;
  const lower = from ? make("p", {}, `It holds from ${two(best.answer_at)} on, which answers ${percent(best.coverage)}.`) : null;
  const when = "For new questions like these, and for a share that was chosen before looking at them.";
  return [make("p", {}, seen), make("p", {}, make("strong", {}, can)), lower, make("p", { class: "soft small" }, when)].filter(Boolean);
}

const FEW = "Too few checks have come by to tell whether questions have moved since the fit. A worker looks at one in a while.";
const ACTIONS = ["answer", "expand", "abstain"];

function drifts(told) {
  if (!told.length) return [make("p", { class: "soft" }, FEW)];
  return told.flatMap(({ gate, words, recalibrate, actions_then: then, actions_now: now, ...drift }) => [
    make("p", { class: recalibrate ? "notice" : "" }, told.length > 1 ? `${gate}: ${words}` : words),
    moved(drift),
    make("p", { class: "soft small" },
      `Then and now: ${ACTIONS.map((name) => `${name} ${percent(then[name] ?? 0)} → ${percent(now[name] ?? 0)}`).join(", ")}.`),
  ]);
}

function moved({ questions, features }) {
  const head = make("tr", {}, ["feature", "stability index", "Kolmogorov's distance"].map((name) => make("th", { scope: "col" }, name)));
  const row = (one) => [make("th", { scope: "row" }, one.feature), make("td", {}, two(one.psi)), make("td", {}, two(one.ks))];
  const rows = features.map((one) => make("tr", {}, row(one)));
  const says = `The most moved of what the gate looks at, over ${many(questions, "recent check")} of this worker; from 0.25 on it is much.`;
  return make("div", { class: "wide" }, make("table", {}, make("caption", {}, says), make("thead", {}, head), make("tbody", {}, rows)));
}
