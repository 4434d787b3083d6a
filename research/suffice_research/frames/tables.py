"""FRAMES: the tables and figures of prediction. The paper's Tables 8 to 10 and Figures 6 to 8, then
our additions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.gate_runs import reliability_lines
from suffice.evaluation.metrics import Predictions, ece_by_chance, score
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.significance import (
    Interval,
    compare,
    interval,
    mean_interval,
    paired_difference,
)
from suffice_research.curves import risk_lines, roc_lines
from suffice_research.figures import PaperBars, PaperSeries
from suffice_research.frames import published as paper
from suffice_research.frames.gate import (
    GATE,
    GATE_TOLD,
    ExpansionResult,
    GateOutput,
    PredictedLabels,
)
from suffice_research.frames.prediction import MODELS, FoldPredictions, Importance, columns
from suffice_research.frames.retrieval import SearchResults
from suffice_research.paper_features import REASONING
from suffice_research.published import PublishedTable
from suffice_research.published_cells import WithPublished

__all__ = [
    "FramesResults",
    "calibration",
    "expansion",
    "features",
    "gate",
    "guesses_table",
    "prediction",
]

Floats = npt.NDArray[np.floating[Any]]

TOP = 12  # features shown
PARTS = 5  # groups of questions by the gate's probability
RISKS = (0.1, 0.2, 0.3, 0.4)
SETTINGS = {
    "operational": "hybrid, operational",
    "hops": "hybrid, + hop count",
    "all retrievers": "all retrievers",
    "all, by question": "all retrievers, questions kept together",
    GATE: "hybrid, our gate",
    GATE_TOLD: "hybrid, our gate, labels given",
    "labels guessed": "labels guessed",
    "labels and hops guessed": "labels and hops guessed",
}


@dataclass(frozen=True)
class FramesResults:
    """All predictions, by name: the paper's rows, those with predicted labels, the ablation's, and
    the gates'.
    """

    paper: Sequence[FoldPredictions]
    guessed: Sequence[FoldPredictions]
    ablation: Sequence[FoldPredictions]
    importances: Sequence[Importance]
    guesses: PredictedLabels
    gates: Sequence[GateOutput]
    given: Sequence[FoldPredictions]  # the gates' models, given the labels
    expanded: Sequence[ExpansionResult]

    def row(self, setting: str, model: str) -> FoldPredictions:
        rows = [
            *self.paper,
            *self.guessed,
            *self.ablation,
            *(one.row for one in self.gates),
            *self.given,
        ]
        return next(one for one in rows if (one.setting, one.model) == (setting, model))


def _model(row: FoldPredictions) -> str:
    return MODELS.get(row.model, row.model)


# ---- the paper's tables


def prediction(searched: SearchResults, found: FramesResults) -> Section:
    """Table 8 with our gate's rows, Figure 6, and all rows at a glance."""
    rows = [*found.paper, *(one.row for one in found.gates), *found.given]
    names = [(SETTINGS[row.setting], _model(row)) for row in rows]
    title = "Table 8. Is every article found? Five folds, k = 10"
    tables = _beside_paper(
        title, rows, names, ("setting", "predictor"), paper.TABLE_8, searched.seed
    )
    roc = {_model(row): row.predictions for row in found.paper if row.setting == "operational"}
    roc |= {f"our gate, {one.row.model}": one.row.predictions for one in found.gates}
    six = roc_lines(
        "Figure 6. Complete found, incomplete let through",
        roc,
        says="The paper's three operational predictors, told the reasoning labels, and our gate, told nothing.",
    )
    says = (
        "'Operational' is told the reasoning labels, '+ hop count' also how many articles there are; our gate is told neither, "
        "save in the rows 'labels given', where its model has them as further columns. "
        "The paper cuts the pooled rows into folds one by one, so that a question is learned from with one retriever and "
        "judged with another; 'kept together' does not. Brackets: 95 % bootstrap interval over questions."
    )
    return Section("Knowing beforehand", (*tables, _glance(rows, searched.seed), six), says)


