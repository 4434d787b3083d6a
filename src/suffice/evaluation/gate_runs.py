"""A gate's run: for each question the probability, what came true and the action taken, kept as one document.

Every figure is computed from it afterwards: the gate's, the baselines' on the same questions, by kind and by hops, and what the
policy's decisions came to.
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
from suffice.evaluation.result_files import load_result, result_text
from suffice.evaluation.significance import Interval, interval, mean_interval
from suffice.evaluation.tables import Cell, Table
from suffice.gate.policy import RealizedRisk, choose_by_risk
from suffice.storage import write_atomically
from suffice.storage.fields import dataclass_from_json
from suffice.types import Action

__all__ = [
    "FIGURES",
    "FIGURE_NAMES",
    "GateRun",
    "gate_figures",
    "gate_summary",
    "gate_tables",
    "run_overview",
]


VERSION = 1
FIGURES = {
    "auroc": "auroc",
    "ap": "auprc",
    "brier": "brier",
    "ece": "ece",
    "aurc": "aurc",
}  # our name -> the metric's
DECISIONS = ("accuracy", "precision", "recall", "f1")
FIGURE_NAMES = (
    "positive_rate",
    *FIGURES,
    *DECISIONS,
    "risk",
    "coverage",
)  # every figure of a run, as `figures` gives them
_FEWEST_QUESTIONS = 10  # questions of a kind that earn it a row


@dataclass(frozen=True)
class GateRun:
    """One evaluation of a gate, as a document. Columns have one entry a question."""

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
    policy: str = ""  # in words
    labels: tuple[
        tuple[str, ...], ...
    ] = ()  # kinds of reasoning, where the data set knows them: a question may have several
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
        """The gate's probabilities beside what came true, or a baseline's."""
        if baseline is not None and baseline not in self.baselines:
            raise InputError(
                f"the run has no baseline named {baseline!r}",
                hint=did_you_mean(baseline, self.baselines),
            )
        return Predictions(
            np.array(self.complete, dtype=float),
            self.p if baseline is None else self.baselines[baseline],
        )

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        return np.array([action == Action.ANSWER for action in self.actions], dtype=bool)

    def to_json(self, *, timings: bool = True) -> str:
        """The document; without timings, two runs with the same seed give the same text."""
        document = {"kind": "run", "task": "gate", "version": VERSION, **asdict(self)}
        if not timings:
            document["timings"] = {}
        return result_text(document)

    def save(self, path: Path) -> Path:
        write_atomically(Path(path), self.to_json())
        return Path(path)

    @staticmethod
    def load(path: Path) -> GateRun:
        """Read a run that this version can read; the error says what else the file is."""
        return load_result(
            path,
            _gate_run_from_json,
            kind="run",
            task="gate",
            what="gate's run",
            version=VERSION,
            command="suffice evaluate gate",
        )


def _gate_run_from_json(document: dict[str, Any]) -> GateRun:
    fields = {
        name: value for name, value in document.items() if name not in ("kind", "task", "version")
    }
    columns = ("question_ids", "kinds", "hops", "complete", "p", "actions")
    fields["baselines"] = {
        name: tuple(map(float, values)) for name, values in fields["baselines"].items()
    }
    run = dataclass_from_json(GateRun, fields)
    held = (
        [getattr(run, name) for name in columns]
        + list(run.baselines.values())
        + [run.labels or run.p]
    )
    if len(set(map(len, held))) > 1:
        raise ValueError("its columns have different lengths")
    for baseline in (None, *run.baselines):
        run.predictions(
            baseline
        )  # an InputError, which is a ValueError, where a probability is none
    return run


# ------------------------------------------------------------------------------------------------------ figures


def gate_summary(run: GateRun) -> dict[str, Any]:
    """The run for a script: every figure as a plain number, intervals beside them, the baselines, and the parts."""
    whole = gate_figures(run)
    return {
        "dataset": run.dataset,
        "retriever": run.retriever,
        "k": run.k,
        "gate": run.gate,
        "seed": run.seed,
        "n": len(run),
        "seen": int(run.settings.get("seen", 0)),
        **{name: one.value for name, one in whole.items()},
        "ece_by_chance": ece_by_chance(run.p),
        "answered": int(run.answered.sum()),
        "actions": {str(action): run.actions.count(action) for action in Action},
        "policy": run.policy,
        "intervals": {name: asdict(one) for name, one in whole.items()},
        "baselines": {
            name: _plain_figures(run.predictions(name), run.seed) for name in run.baselines
        },
        **{f"by_{name}": _figures_by(run, column) for name, column in _group_columns(run).items()},
        "settings": dict(run.settings),
        "data": dict(run.data),
        "seconds": dict(run.timings),
    }


def gate_figures(run: GateRun) -> dict[str, Interval]:
    """Every figure of the whole run, with its interval."""
    return _figures_of(run, np.ones(len(run), dtype=bool))


def _figures_of(run: GateRun, rows: npt.NDArray[np.bool_]) -> dict[str, Interval]:
    """Every figure of some of the questions, with its interval."""
    labels = np.array(run.complete, dtype=float)[rows]
    answered = run.answered[rows]
    predictions = Predictions(labels, np.array(run.p)[rows])
    decisions = Predictions(labels, answered.astype(float))
    wrong = np.where(answered, 1.0 - labels, np.nan)  # NaN: not answered, takes no part
    options = {"seed": run.seed}
    return {
        "positive_rate": interval(predictions, "positive_rate", **options),
        **{name: interval(predictions, metric, **options) for name, metric in FIGURES.items()},
        **{name: interval(decisions, name, **options) for name in DECISIONS},
        "risk": mean_interval(wrong, **options),
        "coverage": mean_interval(answered.astype(float), **options),
    }


def _plain_figures(predictions: Predictions, seed: int) -> dict[str, Any]:
    plain = {name: score(predictions, metric) for name, metric in FIGURES.items()}
    plain["ece_by_chance"] = ece_by_chance(predictions.probabilities)
    return {**plain, "auroc_interval": asdict(interval(predictions, "auroc", seed=seed))}


def _group_columns(run: GateRun) -> dict[str, list[tuple[Any, ...]]]:
    """What the questions can be told apart by: for each question the values it has, mostly one."""
    kinds = [() if kind is None else (kind,) for kind in run.kinds]
    labels = [tuple(dict.fromkeys(one)) for one in run.labels]
    return {
        "kind": kinds,
        **({"label": labels} if any(labels) else {}),
        "hops": [(count,) for count in run.hops],
    }


def _split_by(column: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Each value of the column, with the questions that have it."""
    for value in sorted({value for one in column for value in one}):
        yield str(value), np.array([value in one for one in column])


