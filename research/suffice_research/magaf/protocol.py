"""MAGAF's protocol on one collection: five retrievers, five predictors over the hybrid's best four
hits, and our gate.

70 % of the questions are for fitting, 15 % for calibration and threshold, 15 % for every figure.
The paper is given each question's type and estimates its hop count (*given*). Each predictor has
two more rows: with the hop count that only the data set knows (*gold hops*, an oracle), and with
the type predicted from the question's words as well (*predicted*), since it is unknown in use. The
gate is given neither, and is trained on the first two parts together.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion, split
from suffice.evaluation.gate_evaluation import grouped_folds, run_gate
from suffice.evaluation.metrics import Predictions
from suffice.evaluation.retrieval import RetrievalSettings, compare_retrievers
from suffice.evaluation.retrieval_runs import RetrievalRun
from suffice.evaluation.searching import RetrievedQuestion, retrieve_dataset, to_labelled_question
from suffice.gate.policy import choose_by_f1
from suffice.protocols import Progress
from suffice.types import Document, Evidence
from suffice_research.paper_features import MAGAF, MAGAF_KINDS, QuestionAnnotations, magaf_features
from suffice_research.paper_models import PaperModel, paper_model

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = [
    "EVERYONE",
    "GATE",
    "GOLD_HOPS",
    "GUESSED",
    "HYBRID",
    "MODELS",
    "RETRIEVERS",
    "K",
    "Measurements",
    "ModelOutput",
    "Parts",
    "features_of",
    "measure",
    "model_outputs",
    "parts_of",
    "question_annotations",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

RETRIEVERS = ("tfidf", "metadata-tfidf", "dense-proxy", "graph", "hybrid-metagraph")
HYBRID, K = "hybrid-metagraph", 4
GATE, GOLD_HOPS, GUESSED = "our gate", ", gold hops", ", predicted"
EVERYONE = 3  # folds for the figures on all questions: each needs a fit of the gate
# Folds of the fit part, so that no predictor is fitted on a type or hop count predicted by a model
# that had seen it.
FOLDS = 5
TEXT, METADATA, GRAPH, ALL = (
    9,
    16,
    17,
    20,
)  # features in MAGAF's order: how many each model uses


@dataclass(frozen=True)
class Model:
    """A predictor of the paper: what it is, which features it uses, and where its threshold comes
    from.
    """

    name: str
    classic: str
    columns: tuple[int, ...]
    calibrated: bool = False
    threshold: float | None = None  # None: the best F1 on the calibration part


MODELS = (
    Model("LR-text", "magaf-lr", tuple(range(TEXT))),
    Model("LR-metadata", "magaf-lr", tuple(range(METADATA))),
    Model("RF-no-attention", "magaf", tuple(range(GRAPH))),
    Model("GBDT-all", "magaf-gbdt", tuple(range(ALL)), threshold=0.5),
    Model("MAGAF-calibrated", "magaf", tuple(range(ALL)), calibrated=True),
)
# MAGAF's own estimator for all. The paper's F1 there must be at a fixed threshold, since it is far
# below that of its Table 4.
ABLATION = tuple(
    Model(name, "magaf", columns, calibrated=True, threshold=0.5)
    for name, columns in (
        ("text and score", tuple(range(TEXT))),
        ("+ metadata", tuple(range(METADATA))),
        ("+ graph", tuple(range(GRAPH))),
        ("+ attention", (*range(TEXT), *range(GRAPH, ALL))),
        ("full", tuple(range(ALL))),
    )
)


@dataclass(frozen=True)
class ModelOutput:
    """A predictor's output for the test part, and the probability from which it would answer."""

    p: Floats
    threshold: float
    features: int | None = None


@dataclass(frozen=True)
class Parts:
    """Rows of the three parts."""

    fit: Ints
    calibrate: Ints
    test: Ints


