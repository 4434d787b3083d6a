"""The quality bridge's figures from the documents that it held: `python -m
suffice_research.training.scorer_figures --data FOLDER`.

No GPU and no model: `research/results/runs/bridge-quality-held.json` stores, for each question, the
five documents that were chosen when scorer and reader were fitted on the other folds, and when they
were fitted without its whole data set (see `suffice_research.training.scorer_study`, which needs a
GPU to recreate it). This computes how much of the gold they contain, with a bootstrap interval over
the questions.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from suffice.datasets import load

__all__ = ["figures"]

ROOT = Path(__file__).resolve().parents[3]
HELD = ROOT / "docs" / "results" / "runs" / "bridge-quality-held.json"


def figures(data: Path, *, seed: int = 42, draws: int = 2000) -> list[dict[str, object]]:
    """One row for each data set and protocol: recall@5 and complete@5 in per cent, each with its
    95 % interval.
    """
    stored = json.loads(HELD.read_text(encoding="utf-8"))
    draw, rows = np.random.default_rng(seed), []
    for name, kept in stored["sets"].items():
        found = load(name, data / name)
        ids = [document.doc_id for document in found.documents()]
        gold = {one.question.question_id: one.gold.doc_ids for one in found.questions()}
        for protocol in ("folds", "left_out"):
            pairs = zip(kept["questions"], kept[protocol], strict=True)
            share = np.array(
                [
                    len(gold[key] & {ids[at] for at in chosen}) / len(gold[key])
                    for key, chosen in pairs
                ]
            )
            again = share[draw.integers(0, len(share), (draws, len(share)))]
            row: dict[str, object] = {"set": name, "protocol": protocol, "questions": len(share)}
            for measure, one, drawn in (
                ("recall", share, again),
                ("complete", share == 1, again == 1),
            ):
                low, high = np.percentile(drawn.mean(axis=1), [2.5, 97.5])
                row[f"{measure}@5"] = (
                    f"{100 * one.mean():.1f} ({100 * low:.1f} to {100 * high:.1f})"
                )
            rows.append(row)
    return rows


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, required=True)
    for one in figures(arguments.parse_args().data):
        print("  ".join(str(value) for value in one.values()))
