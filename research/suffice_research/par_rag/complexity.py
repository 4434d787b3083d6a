"""PAR-RAG's complexity study: which method counts a question's hops best, and the cost of errors.

The paper's classifier is a BERT that reads the question; the count chooses the exemplars of the
plan and the weights of the review. Here several counters are compared, each on questions that it
was not trained on. The loop runs with every count from one to four for every question. Which count
is right, one too low or far off is determined afterwards, so that no gold label reaches the loop.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.answering.ask import AskPolicy
from suffice.answering.planner import ExemplarBank, make_plan
from suffice.answering.rule_planner import plan_by_rules
from suffice.answering.span_reader import answer_finder
from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import draw_key
from suffice.errors import InputError, MissingExtraError, NotReadyError
from suffice.evaluation.report import Cell, Table, format_cell
from suffice.evaluation.significance import Interval, mean_interval, paired_difference
from suffice.gate.question import QuestionModel, WordTable, parse_question
from suffice.protocols import Encoder, GateLike, Progress
from suffice.registry import ENCODERS
from suffice.types import Verdict
from suffice_research.answer_systems import (
    OTHER_HALF,
    AnswerExperiment,
    ask_system,
    draw_questions,
)
from suffice_research.answers import AnswerRun, make_answer_run
from suffice_research.par_rag.published import COMPLEXITY
from suffice_research.published_cells import WithPublished

__all__ = [
    "BERT",
    "Complexity",
    "HopQuestions",
    "confusion_table",
    "counter_table",
    "counts_of",
    "error_table",
    "findings",
    "forced_table",
    "measure",
    "one_hop_questions",
    "recovery_table",
    "small_bert",
]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

HOPS = (1, 2, 3, 4)
BERT = "bge-small-en-v1.5"  # 12 layers of width 384, a third of BERT-base
LINEAR, HEAD = "linear model of the words", f"{BERT}, logistic head"
MAJORITY, RULES, GATE = "always two", "the rules' plan", "its gate"
SEEN, UNSEEN = "all data sets", "other data sets"
ONE_HOP = "squad2"
SQUAD = "squad2/dev.json.gz"
TAUGHT = 300  # training questions per data set
FORCED, WITH_MODEL = 150, 10  # questions per data set that run with every count
ALWAYS, ASK = "always", "ask"
SYSTEMS = {
    ALWAYS: ask_system(AskPolicy(), gated=False, always=True),
    ASK: ask_system(AskPolicy()),
}
SHIFTS: Mapping[str, int] = {"one less": -1, "one more": 1}
FARTHEST = "farthest"
ERROR_KINDS = ("plan", "evidence", "nothing said", "reading")
INTERVALS = "In brackets: 95 % bootstrap interval over questions."


# ------------------------------------------------------------------------------------ counters


@dataclass(frozen=True)
class HopQuestions:
    """Questions of one data set with the hops they need, for training and for evaluation."""

    dataset: str
    taught: Sequence[tuple[str, int]]
    judged: Sequence[tuple[str, int]]

    @property
    def gold(self) -> Ints:
        return np.array([hops for _, hops in self.judged], dtype=np.int64)

    @property
    def texts(self) -> list[str]:
        return [text for text, _ in self.judged]

    @classmethod
    def of(cls, dataset: Dataset, experiment: AnswerExperiment) -> HopQuestions:
        """The experiment's questions, and as many from the other half for training, without those
        whose gold is unknown.
        """
        settings = experiment.settings
        part = OTHER_HALF.get(settings.part)
        others = (
            draw_questions(dataset, seed=settings.seed, part=part, limit=TAUGHT) if part else []
        )
        return cls(
            dataset.name,
            [(one.question.text, one.gold.hops) for one in others if one.gold.hops],
            [(one.question.text, one.gold.hops) for one in experiment.questions],
        )


def one_hop_questions(data: Path | None, *, seed: int, limit: int) -> HopQuestions | None:
    """Questions that one passage answers, from SQuAD 2.0; None if the file is missing."""
    path = Path(data or ".") / SQUAD
    if data is None or not path.is_file():
        return None
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            articles = json.load(file)["data"]
        texts = {
            row["question"].strip()
            for article in articles
            for paragraph in article["paragraphs"]
            for row in paragraph["qas"]
            if not row["is_impossible"]
        }
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not SQuAD 2.0: {error!r}", hint="fetch the file again, or remove it"
        ) from error
    drawn = [(text, 1) for text in sorted(texts, key=lambda text: draw_key(seed, text))]
    return HopQuestions(ONE_HOP, drawn[:TAUGHT], drawn[TAUGHT:][:limit])


def counts_of(
    sets: Sequence[HopQuestions], gates: Mapping[str, Ints], *, encoder: Encoder | None = None
) -> dict[str, dict[str, Ints]]:
    """Counter -> data set -> hops of each judged question.

    `gates` has the output of each data set's gate. Models are trained on all data sets, or only on
    the others. The `encoder` is the small BERT; None skips its rows.
    """
    found: dict[str, dict[str, Ints]] = {
        MAJORITY: {one.dataset: np.full(len(one.judged), 2, np.int64) for one in sets},
        RULES: {
            one.dataset: _whole([plan_by_rules(text).hops for text in one.texts]) for one in sets
        },
        GATE: dict(gates),
    }
    models: dict[str, _Counter] = {LINEAR: _LinearCounter()}
    if encoder is not None:
        models[HEAD] = _HeadCounter(encoder)
    for name, model in models.items():
        for learned_from in (SEEN, UNSEEN):
            row = found.setdefault(f"{name}, {learned_from}", {})
            for one in sets:
                others = [it for it in sets if learned_from == SEEN or it is not one]
                taught = [pair for it in others for pair in it.taught]
                if len({hops for _, hops in taught}) > 1:
                    row[one.dataset] = model.count(taught, one.texts)
    return {name: by_set for name, by_set in found.items() if by_set}


class _Counter:
    """Learns hops from questions."""

    def count(self, taught: Sequence[tuple[str, int]], texts: Sequence[str]) -> Ints:
        raise NotImplementedError


class _LinearCounter(_Counter):
    """The model inside a gate: words, word pairs and the form of the question."""

    def __init__(self) -> None:
        self._words = WordTable.load()

    def count(self, taught: Sequence[tuple[str, int]], texts: Sequence[str]) -> Ints:
        questions = [parse_question(text, self._words) for text, _ in taught]
        hops = np.array([float(one) for _, one in taught])
        model = QuestionModel(self._words).fit(questions, {"hops": hops})
        return _whole(model.predict([parse_question(text, self._words) for text in texts])[:, 0])


class _HeadCounter(_Counter):
    """Logistic regression over the vectors of a small BERT, each computed once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, npt.NDArray[np.floating[Any]]] = {}

    def count(self, taught: Sequence[tuple[str, int]], texts: Sequence[str]) -> Ints:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=10.0, max_iter=1000, class_weight="balanced")
        model.fit(self._vectors([text for text, _ in taught]), [hops for _, hops in taught])
        return _whole(model.predict(self._vectors(texts)))

    def _vectors(self, texts: Sequence[str]) -> npt.NDArray[np.floating[Any]]:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        if fresh:
            self._known |= dict(zip(fresh, self._encoder.encode(fresh), strict=True))
        return np.stack([self._known[text] for text in texts])


