"""A run: systems times questions, kept as one document that says what was measured, on what, and with which versions.

The record keeps, for each system and question, the ranks that hold gold. Every table, interval, comparison and plot is computed
from it afterwards, so a figure can be asked for later without searching again. Timings stand apart: two runs with the same seed
are the same bytes but for them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.datasets.gold import GoldQuestion
from suffice.errors import InputError, did_you_mean
from suffice.evaluation.metrics import Rankings, judge_rankings
from suffice.evaluation.result_files import load_result, result_text
from suffice.evaluation.searching import RetrieverSet
from suffice.jobs import Job, JobRunner, run_in_process
from suffice.protocols import Progress
from suffice.storage import package_versions, write_atomically
from suffice.types import DocId, Hit

if TYPE_CHECKING:
    from suffice.protocols import Retriever

__all__ = ["GIVEN", "RetrievalRun", "SystemResult", "evaluate_retrieval", "source_commit"]

VERSION = 1
DEEPEST = 100_000  # hits of a question that a run may speak of: its tables have a column for each
GIVEN = "given"  # the system that stands for hits which came with the examples
_FIRST_DEPTH, _MOST_DEPTH = 4, 16  # chunks asked for each wanted parent, at first and at most

Parents = Mapping[DocId, DocId] | Callable[[DocId], DocId]


@dataclass(frozen=True)
class SystemResult:
    """What one system found: the ranks (from 1) that hold gold, the best score, and the error where a question failed."""

    name: str
    ranks: tuple[tuple[int, ...], ...]
    top_scores: tuple[float | None, ...]  # -inf: nothing found; None: unknown
    errors: Mapping[str, str] = field(default_factory=dict)  # question id -> error


@dataclass(frozen=True)
class RetrievalRun:
    """One evaluation of retrieval, as a document. A failed question counts as one where nothing was found."""

    dataset: str
    ks: tuple[int, ...]
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    gold: tuple[int, ...]  # number of gold documents of each question; 0: a null question
    systems: tuple[SystemResult, ...]
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)  # file name -> sha256
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)  # system -> seconds of searching

    @property
    def depth(self) -> int:
        return max(self.ks)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(system.name for system in self.systems)

    def system(self, name: str) -> SystemResult:
        for system in self.systems:
            if system.name == name:
                return system
        raise InputError(
            f"the run has no system named {name!r}", hint=did_you_mean(name, self.names)
        )

    def judged(self, name: str, *, kind: str | None = None) -> Rankings:
        """A system's rankings, ready for metrics; with `kind`, only the questions of that kind."""
        system = self.system(name)
        relevance = np.zeros((len(self.gold), self.depth))
        rows = np.repeat(np.arange(len(self.gold)), [len(ranks) for ranks in system.ranks])
        np.add.at(
            relevance,
            (rows, np.fromiter((rank - 1 for ranks in system.ranks for rank in ranks), np.intp)),
            1,
        )
        scores = [math.nan if score is None else score for score in system.top_scores]
        judged = Rankings(relevance, self.gold, scores)
        if kind is None:
            return judged
        if kind not in self.kinds:
            raise InputError(
                f"the run has no questions of kind {kind!r}",
                hint=did_you_mean(kind, {one for one in self.kinds if one}),
            )
        return judged.rows(np.array([one == kind for one in self.kinds]))

    def to_json(self, *, timings: bool = True) -> str:
        """The document; without timings, two runs with the same seed give the same text."""
        document = {
            "kind": "run",
            "version": VERSION,
            "task": "retrieval",
            "dataset": self.dataset,
            "seed": self.seed,
            "settings": dict(self.settings),
            "data": dict(self.data),
            "packages": dict(self.packages),
            "commit": self.commit,
            "ks": self.ks,
            "questions": {"ids": self.question_ids, "kinds": self.kinds, "gold": self.gold},
            "systems": [_system_to_json(system) for system in self.systems],
            "timings": dict(self.timings) if timings else {},
        }
        return result_text(document)

    def save(self, path: Path) -> Path:
        """Write the document whole or not at all; returns where."""
        write_atomically(Path(path), self.to_json())
        return Path(path)

    @staticmethod
    def load(path: Path) -> RetrievalRun:
        """Read a run that this version can read; the error says what else the file is."""
        return load_result(
            path,
            _run_from_json,
            kind="run",
            named="run",
            version=VERSION,
            again="suffice evaluate retrieval",
        )


