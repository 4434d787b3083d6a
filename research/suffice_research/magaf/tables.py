"""MAGAF's tables and figures; for the paper's kind of collection, its figures are beside
ours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from suffice.evaluation.gate_runs import reliability_lines
from suffice.evaluation.heatmap import Heatmap
from suffice.evaluation.metrics import Predictions, score
from suffice.evaluation.report import Cell, Plot, Table
from suffice.evaluation.retrieval_runs import RetrievalRun, retrieval_table
from suffice.evaluation.significance import Interval, interval, mean_interval
from suffice_research.curves import risk_lines, roc_lines
from suffice_research.figures import Curves, PaperBars, PaperSeries
from suffice_research.magaf import published as published_module
from suffice_research.magaf.protocol import GATE, GOLD_HOPS, GUESSED, Measurements, ModelOutput
from suffice_research.paper_features import MAGAF
from suffice_research.published import PublishedTable, beside_paper
from suffice_research.published_cells import WithPublished

__all__ = [
    "ablation",
    "by_type",
    "calibration",
    "collection",
    "decision_buckets",
    "errors",
    "importances",
    "intervals",
    "null_rejection",
    "operating",
    "predictors",
    "retrieval",
    "settings",
]

Shown = tuple[Table | Plot, ...]
CALIBRATED = "MAGAF-calibrated"
ORDER = ("auroc", "auprc", "brier", "ece", "mae")
DECISIONS = ("accuracy", "precision", "recall", "f1")
MEANS = ("top1", "metadata_overlap_avg", "graph_density_top4", "attention_entropy")
FEWEST = 5  # questions per bin of a calibration curve
HONEST = (
    "On the dotted line a probability means what it says. A dot is as large as its bin is full; bins of fewer than five "
    "questions are left out."
)
NULL_THRESHOLD = 0.5  # the paper fixes a threshold but does not state it
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)
TYPES = ("comparison", "inference", "null", "temporal")


class Setting:
    """The measurements, and whether to show the paper's figures."""

    def __init__(self, measured: Measurements, *, with_paper: bool) -> None:
        self.measured, self.with_paper = measured, with_paper
        self.where = measured.dataset.replace("_", "-")

    def title(self, number: str, what: str) -> str:
        return f"{number}. {what}" if self.with_paper else f"{what}, {self.where} (as {number})"

    def cell(
        self, figure: Interval | float | None, paper: PublishedTable, row: str, column: str
    ) -> Cell:
        published = paper.get(row, column) if self.with_paper else None
        return figure if published is None else WithPublished(figure, published)

    def marks(self, paper: PublishedTable, row: str, *columns: str) -> tuple[float | None, ...]:
        """The paper's figures for a drawing."""
        return tuple(paper.get(row, column) if self.with_paper else None for column in columns)

    def of(self, outputs: ModelOutput, metric: str) -> Interval:
        """A metric of the test part with its interval; decisions use the predictor's own
        threshold.
        """
        name = f"{metric}@{outputs.threshold!r}" if metric in DECISIONS else metric
        predictions = self.measured.predictions(outputs)
        if metric == "mae":
            predictions = Predictions(self.measured.share, outputs.p)
        return interval(predictions, name, seed=self.measured.seed)


# ---- Tables 1, 3, 8


def collection(at: Setting) -> Shown:
    """Table 1."""
    rows: list[tuple[Cell, ...]] = []
    for name, value in at.measured.counts.items():
        published = published_module.TABLE_1.get("collection", name) if at.with_paper else None
        same = (
            ""
            if published is None
            else ("the same" if round(float(value), 3) == published else "differs")
        )
        rows.append((name, _exact(value), *((_exact(published), same) if at.with_paper else ())))
    columns = ("item", "measured", *(("paper", "agreement") if at.with_paper else ()))
    return (Table(at.title("Table 1", "The collection"), columns, tuple(rows)),)


def _exact(value: float | None) -> Cell:
    return None if value is None else int(value) if float(value).is_integer() else float(value)


def _depth_curves(run: RetrievalRun, metric: str) -> Curves:
    lines = []
    for name in run.names:
        rankings = run.rankings(name)
        values = (interval(rankings, f"{metric}@{k}", seed=run.seed) for k in run.ks)
        lines.append(PaperSeries(name, tuple(values)))
    title, across = f"{metric}@k on {run.dataset}", "k (hits read)"
    return Curves(title, across, f"{metric}@k", run.ks, tuple(lines))