def small_bert() -> tuple[Encoder | None, str]:
    """The encoder, or why it is skipped."""
    try:
        return ENCODERS.get(BERT)(), ""
    except (MissingExtraError, NotReadyError, InputError) as error:
        return None, f"Left out the small BERT ({BERT}): {error}"


def _whole(values: npt.ArrayLike) -> Ints:
    nearest = np.rint(np.asarray(values, dtype=float))
    return np.asarray(np.clip(nearest, HOPS[0], HOPS[-1]), dtype=np.int64)


# ------------------------------------------------------------------------------------ the loop


@dataclass(frozen=True)
class Complexity:
    """One data set: the loop's outcomes with every count, and how many hops it planned."""

    run: AnswerRun  # "always, 1" ... "ask, 4": the first questions, with each count
    gold: Ints
    planned: Ints  # hops of the plan
    gate: Ints  # the gates' counts for all judged questions

    def values(self, system: str, counts: Ints, measure: str) -> Floats:
        """A measure for each question, when the loop assumed the given count of hops."""
        every = np.stack([self.run.values(f"{system}, {hops}", measure) for hops in HOPS])
        at = np.clip(counts, HOPS[0], HOPS[-1]) - HOPS[0]
        chosen: Floats = every[at, np.arange(len(at))]
        return chosen


