"""A run of retrievers as one document, and its tables, plots and page.

A run stores, for each system and question, the ranks of the gold. Every table, interval, comparison
and plot is computed from it without searching again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.metrics import RANKING, Rankings, ranking_metric, score
from suffice.evaluation.report import (
    Bars,
    Cell,
    Line,
    Lines,
    Page,
    Plot,
    Section,
    Series,
    Table,
    format_cell,
)
from suffice.evaluation.result_files import load_result, result_text, run_settings
from suffice.evaluation.significance import Interval, compare, interval
from suffice.storage import write_atomically

__all__ = [
    "RetrievalRun",
    "SystemResult",
    "check_ks",
    "retrieval_page",
    "retrieval_summary",
    "retrieval_table",
    "retrieval_tables",
]

VERSION = 1
MAX_DEPTH = 100_000  # hits per question in a run: its tables have a column for each
FIGURES = ("recall", "complete", "precision", "ndcg", "mrr", "map", "hits")
DEFAULT_METRICS = ("recall", "complete", "ndcg", "mrr")


@dataclass(frozen=True)
class SystemResult:
    """The results of one system: ranks (from 1) of the gold, best scores, and errors."""

    name: str
    ranks: tuple[tuple[int, ...], ...]
    top_scores: tuple[float | None, ...]  # -inf: nothing found; None: unknown
    errors: Mapping[str, str] = field(default_factory=dict)  # question id -> error


@dataclass(frozen=True)
class RetrievalRun:
    """One evaluation of retrieval. A failed question counts as one where nothing was found."""

    dataset: str
    ks: tuple[int, ...]
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    gold: tuple[int, ...]  # number of gold documents per question; 0: a null question
    systems: tuple[SystemResult, ...]
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)  # file name -> sha256
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)  # system -> search time in seconds

    @property
    def depth(self) -> int:
        return max(self.ks)

    @property
    def middle_k(self) -> int:
        return self.ks[len(self.ks) // 2]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(system.name for system in self.systems)

    @property
    def known_kinds(self) -> list[str]:
        return sorted({kind for kind in self.kinds if kind})

    def system(self, name: str) -> SystemResult:
        for system in self.systems:
            if system.name == name:
                return system
        known = did_you_mean(name, self.names)
        raise InputError(f"the run has no system named {name!r}", hint=known)

    def rankings(self, name: str, *, kind: str | None = None) -> Rankings:
        """A system's rankings for the metrics; with `kind`, only questions of that kind."""
        system = self.system(name)
        relevance = np.zeros((len(self.gold), self.depth))
        rows = np.repeat(np.arange(len(self.gold)), [len(ranks) for ranks in system.ranks])
        ranks = np.fromiter((rank for ranks in system.ranks for rank in ranks), np.intp)
        np.add.at(relevance, (rows, ranks - 1), 1)
        scores = [math.nan if one is None else one for one in system.top_scores]
        rankings = Rankings(relevance, self.gold, scores)
        if kind is None:
            return rankings
        if kind not in self.kinds:
            raise InputError(
                f"the run has no questions of kind {kind!r}",
                hint=did_you_mean(kind, self.known_kinds),
            )
        return rankings.rows(np.array([one == kind for one in self.kinds]))

    def to_json(self, *, timings: bool = True) -> str:
        """The document; without timings, two runs with the same seed give the same text."""
        systems = []
        for system in self.systems:
            # JSON has no infinity: "none found" means an empty result, null an unknown score.
            scores = ["none found" if one == -math.inf else one for one in system.top_scores]
            systems.append({**asdict(system), "top_scores": scores})
        columns = {"ids": self.question_ids, "kinds": self.kinds, "gold": self.gold}
        plain = ("dataset", "seed", "settings", "data", "packages", "commit", "ks")
        document = {
            "kind": "run",
            "version": VERSION,
            "task": "retrieval",
            **{name: getattr(self, name) for name in plain},
            "questions": columns,
            "systems": systems,
            "timings": dict(self.timings) if timings else {},
        }
        return result_text(document)

    def save(self, path: Path) -> Path:
        """Write the document atomically; return its path."""
        write_atomically(Path(path), self.to_json())
        return Path(path)

    @staticmethod
    def load(path: Path) -> RetrievalRun:
        """Load a run; the error says what the file is instead, or which version."""
        options: Any = {"version": VERSION, "command": "suffice evaluate retrieval"}
        return load_result(path, _run_from_json, kind="run", what="run", **options)