def retrieval(at: Setting) -> Shown:
    """Table 3 and Figure 3, and the curves behind them."""
    run, paper = at.measured.run, published_module.TABLE_3
    title = at.title("Table 3", "Retrieval at k = 2, 4, 8")
    metrics = ("recall", "complete", "ndcg", "mrr")
    if at.with_paper:
        table = beside_paper(run, metrics, paper, intervals=True, title=title)
    else:
        table = retrieval_table(run, metrics, intervals=True, title=title)
    metric = "complete@4"
    bars = tuple(
        PaperSeries(
            name,
            (interval(run.rankings(name), metric, seed=run.seed),),
            at.marks(paper, name, metric),
        )
        for name in run.names
    )
    curves = _depth_curves(run, "complete")
    lines = [
        replace(one, paper=at.marks(paper, one.name, *(f"complete@{k}" for k in curves.points)))
        for one in curves.lines
    ]
    kinds = [kind for kind in TYPES if kind != "null"]
    shares = tuple(
        tuple(score(run.rankings(name, kind=kind), "complete@4") for kind in kinds)
        for name in run.names
    )
    return (
        table,
        PaperBars(
            at.title("Figure 3", "Complete evidence among four hits"),
            metric,
            bars,
            says="Share of the questions whose evidence is all among the first four hits.",
        ),
        replace(
            curves,
            title=f"Complete evidence as more hits are read, {at.where}",
            lines=tuple(lines),
            says="Shaded: 95 % bootstrap interval over questions.",
        ),
        Heatmap(
            f"Complete evidence among four hits, by type, {at.where}",
            "share of questions with complete evidence",
            run.names,
            tuple(kinds),
            shares,
            "Where each retriever is weak. Null questions have no evidence to find.",
        ),
    )


def null_rejection(at: Setting) -> Shown:
    """The last column of Table 3: null questions whose best score is below a fixed threshold."""
    run, paper = at.measured.run, published_module.TABLE_3
    rows: list[tuple[Cell, ...]] = []
    for name in run.names:
        rankings = run.rankings(name)
        null, found = rankings.gold == 0, np.isfinite(rankings.top_score)
        low = rankings.top_score < NULL_THRESHOLD
        scaled, own, lost = (
            mean_interval(np.where(chosen, rejected, np.nan), seed=run.seed)
            for chosen, rejected in ((null, ~found), (null, low), (~null, low))
        )
        rows.append((name, at.cell(scaled, paper, name, "null_rejection"), own, lost))
    note = (
        "Normalised: the best hit of each question has score 1, as the paper has it, so that no threshold rejects a question "
        f"with a hit. Own scores: below {NULL_THRESHOLD:g} on the retriever's own scale, which for hybrid-metagraph is the "
        "normalised one. At what price: questions with an answer that the same rule rejects."
    )
    columns = ("retriever", "null rejected, normalised", "own scores", "at what price")
    title = at.title("Table 3, continued", "Null reject")
    return (Table(title, columns, tuple(rows), note),)


def settings(at: Setting) -> Shown:
    """Table 8."""
    ours = {
        "TF-IDF": "the same",
        "Graph edges": "the same, and 0.04 within 30 days (the paper's section 3.4); several shared entities weigh as one",
        "Hybrid retrieval": "the same; to normalise, parts and sum are divided by the question's highest score",
        "MAGAF classifier": "the same",
        "Calibration": "the same",
        "Data split": "the same; questions of the same words in the same part",
        "Random seed": str(at.measured.seed),
    }
    rows = tuple((name, outputs, ours[name]) for name, outputs in published_module.SETTINGS.items())
    return (Table("Table 8. Experimental settings", ("component", "paper", "here"), rows),)


# ---- Tables 4, 5, 6