def measure(experiment: AnswerExperiment, *, progress: Progress | None = None) -> Complexity:
    """Run the loop on the experiment's first questions with every count of hops."""
    texts = [one.question.text for one in experiment.questions]
    judged = _whole([float(gate.hops([text])[0]) for gate, text in zip(experiment.gates, texts)])
    most = FORCED if experiment.setup.model is None else min(FORCED, WITH_MODEL)
    questions = experiment.questions[:most]
    systems: dict[str, list[Any]] = {f"{name}, {hops}": [] for name in SYSTEMS for hops in HOPS}
    for done, (one, gate) in enumerate(zip(questions, experiment.gates), start=1):
        for name, system in SYSTEMS.items():
            for hops in HOPS:
                told = ToldHops(gate, float(hops))
                outcome = system(experiment.setup, one.question.text, told)
                systems[f"{name}, {hops}"].append(outcome)
        if progress is not None:
            progress("answering with every hop count", done, len(questions))
    return Complexity(
        make_answer_run(experiment.dataset, questions, systems, seed=experiment.settings.seed),
        np.array([one.gold.hops for one in questions], dtype=np.int64),
        _whole([_planned(experiment, text, hops) for text, hops in zip(texts[:most], judged)]),
        judged,
    )


def _planned(experiment: AnswerExperiment, question: str, hops: int) -> int:
    """How many steps of the plan search: the rules' plan, or the model's for this many hops."""
    _, meter = experiment.setup.start()
    bank = None if experiment.setup.model is None else ExemplarBank.load()
    return make_plan(question, meter, bank, hops=float(hops)).hops


class ToldHops:
    """A gate with a given number of hops."""

    def __init__(self, gate: GateLike, hops: float) -> None:
        self._gate, self._hops = gate, hops
        if (find := answer_finder(gate)) is not None:
            self.find_answer = find

    def hops(self, questions: Sequence[str]) -> list[float]:
        return [self._hops] * len(questions)

    def check_batch(self, pairs: Any, **options: Any) -> list[Verdict]:
        return self._gate.check_batch(pairs, **options)


# ------------------------------------------------------------------------------------ tables


def counter_table(
    sets: Sequence[HopQuestions], counts: Mapping[str, Mapping[str, Ints]], *, seed: int
) -> Table:
    """How often each counter is right, on each data set and on all."""
    rows: list[tuple[Cell, ...]] = []
    for name, by_set in counts.items():
        right = {
            one.dataset: by_set[one.dataset] == one.gold for one in sets if one.dataset in by_set
        }
        cells = [
            mean_interval(right[it.dataset], seed=seed) if it.dataset in right else None
            for it in sets
        ]
        whole = np.concatenate(list(right.values())) if len(right) == len(sets) else None
        rows.append((name, *cells, None if whole is None else mean_interval(whole, seed=seed)))
    names = [f"{one.dataset}, n = {len(one.judged)}" for one in sets]
    note = (
        f"Accuracy of whole hops. No counter saw a judged question. 'All data sets': it learned from up to {TAUGHT} questions of "
        "each, the other half; 'other data sets': from none of this one, which is what a new corpus is, and no hop count is said that the others lack. A gate learned from the "
        "other half of its own data set. A data set whose questions need nearly always the same number is easy for whoever knows "
        f"it. The paper wants 0.80. {INTERVALS}"
    )
    return Table("Who counts the hops", ("counter", *names, "all"), tuple(rows), note)