@dataclass(frozen=True)
class Measurements:
    """The results of the protocol on one collection. Columns are those of the test part."""

    dataset: str
    seed: int
    run: RetrievalRun  # all questions, five retrievers
    counts: Mapping[str, Any]
    parts: Parts
    complete: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]  # complete with the next four hits
    share: Floats  # of the gold found
    kinds: tuple[str, ...]
    given: Mapping[str, ModelOutput]  # types given, hops estimated: the paper's rows
    oracle: Mapping[str, ModelOutput]  # types and hops given
    predicted: Mapping[str, ModelOutput]  # types and hops estimated
    ablation: Mapping[str, ModelOutput]
    gate: ModelOutput
    actions: tuple[str, ...]
    policy: str
    features: Floats  # (test, 20), types given, hops estimated
    example: RetrievedQuestion  # from the test part, for a drawing
    top_documents: tuple[tuple[Document, ...], ...]  # the hybrid's first K for each question
    importances: Mapping[str, float]
    guessed: Mapping[str, float]  # how well types and hops are predicted
    timings: Mapping[str, float]
    everyone: Mapping[str, Predictions]  # on all questions, by folds; empty unless requested

    def predictions(self, outputs: ModelOutput) -> Predictions:
        return Predictions(self.complete.astype(float), outputs.p)

    @property
    def rows(self) -> dict[str, ModelOutput]:
        """Every predictor under its name in the tables."""
        return {
            **self.given,
            **{name + GOLD_HOPS: outputs for name, outputs in self.oracle.items()},
            **{name + GUESSED: outputs for name, outputs in self.predicted.items()},
            GATE: self.gate,
        }


def measure(
    dataset: Dataset, *, seed: int, folds: bool = True, progress: Progress | None = None
) -> Measurements:
    """Search, fit, judge: the whole protocol on one collection; with `folds` also the best rows and
    the gate on all questions.
    """
    clock = _Clock()
    run = compare_retrievers(
        dataset, RetrievalSettings(RETRIEVERS, (2, 4, 8), seed=seed), progress=progress
    )
    clock.lap("retrieval")
    cases = retrieve_dataset(dataset, [HYBRID], [K], seed=seed, progress=progress).questions(
        HYBRID, K
    )
    parts = parts_of(cases, seed)
    complete = np.array([case.complete for case in cases])
    clock.lap("cases")
    annotations, guessed = question_annotations(cases, parts, seed)
    tables = {name: features_of(cases, one) for name, one in annotations.items()}
    clock.lap("features")
    outputs = {
        name: {one.name: model_outputs(one, table, complete, parts, seed)[0] for one in MODELS}
        for name, table in tables.items()
    }
    ablation = {one.name: model_outputs(one, tables[""], complete, parts, seed) for one in ABLATION}
    clock.lap("predictors")
    gate, actions, policy = _gate(cases, parts, seed)
    clock.lap("gate")
    everyone = _on_folds(cases, tables, complete, seed, progress) if folds else {}
    clock.lap("folds")
    test = [cases[at] for at in parts.test]
    return Measurements(
        dataset=dataset.name,
        seed=seed,
        run=run,
        counts=_counts(dataset, cases),
        parts=parts,
        complete=complete[parts.test],
        after=np.array([_holds(case, case.deeper) for case in test]),
        share=np.array([_share(case) for case in test]),
        kinds=tuple(case.gold.kind or "" for case in test),
        given=outputs[""],
        oracle=outputs[GOLD_HOPS],
        predicted=outputs[GUESSED],
        ablation={name: outputs for name, (outputs, _) in ablation.items()},
        gate=gate,
        actions=actions,
        policy=policy,
        features=tables[""][parts.test],
        example=_example(test),
        top_documents=tuple(
            tuple(case.evidence.documents[hit.doc_id] for hit in case.evidence.hits[:K])
            for case in test
        ),
        importances=_importances(ablation["full"][1]),
        guessed=guessed,
        timings=clock.laps,
        everyone=everyone,
    )


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self._last = now - self._last, now


# ---- parts and labels


