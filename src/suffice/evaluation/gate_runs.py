"""A gate's run: probability, outcome and action for each question, as one document.

All figures are computed from it: the gate's, the baselines' on the same questions, by kind and by
hops, and the results of the policy's decisions. `run_overview` gives plain values for a page on
which the reader can move the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.metrics import Predictions, ece_by_chance, reliability, score
from suffice.evaluation.report import Cell, Line, Lines, Table
from suffice.evaluation.result_files import load_result, result_text
from suffice.evaluation.significance import Interval, interval, mean_interval
from suffice.gate.policy import RealizedRisk, choose_by_risk
from suffice.storage import write_atomically
from suffice.storage.fields import dataclass_from_json
from suffice.types import Action

__all__ = [
    "FIGURE_NAMES",
    "GateRun",
    "gate_figures",
    "gate_summary",
    "gate_tables",
    "reliability_lines",
    "run_overview",
]

Bools = npt.NDArray[np.bool_]
VERSION = 1
METRICS = {"auroc": "auroc", "ap": "auprc", "brier": "brier", "ece": "ece", "aurc": "aurc"}
DECISIONS = ("accuracy", "precision", "recall", "f1")
FIGURE_NAMES = ("positive_rate", *METRICS, *DECISIONS, "risk", "coverage")
MIN_ROW = 10  # questions that a kind needs for its own row


@dataclass(frozen=True)
class GateRun:
    """One evaluation of a gate, as a document. Columns have one entry per question."""

    dataset: str
    retriever: str
    k: int
    gate: str  # "default", a path, or "fitted": on the other folds of the same questions
    question_ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    hops: tuple[int, ...]
    complete: tuple[bool, ...]
    p: tuple[float, ...]
    actions: tuple[str, ...]
    policy: str = ""  # a description
    labels: tuple[tuple[str, ...], ...] = ()  # kinds of reasoning; a question may have several
    baselines: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    seed: int = 42
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.p)

    def predictions(self, baseline: str | None = None) -> Predictions:
        """The probabilities of the gate or of a baseline, with the outcomes."""
        if baseline is not None and baseline not in self.baselines:
            known = did_you_mean(baseline, self.baselines)
            raise InputError(f"the run has no baseline named {baseline!r}", hint=known)
        p = self.p if baseline is None else self.baselines[baseline]
        return Predictions(np.array(self.complete, dtype=float), p)

    @property
    def answered(self) -> Bools:
        return np.array([action == Action.ANSWER for action in self.actions], dtype=bool)

    @property
    def seen(self) -> int:
        """How many of the questions the gate was fitted on."""
        return int(self.settings.get("seen", 0))

    @property
    def groups(self) -> dict[str, list[tuple[Any, ...]]]:
        """The grouping columns: for each question its values, usually one."""
        groups: dict[str, list[tuple[Any, ...]]] = {
            "kind": [() if kind is None else (kind,) for kind in self.kinds]
        }
        if any(self.labels):
            groups["label"] = [tuple(dict.fromkeys(one)) for one in self.labels]
        return groups | {"hops": [(count,) for count in self.hops]}

    def to_json(self, *, timings: bool = True) -> str:
        """The document; without timings, two runs with the same seed give the same text."""
        document = {"kind": "run", "task": "gate", "version": VERSION, **asdict(self)}
        return result_text(document if timings else {**document, "timings": {}})

    def save(self, path: Path) -> Path:
        write_atomically(Path(path), self.to_json())
        return Path(path)

    @staticmethod
    def load(path: Path) -> GateRun:
        """Load a run; the error says what the file is instead, or which version."""
        options: Any = {"version": VERSION, "command": "suffice evaluate gate", "kind": "run"}
        return load_result(path, _gate_run_from_json, what="gate's run", task="gate", **options)


def _gate_run_from_json(document: dict[str, Any]) -> GateRun:
    marks = ("kind", "task", "version")
    fields = {name: value for name, value in document.items() if name not in marks}
    run = dataclass_from_json(GateRun, fields)
    columns: list[Sequence[Any]] = [
        run.question_ids,
        run.kinds,
        run.hops,
        run.complete,
        run.p,
        run.actions,
    ]
    columns += [*run.baselines.values(), run.labels or run.p]
    if len(set(map(len, columns))) > 1:
        raise ValueError("its columns have different lengths")
    for baseline in (None, *run.baselines):
        run.predictions(baseline)  # InputError, a ValueError, on an invalid probability
    return run


# ------------------------------------------------------------------------------------ figures


def gate_figures(run: GateRun, rows: Bools | None = None) -> dict[str, Interval]:
    """Every figure of the run, or of some of its questions, with its interval."""
    chosen = np.ones(len(run), dtype=bool) if rows is None else rows
    labels, answered = np.array(run.complete, dtype=float)[chosen], run.answered[chosen]
    predictions = Predictions(labels, np.array(run.p)[chosen])
    decisions = Predictions(labels, answered.astype(float))
    wrong = np.where(answered, 1.0 - labels, np.nan)  # NaN: not answered, not counted
    seed = run.seed
    return {
        "positive_rate": interval(predictions, "positive_rate", seed=seed),
        **{name: interval(predictions, one, seed=seed) for name, one in METRICS.items()},
        **{name: interval(decisions, name, seed=seed) for name in DECISIONS},
        "risk": mean_interval(wrong, seed=seed),
        "coverage": mean_interval(answered.astype(float), seed=seed),
    }


def gate_summary(run: GateRun) -> dict[str, Any]:
    """The run for scripts: every figure with its interval, the baselines, and the groups."""
    whole = gate_figures(run)
    baselines = {}
    for name in run.baselines:
        predictions = run.predictions(name)
        baselines[name] = {
            **{figure: score(predictions, metric) for figure, metric in METRICS.items()},
            "ece_by_chance": ece_by_chance(predictions.probabilities),
            "auroc_interval": asdict(interval(predictions, "auroc", seed=run.seed)),
        }
    groups: dict[str, dict[str, Any]] = {}
    for group, column in run.groups.items():
        groups[f"by_{group}"] = {
            value: {"n": int(rows.sum()), **_values(gate_figures(run, rows))}
            for value, rows in _split_by(column)
        }
    return {
        "dataset": run.dataset,
        "retriever": run.retriever,
        "k": run.k,
        "gate": run.gate,
        "seed": run.seed,
        "n": len(run),
        "seen": run.seen,
        **_values(whole),
        "ece_by_chance": ece_by_chance(run.p),
        "answered": int(run.answered.sum()),
        "actions": {str(action): run.actions.count(action) for action in Action},
        "policy": run.policy,
        "intervals": {name: asdict(one) for name, one in whole.items()},
        "baselines": baselines,
        **groups,
        "settings": dict(run.settings),
        "data": dict(run.data),
        "seconds": dict(run.timings),
    }


def _values(figures: Mapping[str, Interval]) -> dict[str, float | None]:
    return {name: one.value for name, one in figures.items()}


def _split_by(column: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, Bools]]:
    """Each value of the column, with the questions that have it."""
    for value in sorted({value for one in column for value in one}):
        yield str(value), np.array([value in one for one in column])


# ------------------------------------------------------------------------------------ tables


def gate_tables(run: GateRun) -> list[Table]:
    """The gate compared with the baselines, its decisions, and its weak groups."""
    found, columns = gate_figures(run), ("risk", "coverage", *DECISIONS)
    row = tuple(found[name] for name in columns)
    tables = [_baseline_table(run)]
    tables.append(Table("What the policy's decisions came to", columns, (row,), run.policy))
    by = [_group_table(run, group, column) for group, column in run.groups.items()]
    return tables + [table for table in by if len(table.rows) > 1]


def _baseline_table(run: GateRun) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for baseline in (None, *run.baselines):
        one = run.predictions(baseline)
        rest = [score(one, metric) for metric in METRICS.values() if metric != "auroc"]
        figures = (interval(one, "auroc", seed=run.seed), *rest, ece_by_chance(one.probabilities))
        rows.append((baseline or f"gate ({run.gate})", *figures))
    share = sum(run.complete) / max(len(run), 1)
    note = (
        f"n = {len(run):,} questions, {share:.3f} of them complete. In brackets: 95 % bootstrap "
        "interval over questions. ece by chance: what such probabilities show on average if every "
        "one of them is true."
    )
    if run.seen:
        note += (
            f" The gate was fitted on {run.seen:,} of these questions: "
            "its figures here are better than on new ones."
        )
    if run.baselines:
        note += (
            " Baselines are fitted on the other folds of the same questions; (oracle): told what a "
            "gate in use does not know."
        )
    title = f"Is the evidence complete? {run.dataset}, {run.retriever}, k = {run.k}"
    return Table(title, ("predictor", *METRICS, "ece by chance"), tuple(rows), note)


def _group_table(run: GateRun, group: str, column: Sequence[tuple[Any, ...]]) -> Table:
    names = ("positive_rate", "auroc", "brier", "ece", "risk", "coverage")
    rows: list[tuple[Cell, ...]] = []
    for value, chosen in _split_by(column):
        if chosen.sum() >= MIN_ROW:
            found = gate_figures(run, chosen)
            rows.append((value, int(chosen.sum()), *(found[name].value for name in names)))
    note = f"Rows of fewer than {MIN_ROW} questions are left out."
    return Table(f"By {group}", (group, "n", *names), tuple(rows), note)


def reliability_lines(
    title: str,
    systems: Mapping[str, Predictions],
    *,
    bins: int = 10,
    fewest: int = 1,
    says: str = "",
) -> Lines:
    """Observed share against predicted probability by bin; dot size shows the number of questions.

    Bins with fewer than `fewest` questions are skipped: their observed share is chance.
    """
    lines = []
    for name, one in systems.items():
        found = reliability(one, bins)
        kept = [each for each in found if each.count >= fewest and each.predicted is not None]
        x = tuple(each.predicted or 0.0 for each in kept)
        y = tuple(each.observed or 0.0 for each in kept)
        lines.append(Line(name, x, y, tuple(each.count for each in kept)))
    axes = ("predicted probability", "share that was complete")
    return Lines(title, *axes, tuple(lines), diagonal=True, says=says)


# ------------------------------------------------------------------------------------ overview

THRESHOLDS = 201  # positions of the slider
CONFIDENCE = 0.9
ALPHAS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
MAX_KINDS = 8  # columns of the heatmap: the most frequent kinds


def run_overview(run: GateRun) -> dict[str, Any]:
    """Calibration, the effect of each threshold, promises that can be kept, and difficult groups.

    Counts are for the run's questions. A promise is for new questions like them, by the same test
    that fits a gate's policy.
    """
    predictions, p = run.predictions(), np.array(run.p)
    answered = p[run.answered]
    promises = []
    for alpha in ALPHAS:  # the lowest threshold that keeps the promise; None: there is none
        policy = choose_by_risk(run.p, run.complete, alpha=alpha, delta=1 - CONFIDENCE)
        at = policy.answer_at
        coverage = float((p >= at).mean()) if at is not None and len(p) else 0.0
        promises.append({"alpha": alpha, "answer_at": at, "coverage": coverage})
    return {
        "dataset": run.dataset,
        "retriever": run.retriever,
        "k": run.k,
        "gate": run.gate,
        "questions": len(run),
        "complete": int(sum(run.complete)),
        "policy": run.policy,
        "seen": run.seen,
        "figures": {name: score(predictions, metric) for name, metric in METRICS.items()},
        "ece_by_chance": ece_by_chance(run.p),
        "calibration": [asdict(one) for one in reliability(predictions)],
        "confidence": CONFIDENCE,
        # The threshold from which the run's own policy answers; None if it never does.
        "answer_at": float(answered.min()) if len(answered) else None,
        "thresholds": _thresholds(run),
        "promises": promises,
        "difficulty": _difficulty(run),
    }


def _thresholds(run: GateRun) -> list[dict[str, Any]]:
    """The effect of answering from each threshold on.

    Below the threshold, the run's own decision is kept. If its policy answered, the run does not
    tell whether expanding would have been worth it: these count as `undecided`.
    """
    p, complete = np.array(run.p), np.array(run.complete, dtype=bool)
    expands = np.array([action == Action.EXPAND for action in run.actions], dtype=bool)
    rows = []
    for at in np.linspace(0, 1, THRESHOLDS).tolist():
        answered = p >= at
        came = RealizedRisk(len(p), int(answered.sum()), int((answered & ~complete).sum()))
        rows.append(
            {
                "at": round(at, 6),
                "answered": came.answered,
                "incomplete": came.incomplete,
                "expanded": int((~answered & expands).sum()),
                "undecided": int((~answered & run.answered).sum()),
                "abstained": int((~answered & ~expands & ~run.answered).sum()),
                "risk": came.risk,
                "risk_below": came.risk_below(CONFIDENCE) if came.answered else None,
            }
        )
    return rows


def _difficulty(run: GateRun) -> dict[str, Any]:
    """By hops and kind: questions, complete ones, the mean probability, and wrong answers."""
    kinds, hops = np.array([kind or "all" for kind in run.kinds]), np.array(run.hops)
    p, complete = np.array(run.p), np.array(run.complete, dtype=bool)
    names, counts = np.unique(kinds, return_counts=True)
    columns = sorted(names[np.argsort(-counts, kind="stable")][:MAX_KINDS].tolist())

    def cell(rows: Bools) -> dict[str, Any]:
        return {
            "questions": int(rows.sum()),
            "complete": int(complete[rows].sum()),
            "p": float(p[rows].mean()) if rows.any() else None,
            "answered": int(run.answered[rows].sum()),
            "wrong": int((run.answered & ~complete)[rows].sum()),
        }

    levels = np.unique(hops).tolist()
    cells = [[cell((hops == level) & (kinds == kind)) for kind in columns] for level in levels]
    return {"rows": levels, "columns": columns, "cells": cells}