def predictors(at: Setting) -> Shown:
    """Table 4 in two parts (ranking and calibration; decisions) and Figure 4."""
    paper, every = published_module.TABLE_4, at.measured.rows
    order, decided = [], []
    for name, outputs in every.items():
        count = f"{outputs.features}" if outputs.features else "own"
        order.append(
            (name, count, *(at.cell(at.of(outputs, one), paper, name, one) for one in ORDER))
        )
        figures = [at.cell(at.of(outputs, one).value, paper, name, one) for one in DECISIONS]
        decided.append((name, outputs.threshold, *figures))
    test = at.measured.complete
    note = (
        f"n = {len(test):,} questions of the test part, {test.mean():.3f} of them complete. Rows without a word are told each "
        "question's type and estimate its hop count from its words, as in the paper; 'gold hops': told both, an oracle; "
        "'predicted': both estimated; the gate is told neither. mae is against the share of evidence found."
    )
    names = list(at.measured.given)
    bars = [
        PaperSeries(
            name,
            tuple(at.of(outputs, one) for one in ("auroc", "f1")),
            at.marks(paper, name, "auroc", "f1"),
        )
        for name, outputs in every.items()
    ]
    return (
        Table(
            at.title("Table 4", "Is the evidence complete? Order and honesty"),
            ("predictor", "features", *ORDER),
            tuple(order),
            note,
        ),
        Table(
            at.title("Table 4, continued", "Decisions at the chosen threshold"),
            ("predictor", "threshold", *DECISIONS),
            tuple(decided),
            "Thresholds: the best F1 on the calibration part; GBDT-all, which the paper leaves uncalibrated, at 0.5.",
        ),
        PaperBars(
            at.title("Figure 4", "AUROC and F1 of the predictors"),
            "AUROC, F1",
            tuple(bars),
            ("AUROC", "F1"),
            says=f"The first {len(names)} are told the type, the next {len(names)} also the hop count; the others neither.",
        ),
    )


def by_type(at: Setting) -> Shown:
    """Table 5, for MAGAF-calibrated and for the gate."""
    measured, paper = at.measured, published_module.TABLE_5
    rows: list[tuple[Cell, ...]] = []
    for name, outputs in ((CALIBRATED, measured.given[CALIBRATED]), (GATE, measured.gate)):
        for kind in TYPES:
            chosen = np.array([one == kind for one in measured.kinds])
            part = Predictions(measured.complete[chosen].astype(float), outputs.p[chosen])
            metrics = (
                "positive_rate",
                f"accuracy@{outputs.threshold!r}",
                f"f1@{outputs.threshold!r}",
                "auroc",
                "brier",
            )
            cells = []
            for metric in metrics:
                column = metric.partition("@")[0]
                published = (
                    paper.get(kind, column) if at.with_paper and name == CALIBRATED else None
                )
                value = score(part, metric)
                cells.append(value if published is None else WithPublished(value, published))
            rows.append((name, kind, int(chosen.sum()), *cells))
    note = "f1 is not defined (--) where nothing is complete and nothing is decided so; the paper prints 0."
    columns = ("predictor", "type", "n", "positive_rate", "accuracy", "f1", "auroc", "brier")
    return (Table(at.title("Table 5", "By type of question"), columns, tuple(rows), note),)


def ablation(at: Setting) -> Shown:
    """Table 6 and Figure 5."""
    paper, rows, bars = published_module.TABLE_6, [], []
    for name, outputs in at.measured.ablation.items():
        figures = {one: at.of(outputs, one) for one in ("auroc", "f1", "brier", "ece")}
        rows.append(
            (
                name,
                outputs.features,
                *(at.cell(figure, paper, name, one) for one, figure in figures.items()),
            )
        )
        bars.append(
            PaperSeries(
                f"{name} ({outputs.features})", (figures["auroc"],), at.marks(paper, name, "auroc")
            )
        )
    note = "One estimator for all rows: MAGAF's forest with Platt scaling; f1 at 0.5. Types given, hops estimated."
    return (
        Table(
            at.title("Table 6", "Feature families"),
            ("features of", "count", "auroc", "f1", "brier", "ece"),
            tuple(rows),
            note,
        ),
        PaperBars(
            at.title("Figure 5", "AUROC by feature family"),
            "AUROC (bars begin at 0.5, a coin)",
            tuple(bars),
            start=0.5,
            says="Intervals that overlap widely are no order of the families.",
        ),
    )


# ---- Tables 7, 9, 10, 11


def operating(at: Setting) -> Shown:
    """Table 7."""
    measured, paper = at.measured, published_module.TABLE_7
    outputs = measured.given[CALIBRATED]
    rows: list[tuple[Cell, ...]] = []
    for label, threshold in (
        ("selected", outputs.threshold),
        *((f"{one}", one) for one in THRESHOLDS),
    ):
        moved = ModelOutput(outputs.p, threshold)
        answered = float((outputs.p >= threshold).mean())
        cells = [at.cell(at.of(moved, one).value, paper, label, one) for one in DECISIONS]
        rows.append((label, threshold, answered, *cells))
    note = f"selected: the best F1 on the calibration part{' (the paper: 0.29)' if at.with_paper else ''}."
    columns = ("threshold", "at", "answered", *DECISIONS)
    return (
        Table(
            at.title("Table 7", "MAGAF-calibrated at several thresholds"),
            columns,
            tuple(rows),
            note,
        ),
    )


