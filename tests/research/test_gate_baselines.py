"""What stands beside the gate: the same lists for all, calibrated on others, and no score made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from suffice.datasets.gold import Gold
from suffice.evaluation.metrics import Predictions
from suffice.evaluation.searching import RetrievedQuestion
from suffice.evaluation.significance import Interval
from suffice.types import Document, Evidence, Hit, Question
from suffice_research.study import Study, table_cell
from suffice_research.training.gate_baselines import (
    BASELINES,
    HITS,
    TEACHER,
    TOP_SCORE,
    Compared,
    baselines_study,
    calibrate,
    figures,
    main,
    read_teacher,
    write_lists,
)
from suffice_research.training.gate_study import JudgedLists

MAX, MEAN, WHOLE = BASELINES[:3]


class WordCounter:
    """A cross-encoder that counts how often the text says "mill"."""

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        return np.array([text.count("mill") for text in texts], dtype=np.float32)


def found(*texts: str, scores: Sequence[float | None]) -> RetrievedQuestion:
    documents = {f"d{at}": Document(f"d{at}", text) for at, text in enumerate(texts)}
    hits = tuple(Hit(name, score) for name, score in zip(documents, scores, strict=True))
    question = Question("q", "Which mill?")
    return RetrievedQuestion(
        question, Gold("q", frozenset({"d0"})), Evidence(question, hits, documents)
    )


def test_a_list_without_scores_has_no_top_score() -> None:
    ranked = found("a mill by a mill", "a barn", scores=[7.5, 2.0])
    drawn = found("a mill", scores=[None])
    nothing = found(scores=[])
    table = figures([ranked, drawn, nothing], WordCounter(), {})
    by_name = dict(zip(BASELINES, table.T.tolist(), strict=True))
    assert by_name[MAX] == [2, 1, 0]
    assert by_name[MEAN] == [1, 1, 0]
    assert by_name[WHOLE] == [2, 1, 0]
    assert by_name[HITS] == [2, 1, 0]
    assert by_name[TOP_SCORE][0] == 7.5
    assert np.isnan(by_name[TOP_SCORE][1:]).all()


def test_the_teacher_reads_each_list_once_and_without_labels(tmp_path: Path) -> None:
    mill, barn = found("a mill", scores=[1.0]), found("a barn", scores=[None])
    assert write_lists([mill, barn, mill], tmp_path / "lists.jsonl") == 2
    first, second = map(json.loads, (tmp_path / "lists.jsonl").read_text().splitlines())
    assert set(first) == {"key", "question", "hits"}
    (tmp_path / "read.jsonl").write_text(json.dumps({"key": second["key"], "p": [0.9, 0.5]}))
    table = figures([mill, barn], WordCounter(), read_teacher(tmp_path / "read.jsonl"))
    said = table[:, BASELINES.index(TEACHER)]
    assert np.isnan(said[0])
    assert said[1] == 0


def test_calibration_is_of_lists_that_have_the_figure() -> None:
    rng = np.random.default_rng(3)
    complete = rng.random(400) < 0.5
    clear = np.where(complete, 2.0, -2.0) + rng.normal(size=400)
    partly = np.where(np.arange(400) < 200, clear, np.nan)
    first, second = calibrate(np.column_stack([clear, partly]), complete)
    p = first(np.array([-4.0, 0.0, 4.0]))
    assert p[0] < 0.1 < 0.4 < p[1] < 0.6 < 0.9 < p[2]
    found = second(np.array([np.nan, 4.0]))
    assert np.isnan(found[0])
    assert found[1] > 0.9
    assert np.isnan(second(np.array([np.nan]))).all()


def test_the_study_says_where_the_gate_is_better_beyond_noise(tmp_path: Path) -> None:
    complete = np.arange(60) % 2
    good, useless = Predictions(complete, 0.2 + 0.6 * complete), Predictions(complete, [0.5] * 60)
    mills = Compared(
        JudgedLists("mills", "seen", ()), good, {**dict.fromkeys(BASELINES, useless), MAX: good}
    )
    drawn = {**dict.fromkeys(BASELINES, good), TOP_SCORE: None}
    barns = Compared(JudgedLists("barns, drawn", "unseen", ()), useless, drawn)
    study = baselines_study(
        [mills, barns],
        titles=[("mills", good, useless)],
        settings={"learned": 20},
        seconds=0.0,
    )
    assert study.summary[0] == (
        f"The gate ranks better than {MAX}, beyond noise, on 0 of 2 sets of lists; worse on barns, drawn."
    )
    assert study.summary[BASELINES.index(TOP_SCORE)].endswith(
        "on 1 of 1 sets of lists; worse on none."
    )
    assert study.summary[-1] == (
        "Without titles, mills: +0.500 AUROC lost [+0.500, +0.500]; to reach at most 0.03: not reached."
    )
    kept = Study.load(study.save(tmp_path / "study.json"))
    assert [one.title for one in kept.sections] == ["Beside other predictors", "Without titles"]
    gained = table_cell(kept.table("Gain over others"), "mills", MEAN)
    assert isinstance(gained, Interval)
    assert gained.value == 0.5
    assert table_cell(kept.table("AUROC beside"), "barns, drawn", TOP_SCORE) is None
    assert [row[:2] for row in kept.table("ECE beside").rows] == [
        ("mills", "seen"), ("barns, drawn", "unseen"),
    ]  # fmt: skip


def test_without_data_the_error_says_what_is_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert "does not exist" in printed
    assert "hint: --data is the folder" in printed