def parts_of(cases: Sequence[RetrievedQuestion], seed: int) -> Parts:
    """70, 15 and 15 % of the questions, each part with the same mix of types."""
    drawn = split([GoldQuestion(case.question, case.gold) for case in cases], seed=seed)
    question_ids = {
        name: {one.question.question_id for one in getattr(drawn, name)}
        for name in ("fit", "calibrate", "test")
    }
    ids = [case.question.question_id for case in cases]
    return Parts(
        **{
            name: np.flatnonzero([one in mine for one in ids])
            for name, mine in question_ids.items()
        }
    )


def _holds(case: RetrievedQuestion, hits: Sequence[Any]) -> bool:
    return bool(case.gold.doc_ids) and case.gold.doc_ids <= {hit.doc_id for hit in hits}


def _share(case: RetrievedQuestion) -> float:
    """The paper's continuous quality: the share of gold found; 0 for a null question, since none is
    rejected.
    """
    found = case.gold.doc_ids & {hit.doc_id for hit in case.evidence.hits}
    return len(found) / len(case.gold.doc_ids) if case.gold.doc_ids else 0.0


def _counts(dataset: Dataset, cases: Sequence[RetrievedQuestion]) -> dict[str, Any]:
    """Table 1."""
    documents = list(dataset.documents())
    hops = [case.gold.hops for case in cases if case.gold.doc_ids]
    return {
        "queries": len(cases),
        "documents": len(documents),
        "query types": len({case.gold.kind for case in cases}),
        "null queries": len(cases) - len(hops),
        "non-null queries": len(hops),
        "mean path length": float(np.mean(hops)),
        "two-hop paths": hops.count(2),
        "three-hop paths": hops.count(3),
        "four-hop paths": hops.count(4),
        "sources": len({one.source for one in documents if one.source}),
        "categories": len({one.category for one in documents if one.category}),
    }


def features_of(cases: Sequence[RetrievedQuestion], question_labels: QuestionAnnotations) -> Floats:
    """(cases, 20). The fifth hit is needed for its score: the gap after the fourth is a feature."""
    evidence = [
        Evidence(case.question, case.deeper[: K + 1], case.evidence.documents) for case in cases
    ]
    return magaf_features(evidence, question_labels=question_labels).astype(float)


def _example(cases: Sequence[RetrievedQuestion]) -> RetrievedQuestion:
    """The first question with some but not all of its evidence; else the first."""
    return next((case for case in cases if 0 < _share(case) < 1), cases[0])


# ---- types and hops


def question_annotations(
    cases: Sequence[RetrievedQuestion], parts: Parts, seed: int
) -> tuple[dict[str, QuestionAnnotations], dict[str, float]]:
    """Type and hop count of every question, by the suffix of the rows that use them ("" for those
    of the paper, GOLD_HOPS, GUESSED), and the quality of the predictions.

    Predictions come from the question's words, by a model of the fit part. Questions in the fit
    part are predicted by a model of its other folds; otherwise they would look too good.
    """
    from suffice.gate.question import QuestionModel, WordTable, parse_question

    words = WordTable.load()
    questions = [parse_question(case.question.text, words) for case in cases]
    kinds = [case.gold.kind for case in cases]
    targets = {
        name: np.array([kind == name for kind in kinds], dtype=float) for name in MAGAF_KINDS
    }
    targets["hops"] = np.array([case.gold.hops for case in cases], dtype=float)

    def guess(rest: Ints, held_out: Ints) -> Floats:
        fitted = QuestionModel(words).fit(
            [questions[at] for at in rest], {name: one[rest] for name, one in targets.items()}
        )
        return np.asarray(fitted.predict([questions[at] for at in held_out]), dtype=float)

    out = np.zeros((len(cases), len(targets)))
    texts = [cases[at].question.text for at in parts.fit]
    for rest, held_out in grouped_folds(texts, [False] * len(texts), FOLDS, seed):
        out[parts.fit[held_out]] = guess(parts.fit[rest], parts.fit[held_out])
    others = np.concatenate([parts.calibrate, parts.test])
    out[others] = guess(parts.fit, others)
    named = [MAGAF_KINDS[at] for at in out[:, : len(MAGAF_KINDS)].argmax(axis=1)]
    hops = np.clip(out[:, -1], 0.0, 4.0)
    right = np.array([one == kind for one, kind in zip(named, kinds)])[parts.test]
    apart = np.abs(hops - targets["hops"])[parts.test]
    guessed = {
        "type accuracy": float(right.mean()),
        "hops, mean absolute error": float(apart.mean()),
    }
    known: dict[str, tuple[Sequence[str | None], Floats]] = {
        "": (kinds, hops),
        GOLD_HOPS: (kinds, targets["hops"]),
        GUESSED: (named, hops),
    }
    labels: list[tuple[str, ...]] = [()] * len(cases)
    return {
        suffix: QuestionAnnotations(types, labels, counts.tolist())
        for suffix, (types, counts) in known.items()
    }, guessed