def calibration(at: Setting) -> Shown:
    """Figure 6, and curves that the paper does not have: ROC, risk and coverage."""
    measured = at.measured
    shown = {
        CALIBRATED: measured.predictions(measured.given[CALIBRATED]),
        CALIBRATED + GOLD_HOPS: measured.predictions(measured.oracle[CALIBRATED]),
        CALIBRATED + GUESSED: measured.predictions(measured.predicted[CALIBRATED]),
        GATE: measured.predictions(measured.gate),
    }
    every = {
        name: measured.predictions(measured.rows[name]) for name in ("LR-text", "GBDT-all", *shown)
    }
    everyone = {name: one for name, one in measured.everyone.items() if name in shown}
    whole = reliability_lines(
        f"Calibration on all questions, {at.where}", everyone, fewest=FEWEST, says=HONEST
    )
    return (
        reliability_lines(at.title("Figure 6", "Calibration"), shown, fewest=FEWEST, says=HONEST),
        *((whole,) if everyone else ()),
        roc_lines(f"ROC, {at.where}", every, says="The dotted line is a coin."),
        risk_lines(
            f"Risk and coverage, {at.where}",
            every,
            says="If the surest questions are answered first: how many of the answered lack evidence.",
        ),
    )


def intervals(at: Setting) -> Shown:
    """Table 9."""
    outputs = at.measured.given[CALIBRATED]
    rows: list[tuple[Cell, ...]] = []
    for metric in ("auroc", "f1"):
        found = at.of(outputs, metric)
        printed = published_module.TABLE_9.figures[metric]
        published = Interval(printed["value"], printed["low"], printed["high"])
        rows.append((metric, found, *((published,) if at.with_paper else ())))
    columns = ("metric", "measured", *(("paper",) if at.with_paper else ()))
    note = "1,000 resamples of the test questions."
    return (
        Table(
            at.title("Table 9", "Bootstrap intervals of MAGAF-calibrated"),
            columns,
            tuple(rows),
            note,
        ),
    )


def decision_buckets(measured: Measurements) -> dict[str, npt.NDArray[np.bool_]]:
    """The test questions by the outcome of MAGAF-calibrated's decision at its threshold."""
    outputs = measured.given[CALIBRATED]
    decided = outputs.p >= outputs.threshold
    return {
        "false positive": decided & ~measured.complete,
        "false negative": ~decided & measured.complete,
        "correct": decided == measured.complete,
    }


def errors(at: Setting) -> Shown:
    """Table 10."""
    measured, paper = at.measured, published_module.TABLE_10
    buckets = decision_buckets(measured)
    places = {one.name: place for place, one in enumerate(MAGAF)}
    rows: list[tuple[Cell, ...]] = []
    for name, chosen in buckets.items():
        values = [np.where(chosen, measured.features[:, places[one]], np.nan) for one in MEANS]
        means = [mean_interval(one, seed=measured.seed) for one in values]
        cells = [at.cell(mean, paper, name, one) for mean, one in zip(means, MEANS)]
        rows.append((name, int(chosen.sum()), *cells))
    counts = ", ".join(f"{name} {int(paper.figures[name]['n'])}" for name in buckets)
    note = f"The paper's counts: {counts}." if at.with_paper else ""
    columns = ("decision", "n", *MEANS)
    return (
        Table(
            at.title("Table 10", "Errors of MAGAF-calibrated at its threshold"),
            columns,
            tuple(rows),
            note,
        ),
    )


def importances(at: Setting) -> Shown:
    """Table 11 and Figure 7: the paper's top twelve features, and any others in our top twelve."""
    found, paper = at.measured.importances, published_module.TABLE_11
    first = sorted(found, key=lambda name: -found[name])[:12]
    names = sorted(
        {*first, *(paper.figures if at.with_paper else ())}, key=lambda name: -found[name]
    )
    rows = tuple((name, at.cell(found[name], paper, name, "importance")) for name in names)
    bars = tuple(
        PaperSeries(name, (Interval(found[name]),), at.marks(paper, name, "importance"))
        for name in names
    )
    note = "Mean decrease in impurity over MAGAF's forest, types given, hops estimated."
    return (
        Table(at.title("Table 11", "Importances"), ("feature", "importance"), rows, note),
        PaperBars(
            at.title("Figure 7", "Importances"), "share of the forest's decrease in impurity", bars
        ),
    )
