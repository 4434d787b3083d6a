"""Calibrate the deep judge: its log-odds and those of the shipped gate become one probability.

    python -m suffice_research.training.deep_calibration deep.json.gz said.json.gz --odds odds.jsonl

`deep.json.gz` are the judged lists, `said.json.gz` is what the judge said of them on the GPU. The
shipped gate reads the same lists once, into `--odds`; run again, it goes on where it stopped.
Weights are fitted on part *stack* alone, and written beside the adapter. Prints, for every set,
AUROC, ECE and the answered shares of complete and incomplete lists: gate, judge, both.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from suffice.evaluation.metrics import auroc, ece
from suffice.gate.gate import Gate
from suffice.gate.judge import JudgeScale
from suffice.numeric import sigmoid
from suffice.storage import write_atomically
from suffice_deep.adapter import CALIBRATION, SHIPPED, Adapter
from suffice_research.training.sources import exit_code

__all__ = ["fit_scale", "gate_log_odds", "joined"]

Floats = npt.NDArray[np.floating[Any]]
STACK, UNSEEN = "stack/", "unseen/"
BATCH = 8
ANSWER_AT = 0.5  # answered where complete is more likely than not
NO_LIMIT = 1000.0  # in log-odds: the judge has the last word, and reads every list
MAX_LOG_ODDS = 12.0


def joined(content: Mapping[str, Any], said: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The judged lists in their plain form, each with what the judge said: `list`, `hits_said`."""
    plain = [one for one in said if " " not in one["set"]]
    rows = content["judged"]
    if [one["question"] for one in rows] != [one["question"] for one in plain]:
        raise ValueError("what was said is not about these lists: they are of another packing")
    return [
        {**row, "list": one["list"], "hits_said": one["hits"]}
        for row, one in zip(rows, plain, strict=True)
    ]


def gate_log_odds(gate: Gate, rows: Sequence[Mapping[str, Any]], kept: Path) -> Floats:
    """The gate's log-odds of each list, kept in a file as they come."""
    known: dict[int, float] = {}
    if kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            known[one["at"]] = one["odds"]
    left = [at for at in range(len(rows)) if at not in known]
    with kept.open("a", encoding="utf-8") as file:
        for start in range(0, len(left), BATCH):
            some = left[start : start + BATCH]
            pairs = [
                (rows[at]["question"], [{"title": t, "text": x} for t, x in rows[at]["hits"]])
                for at in some
            ]
            odds = gate.model.log_odds(gate.features(pairs)).tolist()
            for at, value in zip(some, odds, strict=True):
                known[at] = value
                file.write(json.dumps({"at": at, "odds": value}) + "\n")
            file.flush()
    return np.array([known[at] for at in range(len(rows))])


def fit_scale(
    judge: str, said: Floats, odds: Floats, complete: npt.NDArray[np.bool_]
) -> JudgeScale:
    """Platt scaling of both log-odds together."""
    bounded = said.clip(-MAX_LOG_ODDS, MAX_LOG_ODDS)
    model = LogisticRegression(C=1e6).fit(np.column_stack([bounded, odds]), complete)
    slope, gate = (round(max(float(one), 0.0), 4) for one in model.coef_[0])
    return JudgeScale(
        judge, slope, round(float(model.intercept_[0]), 4), len(said), gate=gate,
        max_log_odds=MAX_LOG_ODDS, max_effect=NO_LIMIT, unsure=NO_LIMIT, any_language=True,
        answer_at=ANSWER_AT,
    )  # fmt: skip


def _figures(odds: Floats, complete: npt.NDArray[np.bool_], threshold: float) -> str:
    p, labels, weights = sigmoid(odds), complete.astype(float), np.ones((1, len(odds)))
    shares = [float((p[side] >= threshold).mean()) for side in (complete, ~complete)]
    found = (float(auroc(labels, p, weights)[0]), float(ece(labels, p, weights, 10)[0]), *shares)
    return " ".join(f"{one:.3f}" for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lists", type=Path)
    parser.add_argument("said", type=Path)
    parser.add_argument("--odds", type=Path, required=True, help="file of the gate's log-odds")
    parser.add_argument("--adapter", type=Path, default=SHIPPED)
    given = parser.parse_args()
    content, said = (
        json.loads(gzip.decompress(one.read_bytes())) for one in (given.lists, given.said)
    )
    rows = [one for one in joined(content, said) if one["set"].startswith((STACK, UNSEEN))]
    gate, adapter = Gate.load(), Adapter(given.adapter)
    odds, judge = gate_log_odds(gate, rows, given.odds), np.array([one["list"] for one in rows])
    complete = np.array([one["complete"] for one in rows])
    sets = np.array([one["set"] for one in rows])
    stack = np.char.startswith(sets, STACK)
    scale = fit_scale(adapter.name, judge[stack], odds[stack], complete[stack])
    write_atomically(adapter.folder / CALIBRATION, json.dumps(asdict(scale), sort_keys=True) + "\n")
    print(scale)
    both = odds + scale.effects(judge, odds)
    threshold = gate.policy.answer_at or 0.5
    print(f"{'set':30} lists  gate, at {threshold:.2f}            judge alone             both")
    for name in np.unique(sets):
        at = sets == name
        parts = [
            _figures(values[at], complete[at], limit)
            for values, limit in ((odds, threshold), (judge, ANSWER_AT), (both, ANSWER_AT))
        ]
        print(f"{name:30} {at.sum():5}  {'   '.join(parts)}")


if __name__ == "__main__":
    sys.exit(exit_code(main))
