"""FRAMES, beyond the paper: labels and hop count predicted instead of given, our gate on the same
folds, and the value of expansion.

The paper's predictor is given each question's reasoning labels and, in its second setting, how many
articles it needs. A gate in use knows neither. Here both are predicted from the question's words by
a model fitted on the other folds. It is never evaluated on rows it was trained on, and its
predictions for the rows that a predictor is fitted on come from folds within those. The gate sees
only questions and hits; labels and hops of the other folds are part of its training data. One more
row shows what it would gain from knowing the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.evaluation.metrics import Predictions
from suffice.evaluation.searching import RetrievedQuestion, to_labelled_question
from suffice.gate.calibration import Platt
from suffice.gate.extraction import NO_READERS
from suffice.gate.features import Feature
from suffice.gate.gate import FAST
from suffice.gate.question import QuestionModel, WordTable, parse_question
from suffice.gate.training import build_training_set
from suffice.protocols import Progress
from suffice.registry import RETRIEVERS
from suffice_research.frames.prediction import (
    MODELS,
    FoldPredictions,
    Folds,
    complete_of,
    folds_of,
    informed_features,
    out_of_fold,
)
from suffice_research.frames.retrieval import HYBRID, NAMES, K, SearchResults
from suffice_research.paper_features import FRAMES, FRAMES_WITH_HOPS, REASONING

if TYPE_CHECKING:
    from suffice.types import Verdict

__all__ = [
    "ExpansionResult",
    "GateOutput",
    "PredictedLabels",
    "expansions",
    "gate_on_folds",
    "guessed_rows",
    "informed_gate_on_folds",
    "predict_labels",
]

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]


# ---- predicted labels


@dataclass(frozen=True)
class PredictedLabels:
    """What a question seems to ask for. `columns`: REASONING and the hop count, out of fold:
    (questions, 6).

    `tables` are the paper's 19 features with predictions in place of given values, one table for
    each fold.
    """

    columns: Floats
    tables: Sequence[Floats]


def predict_labels(searched: SearchResults, folds: Folds) -> PredictedLabels:
    """Predict labels and hops of every question from its words, without its own fold."""
    cases, complete = searched.cases(), complete_of(searched.cases())
    words = WordTable.load()
    questions = [parse_question(case.question.text, words) for case in cases]
    labels = [{label.casefold() for label in case.gold.labels} for case in cases]
    wanted = {label: np.array([label in one for one in labels], dtype=float) for label in REASONING}
    # A few questions need twenty articles; logarithms keep them from dominating.
    wanted["hops"] = np.log([max(case.gold.hops, 1) for case in cases])

    def learned(rest: Sequence[int], held_out: Sequence[int]) -> Floats:
        model = QuestionModel(words).fit(
            [questions[at] for at in rest], {name: column[rest] for name, column in wanted.items()}
        )
        predicted = model.predict([questions[at] for at in held_out])
        return np.column_stack([np.clip(predicted[:, :-1], 0, 1), np.exp(predicted[:, -1])])

    whole, tables, given = np.zeros((len(cases), len(wanted))), [], informed_features(cases)
    for rest, held_out in folds:
        columns = np.zeros_like(whole)
        columns[held_out] = whole[held_out] = learned(rest.tolist(), held_out.tolist())
        inner = folds_of([cases[at].question.text for at in rest], complete[rest], searched.seed)
        for fit_on, left in inner:
            columns[rest[left]] = learned(rest[fit_on].tolist(), rest[left].tolist())
        tables.append(_replaced(given, columns))
    return PredictedLabels(whole, tables)


def _replaced(table: Floats, columns: Floats) -> Floats:
    """The features with predicted labels, their sum as the number of labels, and the predicted hop
    count.
    """
    names = [one.name for one in FRAMES_WITH_HOPS]
    first = names.index(f"is_{REASONING[0].replace(' ', '_')}")
    out = table.copy()
    out[:, first : first + len(REASONING)] = columns[:, :-1]
    out[:, names.index("reasoning_labels")] = columns[:, :-1].sum(axis=1)
    out[:, names.index("gold_hops")] = columns[:, -1]
    return out


def guessed_rows(
    searched: SearchResults, folds: Folds, guesses: PredictedLabels
) -> list[FoldPredictions]:
    """The paper's models with what a gate in use could know: predicted labels, and also a predicted
    hop count.
    """
    complete = complete_of(searched.cases())
    settings = {"labels guessed": len(FRAMES), "labels and hops guessed": len(FRAMES_WITH_HOPS)}
    found = []
    for setting, width in settings.items():
        tables = [table[:, :width] for table in guesses.tables]
        found += [
            FoldPredictions(
                setting, model, out_of_fold(tables, complete, folds, model, searched.seed)
            )
            for model in MODELS
        ]
    return found


# ---- the gate


@dataclass(frozen=True)
class GateOutput:
    """A gate's row, and its verdicts in the order of the questions."""

    row: FoldPredictions
    verdicts: Sequence[Verdict]