# ---- predictors


def model_outputs(
    model: Model, table: Floats, complete: npt.NDArray[np.bool_], parts: Parts, seed: int
) -> tuple[ModelOutput, PaperModel]:
    """A model's output for the third part, fitted and calibrated on the others; and the model."""
    columns = table[:, list(model.columns)]
    held_out = (columns[parts.calibrate], complete[parts.calibrate])
    fitted = paper_model(model.classic, seed).fit(
        columns[parts.fit], complete[parts.fit], validation=held_out if model.calibrated else None
    )
    threshold = model.threshold
    if threshold is None:
        threshold = choose_by_f1(fitted.predict(held_out[0]), held_out[1]).answer_at
    p = np.asarray(fitted.predict(columns[parts.test]), dtype=float)
    return ModelOutput(p, 1.0 if threshold is None else threshold, len(model.columns)), fitted


def _importances(fitted: PaperModel) -> dict[str, float]:
    return {one.name: float(value) for one, value in zip(MAGAF, fitted.model.feature_importances_)}


def _gate(
    cases: Sequence[RetrievedQuestion], parts: Parts, seed: int
) -> tuple[ModelOutput, tuple[str, ...], str]:
    from suffice.gate.gate import Gate

    rest = np.sort(np.concatenate([parts.fit, parts.calibrate]))
    gate: Gate = Gate.fit(
        [to_labelled_question(cases[at]) for at in rest], seed=seed, preset="fast"
    )
    judged = run_gate(gate, [cases[at] for at in parts.test])
    threshold = gate.policy.answer_at
    return (
        ModelOutput(judged.p, 1.0 if threshold is None else threshold),
        judged.actions,
        judged.policy,
    )


def _on_folds(
    cases: Sequence[RetrievedQuestion],
    tables: Mapping[str, Floats],
    complete: npt.NDArray[np.bool_],
    seed: int,
    progress: Progress | None,
) -> dict[str, Predictions]:
    """The paper's two best rows and the gate on every question, each judged by models that have not
    seen it.

    The test part is small: seven times as many questions show smaller differences. A fold is judged
    by models fitted on the others, of which the paper's predictors keep a fifth for calibration.
    """
    texts = [case.question.text for case in cases]
    models = [one for one in MODELS if one.name in ("GBDT-all", "MAGAF-calibrated")]
    p = {
        name: np.zeros(len(cases))
        for name in (*(one.name + suffix for suffix in tables for one in models), GATE)
    }
    for at, (rest, test) in enumerate(grouped_folds(texts, complete, EVERYONE, seed), start=1):
        fit, calibrate = grouped_folds([texts[one] for one in rest], complete[rest], FOLDS, seed)[0]
        parts = Parts(rest[fit], rest[calibrate], test)
        for suffix, table in tables.items():
            for one in models:
                p[one.name + suffix][test] = model_outputs(one, table, complete, parts, seed)[0].p
        p[GATE][test] = _gate(cases, parts, seed)[0].p
        if progress is not None:
            progress("judging all questions by folds", at, EVERYONE)
    return {name: Predictions(complete.astype(float), values) for name, values in p.items()}