def _figures_by(run: GateRun, column: Sequence[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    parts = {}
    for value, rows in _split_by(column):
        found = _figures_of(run, rows)
        parts[value] = {"n": int(rows.sum()), **{name: one.value for name, one in found.items()}}
    return parts


# ------------------------------------------------------------------------------------------------------ tables


def gate_tables(run: GateRun) -> list[Table]:
    """What a person wants to see: the gate among the baselines, its decisions, and where it is weak."""
    shown = [_baseline_table(run), _decision_table(run)]
    by = [_table_by(run, title, column) for title, column in _group_columns(run).items()]
    return shown + [table for table in by if len(table.rows) > 1]


def _baseline_table(run: GateRun) -> Table:
    def row(name: str, predictions: Predictions) -> tuple[Cell, ...]:
        rest = [score(predictions, metric) for metric in list(FIGURES.values())[1:]]
        return (
            name,
            interval(predictions, "auroc", seed=run.seed),
            *rest,
            ece_by_chance(predictions.probabilities),
        )

    rows = [
        row(f"gate ({run.gate})", run.predictions()),
        *(row(name, run.predictions(name)) for name in run.baselines),
    ]
    share = sum(run.complete) / max(len(run), 1)
    note = f"n = {len(run):,} questions, {share:.3f} of them complete. In brackets: 95 % bootstrap interval over questions."
    note += " ece by chance: what such probabilities show on average if every one of them is true."
    if seen := run.settings.get("seen"):
        note += f" The gate was fitted on {seen:,} of these questions: its figures here are better than on new ones."
    if run.baselines:
        note += " Baselines are fitted on the other folds of the same questions; (oracle): told what a gate in use does not know."
    title = f"Is the evidence complete? {run.dataset}, {run.retriever}, k = {run.k}"
    return Table(title, ("predictor", *FIGURES, "ece by chance"), tuple(rows), note)


def _decision_table(run: GateRun) -> Table:
    found = gate_figures(run)
    columns = ("risk", "coverage", *DECISIONS)
    return Table(
        "What the policy's decisions came to",
        columns,
        (tuple(found[name] for name in columns),),
        run.policy,
    )


def _table_by(run: GateRun, title: str, column: Sequence[tuple[Any, ...]]) -> Table:
    names = ("positive_rate", "auroc", "brier", "ece", "risk", "coverage")
    rows: list[tuple[Cell, ...]] = []
    for value, chosen in _split_by(column):
        if chosen.sum() >= _FEWEST_QUESTIONS:
            found = _figures_of(run, chosen)
            rows.append((value, int(chosen.sum()), *(found[name].value for name in names)))
    return Table(
        f"By {title}",
        (title, "n", *names),
        tuple(rows),
        f"Rows of fewer than {_FEWEST_QUESTIONS} questions are left out.",
    )


# --- overview: A gate's run at a glance: calibration, what each threshold would come to, the promises that can be kept, the hard places.

THRESHOLDS = 201  # that a reader can stop at
CONFIDENCE = 0.9
ALPHAS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
KINDS = 8  # columns of the heatmap: the most frequent


def run_overview(run: GateRun) -> dict[str, Any]:
    """What a reader wants to know of a run before and after moving its threshold."""
    predictions = run.predictions()
    return {
        "dataset": run.dataset,
        "retriever": run.retriever,
        "k": run.k,
        "gate": run.gate,
        "questions": len(run),
        "complete": int(sum(run.complete)),
        "policy": run.policy,
        "seen": int(run.settings.get("seen", 0)),
        "figures": {name: score(predictions, metric) for name, metric in FIGURES.items()},
        "ece_by_chance": ece_by_chance(run.p),
        "calibration": [asdict(one) for one in reliability(predictions)],
        "confidence": CONFIDENCE,
        "answer_at": _answer_at(run),
        "thresholds": _thresholds(run),
        "promises": _promises(run),
        "difficulty": _difficulty(run),
    }


def _answer_at(run: GateRun) -> float | None:
    """From where on the run's own policy answered; None where it never did."""
    answered = np.array(run.p)[run.answered]
    return float(answered.min()) if len(answered) else None


def _thresholds(run: GateRun) -> list[dict[str, Any]]:
    """What answering from each threshold on comes to.

    Below it the run's own decision stands. Where its policy answered, the run does not say whether looking further would have
    been worth it: those are told apart as `undecided`.
    """
    p, complete = np.array(run.p), np.array(run.complete, dtype=bool)
    expands = np.array([action == Action.EXPAND for action in run.actions], dtype=bool)
    told = []
    for at in np.linspace(0, 1, THRESHOLDS).tolist():
        answered = p >= at
        came = RealizedRisk(len(p), int(answered.sum()), int((answered & ~complete).sum()))
        told.append(
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
    return told


def _promises(run: GateRun) -> list[dict[str, Any]]:
    """For each share of incomplete among answered, the lowest threshold that keeps it, and what that answers; null: none."""
    p = np.array(run.p)
    found = [
        (alpha, choose_by_risk(run.p, run.complete, alpha=alpha, delta=1 - CONFIDENCE).answer_at)
        for alpha in ALPHAS
    ]
    return [
        {
            "alpha": alpha,
            "answer_at": at,
            "coverage": float((p >= at).mean()) if at is not None and len(p) else 0.0,
        }
        for alpha, at in found
    ]


def _difficulty(run: GateRun) -> dict[str, Any]:
    """By hops and kind: how many questions, how many complete, what the gate thought, how many answers went wrong."""
    kinds, hops = np.array([kind or "all" for kind in run.kinds]), np.array(run.hops)
    names, counts = np.unique(kinds, return_counts=True)
    columns = sorted(names[np.argsort(-counts, kind="stable")][:KINDS].tolist())
    rows = np.unique(hops).tolist()
    cells = [
        [_overview_cell(run, (hops == row) & (kinds == column)) for column in columns]
        for row in rows
    ]
    return {"rows": rows, "columns": columns, "cells": cells}


def _overview_cell(run: GateRun, rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
    complete, answered = np.array(run.complete, dtype=bool)[rows], run.answered[rows]
    return {
        "questions": int(rows.sum()),
        "complete": int(complete.sum()),
        "p": float(np.array(run.p)[rows].mean()) if rows.any() else None,
        "answered": int(answered.sum()),
        "wrong": int((answered & ~complete).sum()),
    }
