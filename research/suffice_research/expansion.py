"""The value of expansion: completeness against documents held, at a fixed k or stopped by the gate.

Fixed k: the first k of a retriever's list, the same for every question. Expansion:
`suffice.answering.expand` over one of these retrievers, at most `k` documents, stopped by the gate
at several thresholds. The measure is how many documents a fixed k needs to be as complete.

No question is judged by a gate that was fitted on it: "fitted" is a gate from the other folds,
fitted on intermediate evidence sets; for a saved gate, the number of questions it has seen is
reported. The same applies to the bridge's ranker: "hand" has seen nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.answering.expand import Completion, ExpansionBudget, expand
from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import (
    FITTED,
    PolicyChoice,
    count_seen,
    gate_fitter,
    grouped_folds,
    require_fit_extra,
)
from suffice.evaluation.report import Cell, Line, Lines, Section, Table
from suffice.evaluation.result_files import source_commit
from suffice.evaluation.searching import (
    encoder_for,
    index_documents,
    retriever_factories,
)
from suffice.evaluation.significance import Interval, mean_interval, statistic_interval
from suffice.gate.gate import FAST
from suffice.gate.gate_ref import open_gate
from suffice.protocols import Encoder, GateLike, Progress, Retriever, Store
from suffice.retrieval.bridge import TreeRanker, WeightedRanker
from suffice.retrieval.links import TitleIndex, mention_links
from suffice.storage import package_versions
from suffice.types import Action, DocId, Document, Hit, Verdict
from suffice_research.answer_systems import BRIDGE, partial_sets
from suffice_research.cached_retriever import CachedRetriever
from suffice_research.study import Study

if TYPE_CHECKING:
    from suffice.gate.gate import Gate

__all__ = [
    "ExpansionSettings",
    "Point",
    "documents_saved",
    "expansion_study",
]

Floats = npt.NDArray[np.float64]
HAND = "hand"
_AT_ONCE = 64


@dataclass(frozen=True)
class ExpansionSettings:
    """The settings of the experiment.

    `retriever` is the one to expand; the `other_retrievers` are measured at a fixed k.
    """

    retriever: str = BRIDGE
    other_retrievers: tuple[str, ...] = ("bm25", "hybrid")
    gate: str = FITTED
    ranker: str = HAND  # of the bridge: "hand", or a folder
    fixed: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20)
    most: tuple[int, ...] = (3, 4, 5, 6, 8, 10)
    answer_at: tuple[float, ...] = (0.5, 0.7, 0.9)
    folds: int = 5
    encoder: str = "wordllama"
    limit: int | None = None
    seed: int = 42

    def __post_init__(self) -> None:
        if (
            not self.fixed
            or not self.most
            or not self.answer_at
            or min(*self.fixed, *self.most) < 1
        ):
            raise InputError(
                "expected at least one k of 1 or more, and one threshold",
                hint="for example --k 3,5 --answer-at 0.7",
            )
        if not all(0 <= one <= 1 for one in self.answer_at):
            raise InputError(
                f"thresholds are {self.answer_at}, expected probabilities from 0 to 1",
                hint="for example --answer-at 0.5,0.9",
            )


@dataclass(frozen=True)
class Point:
    """One way to hold documents: how many it holds for each question, and which are complete."""

    name: str
    k: int
    held: Floats
    complete: Floats
    checks: float = 0.0  # gate checks per question

    @property
    def documents(self) -> float:
        return float(self.held.mean())


def expansion_study(
    dataset: Dataset,
    settings: ExpansionSettings,
    *,
    data: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Study:
    """Measure both ways on every answerable question of the data set."""
    if settings.gate == FITTED:
        require_fit_extra()
    started = time.perf_counter()
    examples = [one for one in islice(dataset.questions(), settings.limit) if one.gold.doc_ids]
    if not examples:
        raise InputError(
            f"the data set '{dataset.name}' has no questions with gold",
            hint="check the questions file",
        )
    corpus = _Corpus(dataset, settings, progress)
    texts = [one.question.text for one in examples]
    lists = {
        name: corpus.lists(name, texts, max(settings.fixed))
        for name in (*settings.other_retrievers, settings.retriever)
    }
    searched = time.perf_counter()
    fixed = {
        name: _fixed_points(name, examples, found, settings.fixed) for name, found in lists.items()
    }
    points, seen = _expand_all(examples, lists[settings.retriever], corpus, settings, progress)
    saved = [documents_saved(fixed, point, seed=settings.seed) for point in points]
    figures = {
        **settings.__dict__,
        "documents": len(corpus.documents),
        "questions": len(examples),
        "seen": seen,
    }
    return Study(
        name="expansion",
        title=f"Expanding on {dataset.name}",
        seed=settings.seed,
        settings={"dataset": dataset.name, **figures},
        data=dict(data or {}),
        sections=(
            Section(
                dataset.name,
                (_table(fixed, points, saved, settings), _figure(dataset.name, fixed, points)),
            ),
        ),
        summary=_summary(points, [one for one, _ in saved]),
        timings={"search": searched - started, "expand": time.perf_counter() - searched},
        commit=source_commit(),
        packages=package_versions(),
    )


# ---- the corpus


class _Corpus:
    """The corpus with its retrievers; searches are cached, as thresholds differ only in where they
    stop.
    """

    def __init__(
        self, dataset: Dataset, settings: ExpansionSettings, progress: Progress | None
    ) -> None:
        names = dict.fromkeys([*settings.other_retrievers, settings.retriever])
        chosen = retriever_factories(names)
        encoder = encoder_for(chosen, settings.encoder)
        self.store: Store = index_documents(dataset.documents(), encoder, progress)
        self.documents = {document.doc_id: document for document in self.store.documents()}
        self.links = mention_links(self.documents.values(), TitleIndex.of(self.documents.values()))
        made = {
            name: _open_retriever(name, factory, self.store, encoder, settings.ranker)
            for name, factory in chosen.items()
        }
        self.searchers = {name: CachedRetriever(one) for name, one in made.items()}
        self._progress = progress

    def lists(self, name: str, questions: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        found: list[tuple[Hit, ...]] = []
        for start in range(0, len(questions), _AT_ONCE):
            found += self.searchers[name].search(questions[start : start + _AT_ONCE], k=k)
            if self._progress is not None:
                self._progress(f"searching with {name}", len(found), len(questions))
        return found

    def get(self, doc_ids: Sequence[DocId]) -> list[Document | None]:
        return [self.documents.get(doc_id) for doc_id in doc_ids]


def _open_retriever(
    name: str, factory: Callable[..., Retriever], store: Store, encoder: Encoder | None, ranker: str
) -> Retriever:
    options: dict[str, Any] = {} if encoder is None or name == "bm25" else {"encoder": encoder}
    if name == BRIDGE:  # the shipped ranker has seen the questions
        options["ranker"] = WeightedRanker() if ranker == HAND else TreeRanker.load(Path(ranker))
    return factory(store, **options)


# ---- fixed k


def _fixed_points(
    name: str, examples: Sequence[GoldQuestion], lists: Sequence[Sequence[Hit]], ks: Sequence[int]
) -> list[Point]:
    return [_point(name, k, examples, [hits[:k] for hits in lists]) for k in ks]


def _point(
    name: str,
    k: int,
    examples: Sequence[GoldQuestion],
    held: Sequence[Sequence[Hit]],
    checks: float = 0.0,
) -> Point:
    complete = [
        one.gold.doc_ids <= {hit.doc_id for hit in hits}
        for one, hits in zip(examples, held, strict=True)
    ]
    return Point(
        name, k, np.array([len(hits) for hits in held], float), np.array(complete, float), checks
    )


def documents_saved(
    fixed: Mapping[str, Sequence[Point]], point: Point, *, seed: int = 42
) -> tuple[Interval, bool]:
    """How many more documents than this point a fixed k needs to be as complete, with the best
    retriever at each level.

    Between two values of k it interpolates linearly, which is the same as choosing between the two
    at random. True: no measured k is as complete, and the longest list stands in for it.
    """
    columns = {
        name: (
            np.stack([one.held for one in curve], axis=1),
            np.stack([one.complete for one in curve], axis=1),
        )
        for name, curve in fixed.items()
    }

    def saved(weights: Floats) -> Floats:
        share = weights / weights.sum(axis=1, keepdims=True)
        wanted, held = share @ point.complete, share @ point.held
        ways = [
            _documents_at(share @ documents, share @ complete, wanted)
            for documents, complete in columns.values()
        ]
        return np.asarray(np.min(ways, axis=0) - held)

    most = max(float(curve[-1].complete.mean()) for curve in fixed.values())
    return statistic_interval(saved, len(point.held), seed=seed), float(
        point.complete.mean()
    ) > most


def _documents_at(documents: Floats, complete: Floats, wanted: Floats) -> Floats:
    """Where each row's curve first reaches the wanted value, or its end if it never does: (rows,
    ks), (rows, ks), (rows,).
    """
    reached = complete >= wanted[:, None] - 1e-12
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), complete.shape[1] - 1)
    rows, before = np.arange(len(first)), np.maximum(first - 1, 0)
    low, high = complete[rows, before], complete[rows, first]
    share = np.clip(
        np.divide(wanted - low, high - low, out=np.ones_like(low), where=high > low), 0, 1
    )
    start = documents[rows, before]
    return np.asarray(start + share * (documents[rows, first] - start))


# ---- expanding


def _expand_all(
    examples: Sequence[GoldQuestion],
    lists: Sequence[Sequence[Hit]],
    corpus: _Corpus,
    settings: ExpansionSettings,
    progress: Progress | None,
) -> tuple[list[Point], int]:
    """Every threshold and size over every question, each with a gate that may judge it, and how
    many of the questions that gate had seen.
    """
    texts = [one.question.text for one in examples]
    ways = [(answer_at, most) for answer_at in settings.answer_at for most in settings.most]
    found: dict[tuple[float, int], list[Completion | None]] = {
        way: [None] * len(examples) for way in ways
    }
    seen = 0
    for gate, rows in _gates(examples, lists, corpus, settings, progress):
        seen += count_seen(gate, [texts[at] for at in rows])
        judge = _CachedGate(gate)
        for answer_at, most in ways:
            judge.answer_at = answer_at
            budget = ExpansionBudget(rounds=most + 4, documents=most, checks=10_000)
            some = [texts[at] for at in rows]
            searcher = corpus.searchers[settings.retriever]
            done = expand(some, searcher, judge, corpus.get, follow=corpus.links.out, budget=budget)
            for at, one in zip(rows, done, strict=True):
                found[answer_at, most][at] = one
    points = []
    for (answer_at, most), every in found.items():
        ended = [one for one in every if one is not None]
        checks = float(np.mean([one.checks for one in ended]))
        points.append(
            _point(f"answer at {answer_at:g}", most, examples, [one.hits for one in ended], checks)
        )
    return points, seen


def _gates(
    examples: Sequence[GoldQuestion],
    lists: Sequence[Sequence[Hit]],
    corpus: _Corpus,
    settings: ExpansionSettings,
    progress: Progress | None,
) -> Iterable[tuple[Gate, list[int]]]:
    """Gates and the questions that each may judge."""
    if settings.gate != FITTED:
        yield open_gate(settings.gate, FAST), list(range(len(examples)))
        return
    fit = gate_fitter(PolicyChoice(), FAST, settings.seed, k=max(settings.most))
    complete = [
        one.gold.doc_ids <= {hit.doc_id for hit in hits[:5]} for one, hits in zip(examples, lists)
    ]
    folds = grouped_folds(
        [one.question.text for one in examples], complete, settings.folds, settings.seed
    )
    for at, (rest, held) in enumerate(folds, start=1):
        rows = rest.tolist()
        training = partial_sets(
            [examples[i] for i in rows],
            [lists[i] for i in rows],
            corpus.documents,
            seed=settings.seed,
        )
        yield fit(training), held.tolist()
        if progress is not None:
            progress("fitting on the other folds, expanding", at, len(folds))


class _CachedGate:
    """A gate with an adjustable threshold that checks each set once."""

    def __init__(self, gate: GateLike) -> None:
        self._gate = gate
        self._known: dict[tuple[str, tuple[DocId, ...], bool], Verdict] = {}
        self.answer_at = 1.0

    def check_batch(
        self,
        pairs: Iterable[Any],
        *,
        documents: Mapping[DocId, Document] | None = None,
        explain: bool = True,
        rounds_left: int = 1,
    ) -> list[Verdict]:
        wanted = [
            (question, tuple(hit.doc_id for hit in hits), explain) for question, hits in pairs
        ]
        fresh = [key for key in dict.fromkeys(wanted) if key not in self._known]
        for start in range(0, len(fresh), 512):
            some = fresh[start : start + 512]
            hits = [(question, [Hit(doc_id) for doc_id in ids]) for question, ids, _ in some]
            self._known |= zip(
                some, self._gate.check_batch(hits, documents=documents, explain=explain)
            )
        return [self._moved(self._known[key]) for key in wanted]

    def _moved(self, verdict: Verdict) -> Verdict:
        return replace(
            verdict, action=Action.ANSWER if verdict.p_complete >= self.answer_at else Action.EXPAND
        )


# ---- tables and figures

NOTE = (
    "Documents: mean number held. Complete: share of questions whose gold documents are all among them. Fewer: how many "
    "documents more the best fixed k holds to be as complete (between two k: the straight line). In brackets: 95 % bootstrap "
    "interval over questions."
)


def _table(
    fixed: Mapping[str, Sequence[Point]],
    points: Sequence[Point],
    saved: Sequence[tuple[Interval, bool]],
    settings: ExpansionSettings,
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for point in [one for curve in fixed.values() for one in curve]:
        rows.append(
            (
                point.name,
                point.k,
                point.documents,
                mean_interval(point.complete, seed=settings.seed),
                "",
                "",
            )
        )
    for point, (fewer, beyond) in zip(points, saved, strict=True):
        mark = "at least, as no fixed k is as complete" if beyond else ""
        name = f"expand {settings.retriever}, {point.name}"
        whole = mean_interval(point.complete, seed=settings.seed)
        rows.append(
            (name, point.k, point.documents, whole, fewer, mark or f"{point.checks:.0f} checks")
        )
    return Table(
        "Documents held and completeness",
        ("way", "k", "documents", "complete", "fewer", ""),
        tuple(rows),
        NOTE,
    )


def _figure(name: str, fixed: Mapping[str, Sequence[Point]], points: Sequence[Point]) -> Lines:
    grouped: dict[str, list[Point]] = {
        f"{one}, fixed k": list(curve) for one, curve in fixed.items()
    }
    for point in points:
        grouped.setdefault(f"expand, {point.name}", []).append(point)
    lines = tuple(
        Line(
            each,
            tuple(one.documents for one in some),
            tuple(float(one.complete.mean()) for one in some),
        )
        for each, some in grouped.items()
    )
    reach = max(x for line in lines for x in line.x)
    return Lines(
        f"Completeness by documents held: {name}",
        "mean documents held",
        "share complete",
        lines,
        reach=reach,
    )


def _summary(points: Sequence[Point], saved: Sequence[Interval]) -> tuple[str, ...]:
    fewer = sum(bool(one.low is not None and one.low > 0) for one in saved)
    more = sum(bool(one.high is not None and one.high < 0) for one in saved)
    best, most = max(zip(points, saved, strict=True), key=lambda pair: pair[1].value or 0.0)
    return (
        f"At equal completeness, {fewer} of {len(points)} settings hold fewer documents than any fixed k beyond chance, "
        f"{more} hold more.",
        f"Most is saved at {best.name} with at most {best.k}: {best.documents:.2f} documents held, "
        f"{float(best.complete.mean()):.3f} complete, {most.value or 0.0:.2f} documents fewer.",
    )
