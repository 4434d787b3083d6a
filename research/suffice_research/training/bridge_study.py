"""The figures of `bridge`: by folds over questions, on a left-out data set, and why questions fail.

`python -m suffice_research.training.bridge --data DIR --study FILE` runs it. Every target is shown
beside the measured figure.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.datasets.gold import GoldQuestion
from suffice.evaluation.metrics import judge_rankings
from suffice.evaluation.report import Cell, Section, Table
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.significance import Interval, interval
from suffice.registry import RETRIEVERS
from suffice.retrieval.bridge import WeightedRanker
from suffice.retrieval.candidate_pool import COLUMN, CandidatePool
from suffice.storage import package_versions
from suffice.types import DocId
from suffice_research.published_cells import WithPublished
from suffice_research.study import Study
from suffice_research.training.bridge_training import (
    FOLDS,
    TREES,
    BridgeQuestions,
    CandidateStates,
    fit_ranker,
    without_fold,
)

__all__ = ["FLOORS", "bridge_study", "failure_cause"]

NEWS = ("multihop_rag", "controlled")  # evaluated at 4, against hybrid-metagraph
# Targets for recall@5 and complete@5 by folds; a left-out data set should stay within NEAR of the
# result by folds.
FLOORS: Mapping[str, tuple[float, float]] = {
    "2wikimultihopqa": (0.99, 0.97),
    "hotpotqa": (0.955, 0.91),
    "musique": (0.70, 0.44),
}
NEAR = 0.05
Ids = list[list[DocId]]
Say = Callable[[str], None]


def depth(name: str) -> int:
    """How many documents are evaluated."""
    return 4 if name in NEWS else 5


@dataclass(frozen=True)
class _DatasetResult:
    """One data set: the documents chosen by folds, with the set left out, and by an unfitted
    ranker.
    """

    training: BridgeQuestions
    folds: Ids
    left_out: Ids
    unfitted: Ids
    causes: Mapping[str, int]

    @property
    def gold(self) -> list[frozenset[DocId]]:
        return [one.gold.doc_ids for one in self.training.questions]

    def figure(self, found: Ids, metric: str, seed: int) -> Interval:
        k = depth(self.training.name)
        return interval(judge_rankings(found, self.gold, depth=k), f"{metric}@{k}", seed=seed)


def bridge_study(
    training: Sequence[BridgeQuestions],
    states: Sequence[tuple[CandidateStates, CandidateStates]],
    *,
    data: Mapping[str, str],
    seed: int,
    say: Say,
    failures: int = 0,
) -> Study:
    """Evaluate by folds over the questions of all data sets, then with each data set left out.

    `states` has the `candidate_states` and the `fitted_path_states` of each data set.
    """
    started = time.perf_counter()
    folds = [one.folds(seed) for one in training]
    by_folds: list[dict[int, list[DocId]]] = [{} for _ in training]
    for fold in range(FOLDS):
        learned = []
        for (some, on_paths), fold_of in zip(states, folds):
            learned += without_fold(some, on_paths, fold_of, fold)
        ranker = fit_ranker(learned, seed=seed)
        for one, fold_of, kept in zip(training, folds, by_folds):
            which = np.flatnonzero(fold_of == fold)
            kept.update(zip(which.tolist(), one.choose(ranker, which, depth(one.name))))
        say(f"fold {fold + 1} of {FOLDS}")
    judged = []
    for at, one in enumerate(training):
        found = [by_folds[at][question] for question in range(len(one.questions))]
        causes = _count_causes(one, found, failures)
        everything = np.arange(len(one.questions))
        unfitted = one.choose(WeightedRanker(), everything, depth(one.name))
        learned = [some for other, both in enumerate(states) if other != at for some in both]
        left_out = (
            one.choose(fit_ranker(learned, seed=seed), everything, depth(one.name))
            if learned
            else unfitted
        )
        judged.append(_DatasetResult(one, found, left_out, unfitted, causes))
        say(f"{one.name}: {_figures_line(judged[-1], seed)}")
    return Study(
        name="bridge-fast",
        title="The bridge retriever, preset fast",
        seed=seed,
        settings={
            "folds": FOLDS,
            "trees": dict(TREES),
            "questions": {one.name: len(one.questions) for one in training},
        },
        data=data,
        sections=_sections(judged, seed),
        timings={"all": time.perf_counter() - started},
        commit=source_commit(),
        packages=package_versions(),
    )


def _figures_line(one: _DatasetResult, seed: int) -> str:
    lines = []
    for name, found in (
        ("folds", one.folds),
        ("left out", one.left_out),
        ("unfitted", one.unfitted),
    ):
        values = [one.figure(found, metric, seed).value or 0.0 for metric in ("recall", "complete")]
        lines.append(f"{name} {values[0]:.3f} / {values[1]:.3f}")
    return ", ".join(lines)


def _sections(judged: Sequence[_DatasetResult], seed: int) -> tuple[Section, ...]:
    wiki = [one for one in judged if one.training.name not in NEWS]
    news = [one for one in judged if one.training.name in NEWS]
    sections = []
    if wiki:
        sections.append(Section("Sets of five", (_wiki_table(wiki, seed),), WIKI_SAYS))
    if news:
        sections.append(Section("News with metadata", (_news_table(news, seed),), NEWS_SAYS))
    sections.append(Section("Why questions fail", (_cause_table(judged),), CAUSES_SAY))
    return tuple(sections)


WIKI_SAYS = (
    f"{FOLDS} folds over the questions of all data sets: a ranker fitted on four of them judges the fifth. Left out: fitted on "
    "all other data sets. Unfitted: weights set by hand. In brackets: 95 % bootstrap interval over questions. In parentheses: "
    f"the figure to reach; a left-out data set is to stay within {NEAR:.2f} of what folds reach."
)
NEWS_SAYS = "The same at four documents, beside hybrid-metagraph on the same questions, which is to be reached."
CAUSES_SAY = "Questions that are incomplete by folds, counted by the first cause that holds: see `suffice_research.training.bridge_study.failure_cause`."


def _wiki_table(judged: Sequence[_DatasetResult], seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in judged:
        floors = FLOORS.get(one.training.name, (None, None))
        row: list[Cell] = [one.training.name, len(one.gold)]
        for metric, floor in zip(("recall", "complete"), floors):
            reached, left_out = (
                one.figure(one.folds, metric, seed),
                one.figure(one.left_out, metric, seed),
            )
            near = None if reached.value is None else reached.value - NEAR
            row += [
                WithPublished(reached, floor),
                WithPublished(left_out, near),
                one.figure(one.unfitted, metric, seed),
            ]
        rows.append(tuple(row))
    columns = [
        f"{metric}@5{kind}"
        for metric in ("recall", "complete")
        for kind in ("", ", left out", ", unfitted")
    ]
    return Table("Bridge, fast", ("data set", "n", *columns), tuple(rows))


def _news_table(judged: Sequence[_DatasetResult], seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in judged:
        rival = RETRIEVERS.get("hybrid-metagraph")(one.training.bridge.store)
        hits = rival.search([example.question.text for example in one.training.questions], k=4)
        hit_ids = [[hit.doc_id for hit in found] for found in hits]
        reached = one.figure(hit_ids, "complete", seed)
        ours = [
            WithPublished(one.figure(found, "complete", seed), reached.value)
            for found in (one.folds, one.left_out)
        ]
        recalls = [one.figure(found, "recall", seed) for found in (one.folds, hit_ids)]
        rows.append((one.training.name, len(one.gold), *ours, reached, *recalls))
    columns = (
        "complete@4",
        "complete@4, left out",
        "hybrid-metagraph's",
        "recall@4",
        "hybrid-metagraph's recall",
    )
    return Table("News", ("data set", "n", *columns), tuple(rows))


# ---- failures

CAUSES = {
    "not a candidate": "A gold document never joined the pool: no word, vector or link led to it.",
    "more gold than places": "The question needs more documents than are judged.",
    "namesake": "Another passage with the title of a missing one was chosen.",
    "link not taken": "Something chosen names a missing one, or is named by it, and it was passed over.",
    "shared name not taken": "A missing one shares a name with something chosen, and was passed over.",
    "named, not taken": "The question names a missing one, and it was passed over.",
    "no link": "Nothing chosen leads to a missing one; only words could have.",
}


def failure_cause(
    pool: CandidatePool, gold: frozenset[DocId], found: Sequence[DocId], k: int
) -> str:
    """The first of CAUSES that applies to an incomplete question; the pool holds the choice."""
    if len(gold) > k:
        return "more gold than places"
    missing = [one for one in gold if one not in found]
    if any(one not in pool.at for one in missing):
        return "not a candidate"
    rows = pool.features()
    at = [pool.at[one] for one in missing]
    for name, column in (
        ("namesake", "same_title"),
        ("link not taken", "from_held"),
        ("link not taken", "into_held"),
        ("shared name not taken", "shared"),
        ("named, not taken", "named"),
    ):
        if (rows[at, COLUMN[column]] > 0).any():
            return name
    return "no link"


def _count_causes(training: BridgeQuestions, found: Ids, shown: int) -> dict[str, int]:
    """How many incomplete questions have each cause; the first `shown` of them are
    printed.
    """
    counted: Counter[str] = Counter()
    for example, pool, ids in zip(training.questions, training.pools, found):
        if example.gold.doc_ids <= set(ids):
            continue
        pool.release()
        for one in ids:
            if one in pool.at:
                pool.hold(pool.at[one])
        why = failure_cause(pool, example.gold.doc_ids, ids, depth(training.name))
        counted[why] += 1
        if counted.total() <= shown:
            _print_failure(training, example, pool, ids, why)
    return dict(counted)


def _print_failure(
    training: BridgeQuestions,
    example: GoldQuestion,
    pool: CandidatePool,
    ids: Sequence[DocId],
    why: str,
) -> None:
    lines = [f"[{training.name}] {why}: {example.question.text}"]
    lines += [
        f"   gold {'held' if one in ids else 'pool' if one in pool.at else 'lost'}: {one}"
        for one in sorted(example.gold.doc_ids)
    ]
    lines += [f"   held {one}" for one in ids]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _cause_table(judged: Sequence[_DatasetResult]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, says, *(one.causes.get(name, 0) for one in judged)) for name, says in CAUSES.items()
    ]
    rows.append(("incomplete", "", *(sum(one.causes.values()) for one in judged)))
    return Table(
        "Causes", ("cause", "what it means", *(one.training.name for one in judged)), tuple(rows)
    )