def confusion_table(
    sets: Sequence[HopQuestions], counts: Mapping[str, Mapping[str, Ints]], *, seed: int
) -> Table:
    """The counts for questions that need one to four hops, by counters trained on all data sets."""
    rows: list[tuple[Cell, ...]] = []
    gold = np.concatenate([one.gold for one in sets])
    for name, by_set in counts.items():
        if not (name.endswith(SEEN) or name == RULES) or len(by_set) < len(sets):
            continue
        said = np.concatenate([by_set[one.dataset] for one in sets])
        for hops in HOPS:
            chosen = gold == hops
            if not chosen.any():
                continue
            cells: list[Cell] = []
            for other in HOPS:
                share = mean_interval(np.where(chosen, said == other, np.nan), seed=seed)
                paper = COMPLEXITY.get(ALWAYS, "two hops as one")
                cells.append(WithPublished(share, paper) if (hops, other) == (2, 1) else share)
            rows.append((name, hops, int(chosen.sum()), *cells))
    columns = ("counter", "needs", "n", *(f"said {hops}" for hops in HOPS))
    note = (
        "Share of the questions that need so many hops. In parentheses: the paper's two-hop questions that its classifier takes "
        "for one hop. Its one-hop questions are of another data set."
    )
    return Table("What is taken for what", columns, tuple(rows), note)


def recovery_table(
    found: Mapping[str, Complexity], counts: Mapping[str, Mapping[str, Ints]]
) -> Table:
    """How often the answer is right although a counter was wrong."""
    rows: list[tuple[Cell, ...]] = []
    for counter in (GATE, RULES, f"{HEAD}, {SEEN}", f"{HEAD}, {UNSEEN}"):
        for name, one in found.items():
            if name not in counts.get(counter, {}):
                continue
            said, seed = counts[counter][name][: len(one.gold)], one.run.seed
            wrong = said != one.gold
            ours, told = (one.values(ALWAYS, these, "em") for these in (said, one.gold))
            paper = COMPLEXITY.get(ALWAYS, "recovered")
            rows.append(
                (
                    counter,
                    name,
                    int(wrong.sum()),
                    WithPublished(_mean(ours, wrong, seed), paper),
                    _mean(told, wrong, seed),
                    WithPublished(_mean(ours, wrong & (told > 0), seed), paper),
                    _mean(ours, ~wrong, seed),
                )
            )
    columns = (
        *("counter", "data set", "miscounted", "right all the same", "right with the true count"),
        *("kept of these", "right where counted right"),
    )
    note = (
        "Exact match of the loop that always answers, with the counter's whole hops. In parentheses: the paper's recovery, by a "
        "language model; it does not say of which of the two shares. Kept: of the miscounted questions that the loop answers "
        f"right when told the true count, those still right. Up to {FORCED} questions of each data set, {WITH_MODEL} with a "
        f"model. {INTERVALS}"
    )
    return Table("Recovery from a wrong count", columns, tuple(rows), note)


def forced_table(found: Mapping[str, Complexity]) -> Table:
    """Every question with a deliberately wrong count, against the true count."""
    rows: list[tuple[Cell, ...]] = []
    for name, one in found.items():
        for system in SYSTEMS:
            true = {
                measure: one.values(system, one.gold, measure)
                for measure in ("em", "token_f1", "answered", "rounds")
            }
            for label in (*SHIFTS, FARTHEST):
                said = _miscounted(one.gold, label)
                moved = {measure: one.values(system, said, measure) for measure in true}
                apart = [
                    paired_difference(moved[measure], true[measure], seed=one.run.seed)
                    for measure in true
                ]
                kept = _mean(moved["em"], true["em"] > 0, one.run.seed)
                rows.append(
                    (name, system, label, _mean(true["em"], None, one.run.seed), *apart, kept)
                )
    columns = (
        *("data set", "system", "count is", "EM, true count", "EM", "F1", "answered", "rounds"),
        "right answers kept",
    )
    note = (
        "Differences from the loop with the true count, paired, 95 % interval. Farthest: one hop for questions of three and "
        "more, else four. By rules the count only weighs the review, and so decides what is searched again; the plan does not "
        "depend on it, so that little can be lost. With a model it chooses the exemplars, too."
    )
    return Table("Every count forced to be wrong", columns, tuple(rows), note)


