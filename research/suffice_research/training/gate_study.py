"""The gate's figures as one study: the shipped gate on new questions of its training sets and on
domains that neither it nor the reader has seen; a gate fitted on one data set, and its promise; and
a gate on a left-out data set.

Every target is shown beside the measured figure. `suffice_research.training.gate` runs the study;
research/results/gate.md and the model cards are generated from its document.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.gate_evaluation import (
    Fit,
    cross_validate_gate,
    gate_inputs,
    grouped_folds,
)
from suffice.evaluation.metrics import Predictions, ece_by_chance, score
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import RetrievedQuestion
from suffice.evaluation.significance import interval
from suffice.gate.extraction import reader_input
from suffice.gate.gate import Gate
from suffice.gate.hits import normalize_hits
from suffice.gate.reader import Reader
from suffice.numeric import sigmoid
from suffice.protocols import Reranker
from suffice.storage import package_versions
from suffice.types import LOW_FAMILIARITY, Action
from suffice_research.baselines import (
    CROSS_ENCODED,
    baseline_predictions,
    cross_encoder_figures,
)
from suffice_research.published_cells import WithPublished
from suffice_research.study import Study
from suffice_research.training.gate_data import join_hits, with_file_names, without_titles
from suffice_research.training.interval_coverage import (
    GROUP,
    GroupCoverage,
    coverage,
    together,
)
from suffice_research.training.promise import PromiseResult, check_promise

__all__ = [
    "FITTED_SAYS",
    "FLOORS",
    "THREE",
    "WITHOUT_TITLES_LOSS",
    "FoldResult",
    "JudgedLists",
    "Material",
    "fitted_table",
    "gate_study",
    "run_folds",
    "shipped_lists",
]

Floats = npt.NDArray[np.floating[Any]]
Say = Callable[[str], None]
Recipe = Callable[[Mapping[str, Sequence[RetrievedQuestion]]], Gate]  # from lists by data set
FOLDS = 5
THREE = ("hotpotqa", "2wikimultihopqa", "musique")
# Target AUROC by preset: fitted on the set itself, and with the set left out.
FLOORS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "fast": {
        "shipped": {},
        "unseen": {},
        "drawn": {},
        "fitted": {"hotpotqa": 0.89, "2wikimultihopqa": 0.96, "musique": 0.80, "frames": 0.82},
        "left out": dict.fromkeys(THREE, 0.80),
    },
    "standard": {
        "shipped": {
            "hotpotqa": 0.91,
            "2wikimultihopqa": 0.985,
            "musique": 0.83,
            "squad2": 0.88,
            "squad2, drawn": 0.88,
            "policyqa": 0.85,
            "policyqa, drawn": 0.85,
            "everyday": 0.75,
        },
        "unseen": dict.fromkeys(("everyday/legal_finance", "everyday/home_texts"), 0.75),
        "drawn": {"everyday": 0.70, "everyday, one document": 0.85},
        "fitted": {"hotpotqa": 0.94, "2wikimultihopqa": 0.99, "musique": 0.87},
        "left out": {},
    },
}
ECE_FLOOR = 0.03
WITHOUT_TITLES_LOSS = 0.03  # maximum loss of AUROC


@dataclass(frozen=True)
class Material:
    """The input of a study: lists to train on, and cases to evaluate on, by data set."""

    preset: str
    gate: Gate  # the shipped one
    training: Mapping[str, Sequence[RetrievedQuestion]]
    judged: Mapping[str, Sequence[RetrievedQuestion]]  # new questions of these sets
    unseen: Sequence[tuple[str, Mapping[str, Sequence[RetrievedQuestion]]]]
    folds: Mapping[str, Sequence[RetrievedQuestion]]  # to fit by folds
    recipe: Recipe
    fit: Fit  # fits a gate on one data set's examples
    baselines: Sequence[str] | None = None  # by name; None: all
    reranker: Reranker | None = None
    seed: int = 42
    data: Mapping[str, str] = field(default_factory=dict)  # file -> sha256
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FoldResult:
    """One data set by folds: probabilities of the gate and the baselines, and kept promises."""

    name: str
    predictions: Predictions
    answered: Floats
    baselines: Mapping[str, Floats]
    kept: Sequence[PromiseResult]


def gate_study(material: Material, say: Say) -> Study:
    """Measure everything; `say` reports each figure as it is computed."""
    started = time.perf_counter()
    fitted = []
    shipped = [_judge_shipped(material, one, say) for one in shipped_lists(material)]
    for name, cases in material.folds.items():
        fitted.append(
            run_folds(
                name, cases, material.fit,
                baselines=material.baselines, reranker=material.reranker, seed=material.seed,
            )
        )  # fmt: skip
        say(f"fitted on folds of {name}: AUROC {_auroc(fitted[-1].predictions):.3f}")
    halfway = time.perf_counter()
    left_out = {}
    for name, cases in material.folds.items():
        rest = {other: lists for other, lists in material.training.items() if other != name}
        p = material.recipe(rest).probabilities(gate_inputs(cases))
        left_out[name] = Predictions([float(case.complete) for case in cases], p)
        say(f"without {name}: AUROC {_auroc(left_out[name]):.3f}")
    return Study(
        name=f"gate-{material.preset}",
        title=f"The gate, preset {material.preset}",
        seed=material.seed,
        settings={"preset": material.preset, "folds": FOLDS, **material.settings},
        data=material.data,
        sections=(
            Section(
                "As it ships",
                (_shipped_table(shipped), _interval_table(shipped), _beside_table(shipped)),
                SHIPPED_SAYS,
            ),
            *(_fitted_sections(fitted, left_out, material) if fitted else ()),
        ),
        timings={"fitted": halfway - started, "left out": time.perf_counter() - halfway},
        commit=source_commit(),
        packages=package_versions(),
    )


def _fitted_sections(
    fitted: Sequence[FoldResult], left_out: Mapping[str, Predictions], material: Material
) -> Iterator[Section]:
    tables = fitted_table(fitted, material.preset), _baseline_table(fitted)
    yield Section("Fitted on one data set", tables, FITTED_SAYS)
    yield Section("The promise", (_promise_table(fitted),), PROMISE_SAYS)
    table = _left_out_table(left_out, material)
    yield Section("On a data set it has not seen", (table,), LEFT_OUT_SAYS)


# ---- the shipped gate

SHIPPED_SAYS = (
    "Ten hits of BM25 among all passages of the data set, as a user would have them; drawn: lists of one to ten hits, complete "
    "half of the time, filled up with passages that look right. File names: they stand where titles stood, and the titles in the "
    "texts. Larger chunks: up to three passages joined into one without a title. Seen: other questions of this data set were learned from. "
    "Unseen: neither the reader nor the gate has learned from the domain. In brackets: 95 % bootstrap interval over questions. "
    "Right: answered where the list is complete, not answered where it is not."
)


@dataclass(frozen=True)
class JudgedLists:
    """Lists to evaluate the shipped gate on, and the target AUROC."""

    name: str
    seen: str
    cases: Sequence[RetrievedQuestion]
    floor: float | None = None
    titled: str = ""  # the same lists with titles: the target is near their figure


@dataclass(frozen=True)
class _ShippedResult:
    lists: JudgedLists
    predictions: Predictions
    answered: Floats
    familiarity: Floats
    interval: GroupCoverage
    others: Mapping[str, Floats]  # other rankings of these lists: name -> 0 to 1 for each


def shipped_lists(material: Material) -> Iterator[JudgedLists]:
    floors = FLOORS[material.preset]
    for name, cases in material.judged.items():
        yield JudgedLists(name, "seen", cases, floors["shipped"].get(name))
        if name in THREE:
            yield JudgedLists(f"{name}, no titles", "seen", without_titles(cases), titled=name)
    everyday: list[RetrievedQuestion] = []
    for name, kinds in material.unseen:
        for kind, some in kinds.items():
            if some:
                title = f"{name}, {kind}" if kind else name
                yield JudgedLists(title, "unseen", some, floors["unseen"].get(title))
        everyday += kinds["drawn"] if name.startswith("everyday") else []
    for name, some in (
        ("everyday", everyday),
        ("everyday, one document", [one for one in everyday if len(one.gold.doc_ids) == 1]),
        ("everyday, several documents", [one for one in everyday if len(one.gold.doc_ids) > 1]),
        ("everyday, no titles", without_titles(everyday)),
        ("everyday, file names", [with_file_names(one) for one in everyday]),
        ("everyday, larger chunks", [join_hits(one) for one in everyday]),
    ):
        if some:
            yield JudgedLists(f"{name}, drawn", "unseen", some, floors["drawn"].get(name))


def _judge_shipped(material: Material, lists: JudgedLists, say: Say) -> _ShippedResult:
    cases, gate = lists.cases, material.gate
    verdicts = gate.check_batch(gate_inputs(cases), explain=False)
    complete = np.array([case.complete for case in cases], dtype=float)
    found = Predictions(complete, [one.p_complete for one in verdicts])
    answered = np.array([one.action is Action.ANSWER for one in verdicts], dtype=float)
    others: dict[str, Floats] = {}
    if gate.readers.reader is not None:
        others["the reader alone"] = sigmoid(_read_complete(gate, gate.readers.reader, cases))
    if material.reranker is not None:
        figures = sigmoid(cross_encoder_figures(cases, material.reranker))
        others |= {name: figures[:, at] for at, (name, _) in enumerate(CROSS_ENCODED)}
    say(f"{lists.name} ({lists.seen}): AUROC {_auroc(found):.3f} ECE {score(found, 'ece'):.3f}")
    familiarity = np.array([one.familiarity for one in verdicts])
    low, high = (
        np.array([getattr(one.estimate, end) for one in verdicts], dtype=float)
        for end in ("low", "high")
    )
    covered = coverage(found.probabilities, (low, high), complete.astype(bool))
    return _ShippedResult(lists, found, answered, familiarity, covered, others)


def _read_complete(gate: Gate, reader: Reader, cases: Sequence[RetrievedQuestion]) -> Floats:
    """The reader's log-odds that each list is complete."""
    lists = [normalize_hits(*pair[:2], k=gate.card["k"]) for pair in gate_inputs(cases)]
    return np.array([reader.read(*reader_input(one)).complete for one in lists])


