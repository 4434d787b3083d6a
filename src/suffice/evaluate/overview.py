"""A gate's run at a glance: calibration, what each threshold would come to, the promises that can be kept, the hard places.

    shown = overview(GateRun.load(path))

Plain values for a page that lets its reader move the threshold. Everything is counted on the run's questions; a promise is made
for new ones like them, by the same test that fits a gate's policy (`assess.policy.by_risk`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.policy import Realised, by_risk
from suffice.evaluate.gate_runs import FIGURES, GateRun
from suffice.evaluate.metrics import ece_by_chance, reliability, score
from suffice.types import Action

__all__ = ["overview"]

THRESHOLDS = 201  # that a reader can stop at
CONFIDENCE = 0.9
ALPHAS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
KINDS = 8  # columns of the heatmap: the most frequent


def overview(run: GateRun) -> dict[str, Any]:
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
        came = Realised(len(p), int(answered.sum()), int((answered & ~complete).sum()))
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
    found = [(alpha, by_risk(run.p, run.complete, alpha=alpha, delta=1 - CONFIDENCE).answer_at) for alpha in ALPHAS]
    return [
        {"alpha": alpha, "answer_at": at, "coverage": float((p >= at).mean()) if at is not None and len(p) else 0.0}
        for alpha, at in found
    ]


def _difficulty(run: GateRun) -> dict[str, Any]:
    """By hops and kind: how many questions, how many complete, what the gate thought, how many answers went wrong."""
    kinds, hops = np.array([kind or "all" for kind in run.kinds]), np.array(run.hops)
    names, counts = np.unique(kinds, return_counts=True)
    columns = sorted(names[np.argsort(-counts, kind="stable")][:KINDS].tolist())
    rows = np.unique(hops).tolist()
    cells = [[_cell(run, (hops == row) & (kinds == column)) for column in columns] for row in rows]
    return {"rows": rows, "columns": columns, "cells": cells}


def _cell(run: GateRun, rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
    complete, answered = np.array(run.complete, dtype=bool)[rows], run.answered[rows]
    return {
        "questions": int(rows.sum()),
        "complete": int(complete.sum()),
        "p": float(np.array(run.p)[rows].mean()) if rows.any() else None,
        "answered": int(answered.sum()),
        "wrong": int((answered & ~complete).sum()),
    }