def _run_from_json(document: Mapping[str, Any]) -> RetrievalRun:
    questions = document["questions"]
    run = RetrievalRun(
        dataset=str(document["dataset"]),
        ks=check_ks(document["ks"]),
        question_ids=tuple(map(str, questions["ids"])),
        kinds=tuple(None if kind is None else str(kind) for kind in questions["kinds"]),
        gold=tuple(map(int, questions["gold"])),
        systems=tuple(map(_system_from_json, document["systems"])),
        seed=int(document["seed"]),
        settings=dict(document["settings"]),
        data=dict(document["data"]),
        packages=dict(document["packages"]),
        commit=document["commit"],
        timings=dict(document["timings"]),
    )
    lengths = {len(run.question_ids), len(run.kinds), len(run.gold)}
    lengths |= {len(one) for system in run.systems for one in (system.ranks, system.top_scores)}
    if len(lengths) > 1:
        raise ValueError("its columns have different lengths")
    if run.seed < 0:
        raise ValueError(f"its seed is {run.seed}")
    ranks = (rank for system in run.systems for one in system.ranks for rank in one)
    if any(not 1 <= rank <= run.depth for rank in ranks):
        raise ValueError(f"a rank lies outside 1 to {run.depth}")
    return run


def _system_from_json(record: Mapping[str, Any]) -> SystemResult:
    scores = (-math.inf if one == "none found" else one for one in record["top_scores"])
    return SystemResult(
        name=str(record["name"]),
        ranks=tuple(tuple(map(int, ranks)) for ranks in record["ranks"]),
        top_scores=tuple(None if one is None else float(one) for one in scores),
        errors=dict(record["errors"]),
    )


def check_ks(ks: Sequence[int]) -> tuple[int, ...]:
    def whole(k: Any) -> bool:
        return isinstance(k, int) and not isinstance(k, bool) and 1 <= k <= MAX_DEPTH

    if not ks or not all(map(whole, ks)):
        raise InputError(
            f"k is {list(ks)!s:.80}, expected whole numbers from 1 to {MAX_DEPTH:,}",
            hint="for example --k 2,4,8",
        )
    return tuple(sorted(set(ks)))


# ------------------------------------------------------------------------------------ what is shown


def retrieval_tables(run: RetrievalRun) -> list[Table]:
    """All figures, by kind, and paired comparisons."""
    return [retrieval_table(run, intervals=True), *detail_tables(run)]


def detail_tables(run: RetrievalRun, *, intervals: bool = False) -> list[Table]:
    """complete@k by kind of question, and each system against the first."""
    metric, tables = f"complete@{run.middle_k}", []
    if len(run.known_kinds) > 1:
        tables.append(kind_table(run, metric, intervals=intervals))
    if len(run.names) > 1:
        tables.append(comparison_table(run, metric))
    return tables


def retrieval_table(
    run: RetrievalRun,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    ks: Sequence[int] | None = None,
    intervals: bool = False,
    title: str = "",
) -> Table:
    """One row for each system and k, one column for each metric, named without its k.

    A metric without k (null_rejection) repeats in every row of its system, and has a single row if
    it is the only metric.
    """
    takes_k = {name: ranking_metric(name).metric.at == "k" for name in metrics}
    cutoffs: Sequence[int | None] = (ks or run.ks) if any(takes_k.values()) else (None,)
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        rankings = run.rankings(system)
        for k in cutoffs:
            names = [f"{name}@{k}" if takes_k[name] else name for name in metrics]
            if intervals:
                cells = [interval(rankings, name, seed=run.seed) for name in names]
            else:
                cells = [Interval(score(rankings, name)) for name in names]
            rows.append((system, k, *cells))
    columns = ("retriever", "k", *metrics)
    title = title or f"Retrieval on {run.dataset}"
    return Table(title, columns, tuple(rows), run_note(run, intervals))


def kind_table(run: RetrievalRun, metric: str, *, intervals: bool = False) -> Table:
    """One row for each system, one column for each kind of question: where a system is weak."""
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        parts = [run.rankings(system, kind=kind) for kind in run.known_kinds]
        if intervals:
            rows.append((system, *(interval(part, metric, seed=run.seed) for part in parts)))
        else:
            rows.append((system, *(score(part, metric) for part in parts)))
    counts = [f"{kind} (n={run.kinds.count(kind):,})" for kind in run.known_kinds]
    title = f"{metric} by kind of question on {run.dataset}"
    return Table(title, ("retriever", *counts), tuple(rows), run_note(run, intervals))


def comparison_table(run: RetrievalRun, metric: str, *, against: str | None = None) -> Table:
    """Each system against one of them (the first by default), paired over questions."""
    base = against or run.names[0]
    reference = run.rankings(base)
    rows: list[tuple[Cell, ...]] = []
    for system in run.names:
        if system != base:
            difference = compare(run.rankings(system), reference, metric, seed=run.seed)
            rows.append((system, difference, difference.p))
    note = (
        "Difference with 95 % interval and two-sided p, "
        "paired bootstrap over questions, 1,000 resamples."
    )
    title = f"{metric} against {base} on {run.dataset}"
    return Table(title, ("retriever", "difference", "p"), tuple(rows), note)


def run_note(run: RetrievalRun, intervals: bool) -> str:
    nulls = sum(not gold for gold in run.gold)
    without = f" and {nulls:,} null questions" if nulls else ""
    parts = [f"n = {len(run.gold) - nulls:,} questions{without}."]
    if intervals:
        parts.append("In brackets: 95 % bootstrap interval over questions.")
    for system in run.systems:
        if system.errors:
            failed = f"{len(system.errors):,} of {len(run.gold):,} questions"
            parts.append(f"{system.name}: {failed} failed and count as nothing found.")
    return " ".join(parts)