def _beside_paper(
    title: str,
    rows: Sequence[FoldPredictions],
    names: Sequence[tuple[str, ...]],
    heads: tuple[str, ...],
    of: PublishedTable,
    seed: int,
) -> tuple[Table, Table]:
    """Two tables with the same rows, each narrow enough to read: ranking and probabilities, then
    decisions.
    """

    def table(what: str, metrics: Sequence[str], note: str) -> Table:
        cells: list[tuple[Cell, ...]] = [
            (
                *name,
                *(
                    WithPublished(row.figure(metric, seed), _published(of, row, metric))
                    for metric in metrics
                ),
            )
            for name, row in zip(names, rows, strict=True)
        ]
        return Table(f"{title}: {what}", (*heads, *metrics), tuple(cells), note)

    note = "In parentheses: the paper, and how far we are from it."
    return (
        table("order and probabilities", ("auroc", "auprc", "brier"), note),
        table(
            "honesty and decisions at 0.5", ("ece", "accuracy", "f1"), f"{note} It gives no ECE."
        ),
    )


def _published(of: PublishedTable, row: FoldPredictions, metric: str) -> float | None:
    found = of.get(row.name, metric)
    return of.get(row.setting, metric) if found is None else found


def _glance(rows: Sequence[FoldPredictions], seed: int) -> PaperBars:
    short = {
        "operational": "",
        "hops": " + hops",
        "all retrievers": ", all",
        "all, by question": ", all, kept",
    }
    short |= {GATE: "", GATE_TOLD: ", told"}
    bars = []
    for row in rows:
        model = (
            f"gate, {row.model}"
            if row.setting in (GATE, GATE_TOLD)
            else row.model.removeprefix("frames-").upper()
        )
        name = f"{model}{short[row.setting]}"
        bars.append(
            PaperSeries(name, (row.figure("auroc", seed),), (paper.TABLE_8.get(row.name, "auroc"),))
        )
    says = "LR, RF, GB: the paper's models. A coin has 0.5. 'Kept': all four rows of a question in one fold."
    return PaperBars("Table 8 at a glance: AUROC", "AUROC", tuple(bars), start=0.5, says=says)


def features(searched: SearchResults, found: FramesResults) -> Section:
    """Tables 9 and 10, Figure 7."""
    names = [(row.setting, str(len(columns(row.setting)))) for row in found.ablation]
    nine = _beside_paper(
        "Table 9. Parts of the features",
        found.ablation,
        names,
        ("features", "count"),
        paper.TABLE_9,
        searched.seed,
    )
    top = found.importances[:TOP]
    rest = sum(one.share.value or 0.0 for one in found.importances[TOP:])
    ten = Table(
        "Table 10. Which features the boosted trees use",
        ("feature", "share", "paper", "difference"),
        tuple(
            (one.feature, one.share, one.paper, WithPublished(one.share, one.paper).difference)
            for one in top
        ),
        "Fitted on all questions; in brackets the range over the models of the folds. '--': not among the paper's first ten. "
        f"The other {len(found.importances) - len(top)} features have {rest:.3f} together.",
    )
    seven = PaperBars(
        "Figure 7. What the boosted trees look at",
        "share of the gain",
        tuple(PaperSeries(one.feature, (one.share,), (one.paper,)) for one in top),
        says="The label 'multiple constraints' and the shape of the scores carry most, as in the paper.",
    )
    return Section("Which features carry it", (*nine, ten, seven))


def calibration(found: FramesResults) -> Section:
    """Figure 8, and the risk of answering."""
    boosted = found.row("operational", "frames-gb").predictions
    lines = {
        "gradient boosting": boosted,
        "logistic regression": found.row("operational", "frames-lr").predictions,
    }
    lines |= {f"our gate, {one.row.model}": one.row.predictions for one in found.gates}
    eight = reliability_lines(
        "Figure 8. What was said, and what came true",
        lines,
        says="On the dotted line a probability means what it says. Balanced class weights make the paper's logistic regression "
        "promise too much; its boosted trees, and our gate, do not.",
    )
    risk = risk_lines(
        "Risk and coverage",
        {**lines, "boosting, told the hops": found.row("hops", "frames-gb").predictions},
        says="Answering the surest questions first: how many of the answered lack an article.",
    )
    return Section("Honest probabilities", (eight, risk))


