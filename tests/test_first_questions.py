"""Thirty plain questions with a few plain strings, as someone types who tries the gate for the first
time. Each comes twice: with all it needs, and with the last needed text missing.

Written before any of them was checked; nothing was trained on them, and nothing may be.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suffice.evaluation.metrics import Predictions, score
from suffice.gate.gate import SHIPPED_MODELS, Gate
from suffice.gate.reader import SHIPPED_READER
from suffice.types import Action

pytestmark = pytest.mark.skipif(
    not (SHIPPED_READER.is_dir() and (SHIPPED_MODELS / "gate-standard").is_dir()),
    reason="the standard gate and its reader are not in this checkout: CONTRIBUTING makes them",
)

ROWS = Path(__file__).with_name("first_questions.jsonl").read_text("utf-8").splitlines()
QUESTIONS = [json.loads(row) for row in ROWS]


def test_most_first_questions_are_judged_right() -> None:
    pairs, complete = [], []
    for row in QUESTIONS:
        question, needed, others = row["question"], row["needed"], row["others"]
        pairs += [
            (question, [*others[:1], *needed, *others[1:]]),
            (question, [*needed[:-1], *others]),
        ]
        complete += [True, False]
    verdicts = Gate.load().check_batch(pairs, explain=False)
    right = sum(
        (verdict.action is Action.ANSWER) == whole for verdict, whole in zip(verdicts, complete)
    )
    assert right >= 48
    found = Predictions([float(one) for one in complete], [one.p_complete for one in verdicts])
    assert (score(found, "auroc") or 0.0) >= 0.88