def _system_to_json(system: SystemResult) -> dict[str, Any]:
    # JSON has no infinity: an empty result is written as the word, an unknown score as null.
    scores = ["none found" if score == -math.inf else score for score in system.top_scores]
    return {
        "name": system.name,
        "ranks": system.ranks,
        "top_scores": scores,
        "errors": dict(system.errors),
    }


def _run_from_json(document: Mapping[str, Any]) -> RetrievalRun:
    questions = document["questions"]
    run = RetrievalRun(
        dataset=str(document["dataset"]),
        ks=_check_ks(document["ks"]),
        question_ids=tuple(map(str, questions["ids"])),
        kinds=tuple(None if kind is None else str(kind) for kind in questions["kinds"]),
        gold=tuple(map(int, questions["gold"])),
        systems=tuple(_system_from_json(one) for one in document["systems"]),
        seed=int(document["seed"]),
        settings=dict(document["settings"]),
        data=dict(document["data"]),
        packages=dict(document["packages"]),
        commit=document["commit"],
        timings=dict(document["timings"]),
    )
    lengths = {len(run.question_ids), len(run.kinds), len(run.gold)}
    lengths |= {
        len(column) for system in run.systems for column in (system.ranks, system.top_scores)
    }
    if len(lengths) > 1:
        raise ValueError("its columns have different lengths")
    if run.seed < 0:
        raise ValueError(f"its seed is {run.seed}")
    if any(
        not 1 <= rank <= run.depth
        for system in run.systems
        for ranks in system.ranks
        for rank in ranks
    ):
        raise ValueError(f"a rank lies outside 1 to {run.depth}")
    return run


def _system_from_json(document: Mapping[str, Any]) -> SystemResult:
    scores = (-math.inf if score == "none found" else score for score in document["top_scores"])
    return SystemResult(
        name=str(document["name"]),
        ranks=tuple(tuple(map(int, ranks)) for ranks in document["ranks"]),
        top_scores=tuple(None if score is None else float(score) for score in scores),
        errors=dict(document["errors"]),
    )


# ---------------------------------------------------------------------------------------------------- running


def evaluate_retrieval(
    dataset: str,
    examples: Iterable[GoldQuestion],
    retrievers: Mapping[str, Retriever],
    ks: Sequence[int] = (2, 4, 8),
    *,
    parents: Parents | None = None,
    batch: int = 64,
    progress: Progress | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    data: Mapping[str, str] | None = None,
    commit: str | None = None,
    mapped: JobRunner = run_in_process,
) -> RetrievalRun:
    """Search every question with every retriever and keep where the gold came out.

    With `parents` (chunk id -> id of the whole; ids that it does not hold stand for themselves) chunks are folded into their
    parents: the first chunk gives the parent's place. Hits that came with the examples are judged as the system "given".
    """
    examples = list(examples)
    cutoffs = _check_ks(ks)
    ids = [example.question.question_id for example in examples]
    if not examples:
        raise InputError("there are no questions to evaluate", hint="check the questions file")
    if len(set(ids)) < len(ids):
        twice = next(one for at, one in enumerate(ids) if one in ids[:at])
        raise InputError(
            f"question id {twice!r} occurs twice", hint="give each question its own id"
        )
    if batch < 1:
        raise InputError(f"batch is {batch}, expected at least 1")
    given = all(example.hits is not None for example in examples)
    if GIVEN in retrievers and given:
        raise InputError(
            f"the name {GIVEN!r} is taken by the hits that came with the examples",
            hint="choose another name",
        )
    if not retrievers and not given:
        raise InputError(
            "there is nothing to evaluate: no retriever, and not every example has hits",
            hint="name a retriever, like bm25",
        )

    run = RetrievalRun(
        dataset=dataset,
        ks=cutoffs,
        question_ids=tuple(ids),
        kinds=tuple(example.gold.kind for example in examples),
        gold=tuple(len(set(example.gold.doc_ids)) for example in examples),
        systems=(),
        seed=seed,
        settings={"batch": batch, "folded": parents is not None, **(settings or {})},
        data=dict(data or {}),
        packages=package_versions(),
        commit=commit if commit is not None else source_commit(),
    )
    fold = _parent_of(parents)
    systems: list[SystemResult] = []
    if given:
        ranked = [_fold_hits(example.hits or (), fold) for example in examples]
        systems.append(
            _system_result(GIVEN, examples, [_RankedIds.of(hits) for hits in ranked], run.depth)
        )
    found = _search_all(retrievers, examples, parents, run.depth, batch, mapped, progress)
    systems += [_system_result(name, examples, found[name], run.depth) for name in retrievers]
    timings = {name: sum(one.seconds for one in found[name]) for name in retrievers}
    return replace(run, systems=tuple(systems), timings=timings)