# ---- beyond the paper


def guesses_table(searched: SearchResults, found: FramesResults) -> Section:
    """Oracle and deployable side by side, and the quality of the predictions."""
    metrics = ("auroc", "auprc", "brier", "ece")
    settings = {
        "labels told": "operational",
        "labels guessed": "labels guessed",
        "labels and hops told": "hops",
        "labels and hops guessed": "labels and hops guessed",
    }
    rows: list[tuple[Cell, ...]] = []
    for model, printed in MODELS.items():
        for name, setting in settings.items():
            row = found.row(setting, model)
            rows.append((printed, name, *(row.figure(metric, searched.seed) for metric in metrics)))
    note = "Told: from the data set's annotations. Guessed: from the question's words, by a model of the other folds."
    side = Table(
        "Told (oracle) and guessed (deployable)",
        ("predictor", "knows", *metrics),
        tuple(rows),
        note,
    )
    says = "What the paper's predictor is told about a question, no gate in use would know."
    return Section("Told or guessed", (side, _guess_quality(searched, found.guesses)), says)


def _guess_quality(searched: SearchResults, made: PredictedLabels) -> Table:
    cases = searched.cases()
    rows: list[tuple[Cell, ...]] = []
    for at, label in enumerate(REASONING):
        truth = np.array(
            [label in {one.casefold() for one in case.gold.labels} for case in cases], dtype=float
        )
        rows.append(
            (
                label,
                "AUROC",
                interval(Predictions(truth, made.columns[:, at]), "auroc", seed=searched.seed),
                0.5,
            )
        )
    hops = np.array([case.gold.hops for case in cases], dtype=float)
    off = mean_interval(np.abs(made.columns[:, -1] - hops), seed=searched.seed)
    rows.append(("hop count", "mean distance", off, float(np.abs(np.median(hops) - hops).mean())))
    rows.append(
        (
            "hop count",
            "rank correlation",
            Interval(_rank_correlation(made.columns[:, -1], hops)),
            0.0,
        )
    )
    note = "Without a look: a coin, the median of all questions, any constant."
    return Table(
        "How good the guesses are",
        ("of", "measure", "guessed", "without a look"),
        tuple(rows),
        note,
    )


def _rank_correlation(some: Floats, others: Floats) -> float | None:
    """Spearman's correlation; None if one of them does not vary."""
    from scipy.stats import rankdata

    if not np.ptp(some) or not np.ptp(others):
        return None
    return float(np.corrcoef(rankdata(some), rankdata(others))[0, 1])


def gate(searched: SearchResults, found: FramesResults) -> Section:
    """Our gate against the paper's hybrid rows, paired; and how much can be answered at a given
    risk.
    """
    rivals = [row for row in found.paper if row.setting in ("operational", "hops")]
    rivals += [row for row in found.guessed if row.setting == "labels and hops guessed"]
    return Section(
        "Our gate against the paper's predictors",
        (
            *(_paired(one.row, rivals, searched.seed) for one in found.gates),
            _answered(found),
            _honesty(found, searched.seed),
        ),
        "The gate is fitted on the other folds from questions, hits and gold; it is judged on questions and hits alone.",
    )


def _paired(ours: FoldPredictions, rivals: Sequence[FoldPredictions], seed: int) -> Table:
    metrics = ("auroc", "brier", "ece")
    rows: list[tuple[Cell, ...]] = [
        (
            SETTINGS[rival.setting].removeprefix("hybrid, "),
            _model(rival),
            *(
                compare(ours.predictions, rival.predictions, metric, seed=seed)
                for metric in metrics
            ),
        )
        for rival in rivals
    ]
    note = (
        "Paired bootstrap over questions, 95 % interval. Higher AUROC is better, lower Brier and ECE are. Operational rows are "
        "told the labels, '+ hop count' rows the answer to how many articles are needed."
    )
    return Table(
        f"Our gate ({ours.model}) less each predictor",
        ("told", "predictor", *metrics),
        tuple(rows),
        note,
    )


