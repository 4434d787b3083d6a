"""A run of retrievers as one document, and its tables and figures.

A run stores, for each system and question, the ranks of the gold. Every table, interval, comparison
and plot is computed from it without searching again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.figures import Bars, Curves, Point, Points, Series
from suffice.evaluation.metrics import Rankings, ranking_metric, score
from suffice.evaluation.result_files import load_result, result_text
from suffice.evaluation.retrieval_costs import SystemCost, cost_record, latency_quantile
from suffice.evaluation.significance import Interval, compare, interval
from suffice.evaluation.tables import Cell, Table
from suffice.registry import Registry
from suffice.storage import write_atomically

__all__ = [
    "RetrievalRun",
    "SystemResult",
    "check_ks",
    "cost_from_json",
    "retrieval_summary",
    "retrieval_table",
    "retrieval_tables",
]

VERSION = 1
MAX_DEPTH = 100_000  # hits per question in a run: its tables have a column for each
FIGURES = ("recall", "complete", "precision", "ndcg", "mrr", "map", "hits")
DEFAULT_METRICS = ("recall", "complete", "ndcg", "mrr")
# Plug-ins `tables.DATASET`: (run, narrow) -> tables that compare a run with published figures.
PUBLISHED_TABLES: Registry[list[Table]] = Registry("tables")


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
    costs: Mapping[str, SystemCost] = field(default_factory=dict)  # if measured
    not_run: Mapping[str, str] = field(default_factory=dict)  # system -> why, and what to install

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
        if self.costs and timings:
            document["costs"] = {name: asdict(cost) for name, cost in self.costs.items()}
        if self.not_run:
            document["not_run"] = dict(self.not_run)
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
        costs={name: cost_from_json(one) for name, one in dict(document.get("costs", {})).items()},
        not_run=dict(document.get("not_run", {})),
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


def cost_from_json(record: Mapping[str, Any]) -> SystemCost:
    peak = record["peak_mb"]
    return SystemCost(
        index_s=float(record["index_s"]),
        index_cpu_s=float(record["index_cpu_s"]),
        peak_mb=None if peak is None else float(peak),
        latency_ms=tuple(map(float, record["latency_ms"])),
        cpu_ms=tuple(map(float, record["cpu_ms"])),
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
    """All figures (with published ones if known), by kind, and paired comparisons."""
    tables = published_tables(run) or [retrieval_table(run, intervals=True)]
    return tables + cost_tables(run) + detail_tables(run)


def cost_tables(run: RetrievalRun) -> list[Table]:
    """Quality and cost of each system, and systems that were not run; empty without costs."""
    if not run.costs and not run.not_run:
        return []
    k, rows = run.middle_k, list[tuple[Cell, ...]]()
    for name in run.names:
        rankings, cost = run.rankings(name), run.costs.get(name)
        metrics = (f"recall@{k}", f"complete@{k}")
        figures = [interval(rankings, metric, seed=run.seed) for metric in metrics]
        rows.append((name, *figures, *_cost_cells(cost)))
    rows += [(name, None, None, *_cost_cells(None)) for name in run.not_run]
    parts = [_run_note(run, intervals=True)]
    if run.costs:
        parts.append(
            f"{run.settings.get('documents', 0):,} documents. Time of one question at a time, "
            f"{run.depth} hits, on the wall and (cpu, the median) of the processor. Index: from "
            "the documents to the first answer, without loading the encoder. MB: peak of a process "
            "with only this system."
        )
    parts += [f"Not run: {name}: {why}." for name, why in run.not_run.items()]
    times = ("p50 ms", "p95 ms", "cpu ms", "index s", "index cpu s", "MB")
    columns = ("retriever", f"recall@{k}", f"complete@{k}", *times)
    title = f"What retrievers find and cost on {run.dataset}"
    return [Table(title, columns, tuple(rows), " ".join(parts))]


def _cost_cells(cost: SystemCost | None) -> list[str | None]:
    if cost is None:
        return [None] * 6
    quantiles = ((cost.latency_ms, 0.5), (cost.latency_ms, 0.95), (cost.cpu_ms, 0.5))
    cells: list[str | None] = []
    for times, share in quantiles:
        found = latency_quantile(times, share)
        bounds = "" if found.low is None else f" [{found.low:,.1f}, {found.high:,.1f}]"
        cells.append(f"{found.value:,.1f}{bounds}")
    peak = None if cost.peak_mb is None else f"{cost.peak_mb:,.0f}"
    return [*cells, f"{cost.index_s:,.1f}", f"{cost.index_cpu_s:,.1f}", peak]


def cost_figure(run: RetrievalRun) -> Points | Bars:
    """Complete recall over the median latency of each system; without costs, as bars."""
    metric = f"complete@{run.middle_k}"
    if not run.costs:
        return metric_bars(run, metric)
    points = []
    for name, cost in run.costs.items():
        y = interval(run.rankings(name), metric, seed=run.seed)
        points.append(Point(name, latency_quantile(cost.latency_ms, 0.5), y))
    title = f"{metric} and latency on {run.dataset}"
    return Points(title, "milliseconds a question (median, logarithmic)", metric, tuple(points))


def published_tables(run: RetrievalRun, *, narrow: bool = False) -> list[Table]:
    """The run compared with published figures, if a plug-in has them for its data set."""
    if run.dataset not in PUBLISHED_TABLES.names():
        return []
    return PUBLISHED_TABLES.get(run.dataset)(run, narrow=narrow)


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
    return Table(title, columns, tuple(rows), _run_note(run, intervals))


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
    return Table(title, ("retriever", *counts), tuple(rows), _run_note(run, intervals))


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


def _run_note(run: RetrievalRun, intervals: bool) -> str:
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


def depth_curves(run: RetrievalRun, metric: str, *, ks: Sequence[int] | None = None) -> Curves:
    """A metric without its k, at the run's own cutoffs or at `ks`."""
    points, lines = tuple(ks or run.ks), []
    for name in run.names:
        rankings = run.rankings(name)
        values = (interval(rankings, f"{metric}@{k}", seed=run.seed) for k in points)
        lines.append(Series(name, tuple(values)))
    title, across = f"{metric}@k on {run.dataset}", "k (hits read)"
    return Curves(title, across, f"{metric}@k", points, tuple(lines))


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
        "costs": {name: cost_record(cost) for name, cost in run.costs.items()},
        "not_run": dict(run.not_run),
    }
