"""Measurements for two choices in the loop, the basis of decision 15.

Credibility: can a cross-encoder tell which answers its cited sentences state? And the gate: how
much worse is one that was trained only on lists of a single search, and never on the sets that the
loop holds?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.answering.ask import ask, final_step
from suffice.datasets.dataset import Dataset
from suffice.errors import InputError, MissingExtraError, NotReadyError
from suffice.evaluation.gate_evaluation import PolicyChoice, gate_fitter
from suffice.evaluation.metrics import ANSWER_METRICS, Predictions
from suffice.evaluation.report import Cell, Table
from suffice.evaluation.significance import Interval, interval, mean_interval
from suffice.gate.gate import FAST
from suffice.protocols import GateLike, Progress, Reranker, documents_by_id
from suffice.registry import RERANKERS
from suffice.types import Action, Hit
from suffice_research.answer_systems import (
    MAX_TRAINING_QUESTIONS,
    OTHER_HALF,
    AnswerExperiment,
    draw_questions,
    held_set,
    without_gate,
)
from suffice_research.answers import AnswerRun

__all__ = [
    "CROSS_ENCODER",
    "Credibility",
    "HeldSets",
    "agreement_table",
    "credibility_table",
    "cross_encoder",
    "measure_credibility",
    "measure_held_sets",
]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CROSS_ENCODER = "ms-marco-MiniLM-L-12-v2"
ANSWERS = 150  # questions per data set whose answers are judged
ALONG_THE_WAY, ONE_SEARCH = "sets along the way", "lists of one search"
LENGTHS = (2, 4, 6, 8, 10)  # of the lists from one search


def cross_encoder() -> tuple[Reranker | None, str]:
    """The cross-encoder, or why it is skipped."""
    try:
        return RERANKERS.get(CROSS_ENCODER)(), ""
    except (MissingExtraError, NotReadyError, InputError) as error:
        return None, f"Left out the cross-encoder ({CROSS_ENCODER}): {error}"


# ------------------------------------------------------------------------------------ credibility


@dataclass(frozen=True)
class Credibility:
    """Answers of the loop that always answers, with two scores for each."""

    right: Bools
    cross_encoder: Floats  # of question and answer against the cited sentences
    reader: Floats  # the score of the loop's own reader
    seed: int


def measure_credibility(
    experiment: AnswerExperiment, reranker: Reranker, *, progress: Progress | None = None
) -> Credibility:
    """Let the loop answer, and let the cross-encoder judge its citations."""
    answers: list[str] = []
    gold: list[str] = []
    opinions: list[tuple[float, float]] = []
    setup, questions = experiment.setup, experiment.questions[:ANSWERS]
    for done, (one, gate) in enumerate(zip(questions, experiment.gates), start=1):
        text = one.question.text
        trace = ask(text, setup.corpus, without_gate(setup, gate), setup.model, budget=setup.budget)
        last = {step.number: step for step in trace.steps if step.verdict is None}
        final = final_step(last, len(trace.plan), 0.0)
        if final is not None and final.answer and final.citations and final.review is not None:
            cited = " ".join(citation.text for citation in final.citations)
            (score,) = np.asarray(reranker.score(f"{text} {final.answer}", [cited]), dtype=float)
            answers.append(final.answer)
            gold.append(one.gold.answer or "")
            opinions.append((float(score), final.review.accuracy))
        if progress is not None:
            progress("judging citations", done, len(questions))
    values = np.array(opinions, dtype=float).reshape(-1, 2)
    right = np.zeros(0, dtype=bool)
    if answers:
        right = np.asarray(ANSWER_METRICS["em"](answers, [[one] for one in gold])) > 0
    return Credibility(right, values[:, 0], values[:, 1], experiment.settings.seed)


def credibility_table(found: Mapping[str, Credibility]) -> Table:
    """How well each score separates right from wrong answers."""
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            len(one.right),
            mean_interval(one.right.astype(float), seed=one.seed),
            _order(one.right, one.cross_encoder, one.seed),
            _order(one.right, one.reader, one.seed),
        )
        for name, one in found.items()
    ]
    note = (
        f"Answers with citations, of up to {ANSWERS} questions of each data set. AUROC between right and wrong ones (exact match): "
        f"{CROSS_ENCODER} of question and answer against the cited sentences, and the fit that the loop's own reader gives. "
        "It is not part of the loop unless you pass a `reranker`."
    )
    columns = ("data set", "answers", "right", "cross-encoder", "the reader's fit")
    return Table("Does a cross-encoder know what is attributable?", columns, tuple(rows), note)


def _order(right: Bools, values: Floats, seed: int) -> Interval:
    """AUROC; only the order of the values counts."""
    places = np.unique(values, return_inverse=True)[1]
    highest = max(int(places.max(initial=0)), 1)
    return interval(Predictions(right.astype(float), places / highest), "auroc", seed=seed)


# ------------------------------------------------------------------------------------ held sets


@dataclass(frozen=True)
class HeldSets:
    """Sets that the loop held at the end, judged by gates with different training data."""

    complete: Bools
    kinds: tuple[str | None, ...]
    p: Mapping[str, Floats]
    agreed: Mapping[str, Bools]  # whether the gate would answer
    seed: int


def measure_held_sets(
    experiment: AnswerExperiment, dataset: Dataset, run: AnswerRun
) -> HeldSets | None:
    """Fit a gate on lists of one search, and let both gates judge what `always` held.

    None if the gates were not fitted on the other half.
    """
    settings, corpus = experiment.settings, experiment.setup.corpus
    if (other := OTHER_HALF.get(settings.part)) is None:
        return None
    questions = draw_questions(
        dataset, seed=settings.seed, part=other, limit=MAX_TRAINING_QUESTIONS
    )
    known = [one for one in questions if one.gold.doc_ids]
    lists = corpus.retriever().search([one.question.text for one in known], k=max(LENGTHS))
    documents = {one.doc_id: one for one in corpus.store.documents()}
    examples = [
        held_set(one, [hit.doc_id for hit in hits[:length]], documents)
        for one, hits in zip(known, lists, strict=True)
        for length in LENGTHS
    ]
    fit = gate_fitter(PolicyChoice(), FAST, settings.seed, k=experiment.setup.budget.documents)
    gates: dict[str, Sequence[GateLike]] = {
        ALONG_THE_WAY: experiment.gates,
        ONE_SEARCH: [fit(examples)] * len(experiment.questions),
    }
    outcomes = run.outcomes("always")
    pairs = [
        (one.question.text, [Hit(doc_id) for doc_id in outcome.held or ()])
        for one, outcome in zip(experiment.questions, outcomes, strict=True)
    ]
    held = documents_by_id(corpus.get, (hit.doc_id for _, hits in pairs for hit in hits))
    p: dict[str, Floats] = {}
    agreed: dict[str, Bools] = {}
    for name, some in gates.items():
        verdicts = [
            gate.check_batch([pair], documents=held, explain=False)[0]
            for gate, pair in zip(some, pairs)
        ]
        p[name] = np.array([one.p_complete for one in verdicts])
        agreed[name] = np.array([one.action is Action.ANSWER for one in verdicts])
    return HeldSets(run.complete(outcomes) > 0, run.kinds, p, agreed, settings.seed)


def agreement_table(found: Mapping[str, HeldSets]) -> Table:
    """How often each gate accepts a complete set, and how well it ranks all sets."""
    rows: list[tuple[Cell, ...]] = []
    for name, one in found.items():
        several = sorted({kind for kind in one.kinds if kind})
        for kind in (None, *(several if len(several) > 1 else ())):
            chosen = np.array([kind is None or kind == other for other in one.kinds])
            whole = chosen & one.complete
            cells: list[Cell] = []
            for gate in (ALONG_THE_WAY, ONE_SEARCH):
                labels, p = one.complete[chosen].astype(float), one.p[gate][chosen]
                share = np.where(whole, one.agreed[gate], np.nan)
                cells.append(mean_interval(share, seed=one.seed))
                cells.append(interval(Predictions(labels, p), "auroc", seed=one.seed))
            rows.append((name, kind or "all", int(chosen.sum()), int(whole.sum()), *cells))
    columns = (
        *("data set", "kind", "n", "complete"),
        *("agreed", "AUROC", "agreed, one search", "AUROC, one search"),
    )
    note = (
        "What `always` held in the end, judged by the gate of the study, which learned from sets as they are held on the way, and by "
        "one that learned from lists of one search of the same questions. Agreed: of the complete sets, those that it would answer."
    )
    title = "The gate must have seen sets like those that are held"
    return Table(title, columns, tuple(rows), note)