def _shown(found: FramesResults) -> Mapping[str, Predictions]:
    """The predictors that a user might choose between, and the oracle."""
    rows = {
        "gate, ": [one.row for one in found.gates],
        "": [row for row in found.paper if row.setting == "operational"],
    }
    rows["guessed, "] = [row for row in found.guessed if row.setting == "labels and hops guessed"]
    rows["oracle, "] = [row for row in found.paper if row.setting == "hops"]
    return {f"{kind}{_model(row)}": row.predictions for kind, part in rows.items() for row in part}


def _answered(found: FramesResults) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, *(score(one, f"coverage_at_risk@{risk}") for risk in RISKS), score(one, "aurc"))
        for name, one in _shown(found).items()
    ]
    head = tuple(f"at most {risk:.0%}" for risk in RISKS)
    note = "Largest share answered while at most so many of the answered lack an article. aurc: mean risk over all shares."
    return Table(
        "How many questions can be answered at a risk",
        ("predictor", *head, "aurc"),
        tuple(rows),
        note,
    )


def _honesty(found: FramesResults, seed: int) -> Table:
    rows = tuple(
        (
            name,
            interval(one, "ece", seed=seed),
            ece_by_chance(one.probabilities, seed=seed),
            float(one.probabilities.mean()),
        )
        for name, one in _shown(found).items()
    )
    note = "By chance: the ECE that the same probabilities would show if each of them were true."
    return Table(
        "Do the probabilities mean what they say?",
        ("predictor", "ece", "by chance", "mean p"),
        rows,
        note,
    )


def expansion(searched: SearchResults, found: FramesResults) -> Section:
    """The value of one expansion, by kind and by the gate's probability."""
    says = "What another look adds to ten titles: further down the same list, elsewhere, or for what the gate finds missing."
    return Section(
        "One expansion",
        (_by_kind(found.expanded, searched.seed), *_by_probability(found, searched.seed)),
        says,
    )


def _by_kind(expanded: Sequence[ExpansionResult], seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for at, one in enumerate(expanded):
        gain = paired_difference(one.complete, expanded[0].complete, seed=seed) if at else None
        rows.append((one.name, one.titles, mean_interval(one.complete, seed=seed), gain))
    note = (
        "Next titles: of the same list. Other retrievers: the ten titles of each of the paper's other three. Gate's queries: "
        "at most ten titles found by the queries that the gate proposes. Gain: paired, over the same questions."
    )
    return Table(
        "The value of one expansion",
        ("expansion", "titles read", "complete", "gain"),
        tuple(rows),
        note,
    )


def _by_probability(found: FramesResults, seed: int) -> tuple[Table, PaperBars]:
    """Fifths of the questions by the gate's probability, highest first: how many are complete
    before and after.
    """
    p = found.gates[0].row.predictions.probabilities
    part = np.argsort(np.argsort(-p, kind="stable"), kind="stable") * PARTS // len(p)
    bars: list[PaperSeries] = []
    rows: list[tuple[Cell, ...]] = []
    for at in range(PARTS):
        in_part = part == at
        span = f"{p[in_part].min():.2f} to {p[in_part].max():.2f}"
        shares = [mean_interval(one.complete[in_part], seed=seed) for one in found.expanded]
        rows.append((span, int(in_part.sum()), *(share.value for share in shares)))
        bars.append(PaperSeries(f"p {span}", (shares[0], shares[1])))
    heads = ("p of the gate", "questions", *(one.name for one in found.expanded))
    note = "Share of the questions that are complete, in fifths by the gate's probability."
    figure = PaperBars(
        "Complete before and after the next ten titles",
        "share of questions that are complete",
        tuple(bars),
        ("ten titles", "twenty"),
        says="Fifths of the questions by the gate's probability. A longer list helps few; the gate knows which sets are whole.",
    )
    return Table("By what the gate said before", heads, tuple(rows), note), figure