def _shipped_table(found: Sequence[_ShippedResult]) -> Table:
    by_name = {one.lists.name: one for one in found}
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        lists, predictions, complete = one.lists, one.predictions, one.predictions.labels
        floor = lists.floor
        if lists.titled:
            floor = _auroc(by_name[lists.titled].predictions) - WITHOUT_TITLES_LOSS
        shares = [
            float(one.answered[complete == label].mean()) if (complete == label).any() else None
            for label in (1.0, 0.0)
        ]
        right = float((one.answered == complete).mean())
        auroc = WithPublished(interval(predictions, "auroc"), floor)
        about = (lists.name, lists.seen, len(predictions), _share(predictions))
        rows.append(
            (*about, auroc, *_ece(predictions), *shares, right, float(one.familiarity.mean()))
        )
    columns = (
        "data set", "seen", "n", "complete", "AUROC", "ECE", "ECE by chance",
        "answered of complete", "answered of incomplete", "right", "familiarity",
    )  # fmt: skip
    return Table("Shipped", columns, tuple(rows))


def _interval_table(found: Sequence[_ShippedResult]) -> Table:
    """Familiarity, and how many groups of verdicts the interval covers."""
    rows: list[tuple[Cell, ...]] = []
    for seen in dict.fromkeys(one.lists.seen for one in found):
        some = [one for one in found if one.lists.seen == seen]
        for one in some:
            low = float((one.familiarity < LOW_FAMILIARITY).mean())
            covered = (one.interval.groups, one.interval.covered, one.interval.width)
            rows.append((one.lists.name, seen, len(one.predictions), low, *covered))
        every = together([one.interval for one in some])
        rows.append((f"all {seen}", seen, None, None, every.groups, every.covered, every.width))
    columns = ("data set", "seen", "n", "low familiarity", "groups", "covered", "width")
    note = (
        f"A group is {GROUP} verdicts or a few more with neighbouring p. It is covered where its share of complete lists lies in "
        f"its mean interval; the share of so few lists is itself off by up to 0.1. Low: familiarity below {LOW_FAMILIARITY}."
    )
    return Table("Shipped, familiarity and interval", columns, tuple(rows), note)