def error_table(found: Mapping[str, Complexity]) -> Table:
    """Why answers are not right: the first of four causes that applies."""
    rows: list[tuple[Cell, ...]] = []
    for name, one in found.items():
        for system in SYSTEMS:
            counts = one.gate[: len(one.gold)]
            wrong = one.values(system, counts, "em") == 0
            lacking = one.values(system, counts, "complete") == 0
            silent = one.values(system, counts, "answered") == 0
            kind = np.select([one.planned != one.gold, lacking, silent], [0, 1, 2], default=3)
            cells: list[Cell] = [
                mean_interval(np.where(wrong, kind == at, np.nan), seed=one.run.seed)
                for at in range(len(ERROR_KINDS))
            ]
            paper = COMPLEXITY.get(ALWAYS, "plan") if system == ALWAYS else None
            first = cells[0]
            assert isinstance(first, Interval)
            cells[0] = WithPublished(first, paper)
            rows.append((name, system, int(wrong.sum()), *cells))
    note = (
        "Shares of the questions that are not answered right, with the whole hops that the gate counts. Plan: it has more or fewer steps that search than the question needs "
        "documents (in parentheses: the paper's share of errors by plan misspecification). Evidence: the plan fits, but a needed "
        "document was not held. Nothing said: both fit, and the loop abstains or finds nothing. Reading: both fit, and what it "
        f"says is not the gold answer. {INTERVALS}"
    )
    columns = ("data set", "system", "not right", *ERROR_KINDS)
    return Table("Kinds of errors", columns, tuple(rows), note)


def findings(
    sets: Sequence[HopQuestions],
    counts: Mapping[str, Mapping[str, Ints]],
    found: Mapping[str, Complexity],
) -> Iterator[str]:
    """The results, with the figures that support them."""
    seed = next((one.run.seed for one in found.values()), 42)
    table = counter_table(sets, counts, seed=seed)
    every = [(str(row[0]), row[-1]) for row in table.rows if isinstance(row[-1], Interval)]
    told = "; ".join(f"{name} {format_cell(figure)}" for name, figure in every)
    if told:
        yield f"Counting hops right, all questions: {told} (the paper wants 0.80)."
    worst = [
        f"{name} {format_cell(paired_difference(*pair, seed=one.run.seed))}"
        for name, one in found.items()
        for pair in [
            [one.values(ALWAYS, hops, "em") for hops in (_miscounted(one.gold, FARTHEST), one.gold)]
        ]
    ]
    yield f"Exact match with the farthest count less with the true one, always: {', '.join(worst)}."
    for name, one in found.items():
        (row,) = (one for one in error_table(found).rows if one[:2] == (name, ALWAYS))
        kinds = (f"{kind} {format_cell(cell)}" for kind, cell in zip(ERROR_KINDS, row[3:]))
        yield f"{name}: what went wrong of {row[2]} questions not answered right: {', '.join(kinds)}."


def _miscounted(gold: Ints, label: str) -> Ints:
    """A wrong count for every question; if it would leave the range one to four, the other way."""
    if label == FARTHEST:
        return np.where(gold >= 3, HOPS[0], HOPS[-1])
    moved = gold + SHIFTS[label]
    return np.where((moved < HOPS[0]) | (moved > HOPS[-1]), gold - SHIFTS[label], moved)


def _mean(values: Floats, where: npt.NDArray[np.bool_] | None, seed: int) -> Interval:
    chosen = values if where is None else np.where(where, values, np.nan)
    return mean_interval(chosen, seed=seed)