def metric_bars(run: RetrievalRun, metric: str) -> Bars:
    """One metric for every system of a run."""
    bars = tuple(
        Series(name, (interval(run.rankings(name), metric, seed=run.seed),)) for name in run.names
    )
    return Bars(f"{metric} on {run.dataset}", metric, bars)


def depth_lines(run: RetrievalRun, metric: str) -> Lines:
    """A metric without its k, at the run's cutoffs."""
    lines = []
    for name in run.names:
        rankings = run.rankings(name)
        values = tuple(score(rankings, f"{metric}@{k}") or 0.0 for k in run.ks)
        lines.append(Line(name, run.ks, values))
    title, across = f"{metric}@k on {run.dataset}", "k (hits read)"
    return Lines(title, across, f"{metric}@k", tuple(lines), reach=run.depth)


def retrieval_summary(run: RetrievalRun) -> dict[str, Any]:
    """The run for scripts: every figure of every retriever with its interval."""
    figures = {}
    for name in run.names:
        rankings = run.rankings(name)
        wanted = [f"{metric}@{k}" for k in run.ks for metric in FIGURES]
        figures[name] = {one: asdict(interval(rankings, one, seed=run.seed)) for one in wanted}
    return {
        "dataset": run.dataset,
        "n": sum(gold > 0 for gold in run.gold),
        "n_null": sum(gold == 0 for gold in run.gold),
        "k": list(run.ks),
        "seed": run.seed,
        "commit": run.commit,
        "settings": dict(run.settings),
        "data": dict(run.data),
        "retrievers": figures,
        "failed": {system.name: dict(system.errors) for system in run.systems if system.errors},
        "seconds": dict(run.timings),
    }


# ------------------------------------------------------------------------------------ the page


def retrieval_page(run: RetrievalRun, *, command: str = "") -> Page:
    """The report of a run; `command` reproduces it."""
    nulls = sum(not gold for gold in run.gold)
    without = f", {nulls:,} without" if nulls else ""
    counts = f"{len(run.gold) - nulls:,} questions with gold documents{without}"
    failed = []
    for name, errors in ((one.name, one.errors) for one in run.systems):
        if errors:
            question, error = next(iter(errors.items()))
            many = f"{len(errors):,} questions failed and count"
            many = many if len(errors) > 1 else "1 question failed and counts"
            failed.append(f"{name}: {many} as nothing found. The first is {question}: {error}")
    return Page(
        title=f"Retrieval on {run.dataset}",
        about=f"{counts}; {', '.join(run.names)}; k = {', '.join(map(str, run.ks))}",
        summary=_summary(run, run.middle_k),
        sections=(
            Section("Figures", _figures(run, run.middle_k)),
            Section(
                "Tables",
                (retrieval_table(run, intervals=True), *detail_tables(run, intervals=True)),
            ),
        ),
        settings=[
            ("data set", run.dataset),
            ("questions", f"{len(run.gold):,}"),
            *run_settings(run),
        ],
        meanings=[(one.name, one.meaning) for one in RANKING if one.name in DEFAULT_METRICS],
        failed=failed,
        command=command,
    )


def _figures(run: RetrievalRun, middle: int) -> tuple[Plot, ...]:
    says = f"Share of questions whose gold is all among the first {middle} hits."
    figures: list[Plot] = [replace(metric_bars(run, f"complete@{middle}"), says=says)]
    if len(run.ks) > 1:
        says = "Share of the gold documents found as more hits are read."
        figures.append(replace(depth_lines(run, "recall"), says=says))
        says = "Share of questions with all gold documents found as more hits are read."
        figures.append(replace(depth_lines(run, "complete"), says=says))
    return tuple(figures)


def _summary(run: RetrievalRun, k: int) -> list[str]:
    """The results in plain words."""
    metric = f"complete@{k}"
    values = {name: score(run.rankings(name), metric) for name in run.names}
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return [
            "No question of this run has gold documents, "
            "so nothing can be said about what was found."
        ]
    best = max(known, key=lambda name: known[name])
    share = score(run.rankings(best), f"recall@{k}") or 0.0
    lines = [
        f"Among the first {k} hits, {best} holds every document that is needed for "
        f"{known[best]:.0%} of the questions. On average it holds {share:.0%} of the documents "
        "that a question needs."
    ]
    others = [name for name in known if name != best]
    if others:
        second = max(others, key=lambda name: known[name])
        gap = compare(run.rankings(best), run.rankings(second), metric, seed=run.seed)
        above = gap.low is not None and gap.low > 0
        sure = "that is more than chance explains" if above else "chance can explain that"
        lines.append(f"It stands {format_cell(gap)} above {second}, the next best; {sure}.")
    return lines