def _beside_table(found: Sequence[_ShippedResult]) -> Table:
    """AUROC of the gate and of other rankings of the same lists."""
    names = list(dict.fromkeys(name for one in found for name in one.others))
    rows: list[tuple[Cell, ...]] = [
        (
            one.lists.name,
            one.lists.seen,
            _auroc(one.predictions),
            *(_auroc(Predictions(one.predictions.labels, one.others[name])) for name in names),
        )
        for one in found
    ]
    note = "AUROC on the lists above. The cross-encoder: its best hit, the mean of its hits, and all hits as one text."
    columns = ("data set", "seen", "the gate", *names)
    return Table("Shipped, beside others", columns, tuple(rows), note)


# ---- fitted

FITTED_SAYS = (
    f"{FOLDS} folds over questions: a gate fitted, calibrated and given its policy on four, judged on the fifth. "
    "In brackets: 95 % bootstrap interval over questions. In parentheses: the figure to reach, and how far above it."
)
PROMISE_SAYS = (
    "The threshold is chosen on one random half of these out-of-fold probabilities and counted on the other, 200 times; delta "
    "0.1. Exceeded: the counted share of incomplete among the answered was above alpha. Broken: by more than chance allows "
    "in a part of that size (exact binomial test, 5 %)."
)


def run_folds(
    name: str,
    cases: Sequence[RetrievedQuestion],
    fit: Fit,
    *,
    baselines: Sequence[str] | None = (),
    reranker: Reranker | None = None,
    seed: int = 42,
) -> FoldResult:
    """Gates fitted on four fifths of these questions and evaluated on the rest; with baselines by
    name, or all with None.
    """
    texts = [case.question.text for case in cases]
    complete = np.array([case.complete for case in cases], dtype=bool)
    folds = grouped_folds(texts, complete, FOLDS, seed)
    verdicts = cross_validate_gate(cases, folds, fit)
    beside = baseline_predictions(cases, folds, names=baselines, reranker=reranker, seed=seed)
    answered = np.array([action == "answer" for action in verdicts.actions], dtype=float)
    predictions = Predictions(complete.astype(float), verdicts.p)
    return FoldResult(
        name,
        predictions,
        answered,
        beside,
        check_promise(verdicts.p, complete, texts, seed=seed),
    )