def _check_ks(ks: Sequence[int]) -> tuple[int, ...]:
    if not ks or any(
        isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= DEEPEST for k in ks
    ):
        raise InputError(
            f"k is {list(ks)!s:.80}, expected whole numbers from 1 to {DEEPEST:,}",
            hint="for example --k 2,4,8",
        )
    return tuple(sorted(set(ks)))


def _parent_of(parents: Parents | None) -> Callable[[DocId], DocId]:
    if parents is None:
        return lambda doc_id: doc_id
    if callable(parents):
        return parents
    return lambda doc_id: parents.get(doc_id, doc_id)


def _fold_hits(hits: Sequence[Hit], fold: Callable[[DocId], DocId]) -> tuple[Hit, ...]:
    first: dict[DocId, Hit] = {}
    for hit in hits:
        parent = fold(hit.doc_id)
        first.setdefault(parent, hit if parent == hit.doc_id else replace(hit, doc_id=parent))
    return tuple(first.values())


@dataclass(frozen=True, slots=True)
class _Query:
    """A question on its way to a retriever."""

    name: str
    question_id: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.name}, question {self.question_id!r}"


@dataclass(frozen=True, slots=True)
class _RankedIds:
    """What came of it: the documents in order and the best score, or the error; and how long it took."""

    doc_ids: list[DocId]
    top_score: float | None
    error: str | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> _RankedIds:
        return cls([hit.doc_id for hit in hits], _top_score(hits))


def _search_all(
    retrievers: Mapping[str, Retriever],
    examples: Sequence[GoldQuestion],
    parents: Parents | None,
    depth: int,
    batch: int,
    mapped: JobRunner,
    progress: Progress | None,
) -> dict[str, list[_RankedIds]]:
    """For each retriever what it found for each question, in blocks of `batch` questions."""
    asked = [(one.question.question_id, one.question.text) for one in examples]
    blocks = (
        [_Query(name, *one) for one in asked[start : start + batch]]
        for name in retrievers
        for start in range(0, len(asked), batch)
    )
    key = (
        f"{retrievers.key} {depth}"
        if isinstance(retrievers, RetrieverSet) and mapped is not run_in_process
        else ""
    )
    job = Job("searching", partial(_search_block, depth=depth), (retrievers, parents), key=key)
    found: dict[str, list[_RankedIds]] = {name: [] for name in retrievers}
    results = mapped(job, blocks)
    for name in retrievers:
        while len(found[name]) < len(examples):
            found[name] += [_RankedIds(*row) for row in next(results)]
            if progress is not None:
                progress(name, len(found[name]), len(examples))
    return found