def gate_on_folds(
    searched: SearchResults,
    folds: Folds,
    *,
    progress: Progress | None = None,
) -> GateOutput:
    """Judge each fold with a gate that was fitted on the others, as with `Gate.fit`."""
    from suffice.gate.gate import Gate

    cases = searched.cases()
    verdicts: dict[int, Verdict] = {}
    for done, (rest, held_out) in enumerate(folds, start=1):
        gate = Gate.fit(
            [to_labelled_question(cases[at]) for at in rest],
            seed=searched.seed,
            policy="cost",
            preset=FAST,
        )
        checked = gate.check_batch(
            [(cases[at].question.text, cases[at].evidence) for at in held_out]
        )
        verdicts |= dict(zip(held_out.tolist(), checked, strict=True))
        if progress is not None:
            progress("fitting the gate", done, len(folds))
    ordered = [verdicts[at] for at in range(len(cases))]
    p = [one.p_complete for one in ordered]
    return GateOutput(
        FoldPredictions(GATE, FAST, Predictions(complete_of(cases).astype(float), p)), ordered
    )


def informed_gate_on_folds(
    searched: SearchResults,
    folds: Folds,
    *,
    progress: Progress | None = None,
) -> FoldPredictions:
    """The gate's model on the same folds, given the reasoning labels as the paper's predictor is:
    the value of a good prediction.

    No gate in use knows them. They are additional feature columns and change nothing else.
    """
    cases, words = searched.cases(), WordTable.load()
    training_set = build_training_set(
        [to_labelled_question(case) for case in cases],
        words,
        NO_READERS,
        k=None,
        min_examples=1,
    )
    nothing = [
        np.zeros((len(reading.hits), 0), np.float32) for reading in training_set.batch.extractions
    ]  # hits have no labels
    training_set = replace(
        training_set, batch=training_set.batch.with_extra(LABELS, _given(cases), nothing)
    )
    p = np.zeros(len(cases))
    for done, (rest, held_out) in enumerate(folds, start=1):
        learned, judged = (
            training_set.where(np.isin(np.arange(len(cases)), part)) for part in (rest, held_out)
        )
        model = learned.fit_model(words, searched.seed)
        scale = Platt.fit(model.log_odds_at_fit, learned.complete)
        p[np.sort(held_out)] = scale.apply(model.log_odds(model.describe(judged.batch).table))
        if progress is not None:
            progress("fitting the gate told the labels", done, len(folds))
    return FoldPredictions(GATE_TOLD, FAST, Predictions(complete_of(cases).astype(float), p))


def _given(cases: Sequence[RetrievedQuestion]) -> Floats:
    """The columns of LABELS: which labels each question has, and how many."""
    labels = [{label.casefold() for label in case.gold.labels} for case in cases]
    return np.array(
        [[*(one in mine for one in REASONING), len(mine)] for mine in labels], dtype=np.float32
    )


GATE, GATE_TOLD = "our gate", "our gate, labels given"
LABELS = tuple(
    Feature("query", f"given_{name}", f"Given: {name}.")
    for name in (*REASONING, "number of labels")
)


# ---- one expansion


@dataclass(frozen=True)
class ExpansionResult:
    """One way to expand: which questions are complete afterwards, and how many titles were read on
    average.
    """

    name: str
    complete: Bools
    titles: float


def expansions(searched: SearchResults, verdicts: Sequence[Verdict]) -> list[ExpansionResult]:
    """Ten titles, and what one more search would add: further down the list, with another
    retriever, or for what the gate says is missing.
    """
    cases = searched.cases()
    first = [{hit.doc_id for hit in case.evidence.hits} for case in cases]
    deeper = [{hit.doc_id for hit in case.deeper} for case in cases]
    others = [
        {hit.doc_id for name in NAMES for hit in searched.cases(name)[at].evidence.hits}
        for at in range(len(cases))
    ]
    questions = [
        held_out | set(new)
        for held_out, new in zip(first, _search_again(searched, verdicts, first), strict=True)
    ]
    ways = {
        f"none: {K} titles": first,
        f"next {K} titles": deeper,
        "other retrievers": others,
        "gate's queries": questions,
    }
    return [
        ExpansionResult(
            name, _complete(cases, held_out), float(np.mean([len(one) for one in held_out]))
        )
        for name, held_out in ways.items()
    ]


def _complete(cases: Sequence[RetrievedQuestion], held_out: Sequence[set[str]]) -> Bools:
    return np.array(
        [
            bool(case.gold.doc_ids) and case.gold.doc_ids <= one
            for case, one in zip(cases, held_out, strict=True)
        ]
    )


def _search_again(
    searched: SearchResults, verdicts: Sequence[Verdict], held_out: Sequence[set[str]]
) -> list[list[str]]:
    """New hits of the gate's next queries, the best of each query first, at most K per
    question.
    """
    store = searched.collected.store
    retriever = RETRIEVERS.get(HYBRID)(store)
    queries = [query for one in verdicts for query in one.next_queries]
    found = iter(retriever.search(queries, k=2 * K) if queries else [])
    new = []
    for verdict, known in zip(verdicts, held_out, strict=True):
        lists = [next(found) for _ in verdict.next_queries]
        ranked = sorted(
            (rank, at, hit.doc_id) for at, hits in enumerate(lists) for rank, hit in enumerate(hits)
        )
        new.append(
            [
                doc_id
                for doc_id in dict.fromkeys(doc_id for _, _, doc_id in ranked)
                if doc_id not in known
            ][:K]
        )
    return new