def fitted_table(fitted: Sequence[FoldResult], preset: str) -> Table:
    floors = FLOORS[preset]["fitted"]
    rows: list[tuple[Cell, ...]] = []
    for one in fitted:
        auroc = WithPublished(interval(one.predictions, "auroc"), floors.get(one.name))
        rest = [score(one.predictions, name) for name in ("auprc", "brier", "aurc")]
        wrong = float(
            ((1 - one.predictions.labels) * one.answered).sum() / max(one.answered.sum(), 1)
        )
        decisions = (wrong, float(one.answered.mean()))
        rows.append(
            (
                one.name,
                len(one.predictions),
                _share(one.predictions),
                auroc,
                *rest,
                *_ece(one.predictions),
                *decisions,
            )
        )
    columns = (
        "data set",
        "n",
        "complete",
        "AUROC",
        "AP",
        "Brier",
        "AURC",
        "ECE",
        "ECE by chance",
        "risk",
        "coverage",
    )
    note = (
        f"ECE is to be at most {ECE_FLOOR}; by chance: what such probabilities show on average if every one is true. "
        "Risk and coverage: what comes of answering where F1 says so."
    )
    return Table("Fitted", columns, tuple(rows), note)


def _baseline_table(fitted: Sequence[FoldResult]) -> Table:
    """AUROC of every predictor on every data set."""
    names = list(dict.fromkeys(name for one in fitted for name in one.baselines))
    rows: list[tuple[Cell, ...]] = [("the gate", *(_auroc(one.predictions) for one in fitted))]
    for name in names:
        rows.append(
            (
                name,
                *(
                    score(Predictions(one.predictions.labels, one.baselines[name]), "auroc")
                    for one in fitted
                ),
            )
        )
    note = "AUROC on the same folds; (oracle): told labels, types or hop counts that a gate in use does not know."
    return Table(
        "Beside the baselines", ("predictor", *(one.name for one in fitted)), tuple(rows), note
    )


def _promise_table(fitted: Sequence[FoldResult]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.name, kept.alpha, kept.exceeded, kept.broken, kept.never, kept.coverage)
        for one in fitted
        for kept in one.kept
    ]
    columns = ("data set", "alpha", "exceeded", "broken", "no threshold", "coverage")
    return Table("Promise", columns, tuple(rows))


# ---- left out

LEFT_OUT_SAYS = (
    "The shipped recipe fitted on all data sets but one, judged on that one. A reader has seen other questions of three of "
    "them: what it has not seen at all stands above."
)


def _left_out_table(left_out: Mapping[str, Predictions], material: Material) -> Table:
    floors = FLOORS[material.preset]["left out"]
    rows: list[tuple[Cell, ...]] = []
    for name, found in left_out.items():
        auroc = WithPublished(interval(found, "auroc"), floors.get(name))
        said = float(found.probabilities.mean())
        rows.append((name, len(found), _share(found), said, auroc, *_ece(found)))
    columns = ("left out", "n", "complete", "said", "AUROC", "ECE", "ECE by chance")
    note = "Said: the mean probability, which should be the share that is complete."
    return Table("Left out", columns, tuple(rows), note)


# ---- figures


def _auroc(predictions: Predictions) -> float:
    found = score(predictions, "auroc")
    return float("nan") if found is None else found


def _ece(predictions: Predictions) -> tuple[Cell, Cell]:
    return interval(predictions, "ece"), ece_by_chance(predictions.probabilities)


def _share(predictions: Predictions) -> float:
    return float(predictions.labels.mean())