def _search_block(
    block: Sequence[_Query], shared: tuple[Mapping[str, Retriever], Parents | None], *, depth: int
) -> list[list[Any]]:
    """As rows of `_Found`: together, and alone where the block fails."""
    retrievers, parents = shared
    search = _BlockSearch(
        retrievers[block[0].name], depth, _parent_of(parents), deepen=parents is not None
    )
    started = time.perf_counter()
    try:
        found = [_RankedIds.of(hits) for hits in search.folded([one.text for one in block])]
    except Exception:  # noqa: BLE001 - a retriever may raise anything; alone, each question shows whose fault it is
        found = [search.alone(one.text) for one in block]
    seconds = (time.perf_counter() - started) / len(block)
    return [[one.doc_ids, one.top_score, one.error, seconds] for one in found]


class _BlockSearch:
    """One retriever's way through a block: deeper where chunks fold together."""

    def __init__(
        self, retriever: Retriever, depth: int, fold: Callable[[DocId], DocId], *, deepen: bool
    ) -> None:
        self.retriever, self.depth, self.fold, self.deepen = retriever, depth, fold, deepen

    def alone(self, text: str) -> _RankedIds:
        try:
            return _RankedIds.of(self.folded([text])[0])
        except Exception as error:  # noqa: BLE001 - recorded, not fatal
            return _RankedIds([], None, f"{type(error).__name__}: {error}")

    def folded(self, texts: Sequence[str]) -> list[tuple[Hit, ...]]:
        asked = self.depth * (_FIRST_DEPTH if self.deepen else 1)
        found = self._hits(texts, asked)
        folded = [_fold_hits(hits, self.fold) for hits in found]
        short = [
            at
            for at, hits in enumerate(found)
            if len(hits) >= asked and len(folded[at]) < self.depth
        ]
        while self.deepen and short and asked < self.depth * _MOST_DEPTH:
            asked *= 2
            deeper = self._hits([texts[at] for at in short], asked)
            folded = [*folded]
            for at, hits in zip(short, deeper):
                folded[at] = _fold_hits(hits, self.fold)
            short = [
                at
                for at, hits in zip(short, deeper)
                if len(hits) >= asked and len(folded[at]) < self.depth
            ]
        return folded

    def _hits(self, texts: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        found = self.retriever.search(texts, k=k)
        if len(found) != len(texts):
            raise InputError(f"the retriever gave {len(found)} results for {len(texts)} questions")
        return found


def _system_result(
    name: str, examples: Sequence[GoldQuestion], found: Sequence[_RankedIds], depth: int
) -> SystemResult:
    ranked = [one.doc_ids for one in found]
    judged = judge_rankings(ranked, [example.gold.doc_ids for example in examples], depth=depth)
    ranks = tuple(tuple((np.flatnonzero(row) + 1).tolist()) for row in judged.relevance)
    errors = {
        example.question.question_id: one.error
        for example, one in zip(examples, found)
        if one.error is not None
    }
    return SystemResult(name, ranks, tuple(one.top_score for one in found), errors)


def _top_score(hits: Sequence[Hit]) -> float | None:
    if not hits:
        return -math.inf
    score = hits[0].score
    return float(score) if score is not None and math.isfinite(score) else None


def source_commit(package: Path | None = None) -> str | None:
    """The commit of the checkout that this package runs from; None for an installed wheel. Read from git's own files."""
    root = (package or Path(__file__)).resolve().parent
    for folder in (root, *root.parents):
        if (folder / "pyproject.toml").is_file():
            return _head(folder / ".git")
    return None


def _head(git: Path) -> str | None:
    try:
        if git.is_file():  # a worktree: the file names the real folder
            git = (
                git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            ).resolve()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        common = git / "commondir"
        home = (
            (git / common.read_text(encoding="utf-8").strip()).resolve()
            if common.is_file()
            else git
        )
        name = head.removeprefix("ref: ")
        if (home / name).is_file():
            return (home / name).read_text(encoding="utf-8").strip()
        packed = (home / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(" " + name)), None)
    except (OSError, UnicodeDecodeError):
        return None
