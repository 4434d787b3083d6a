"""What a judge is worth on labels, labels that a judge gives, and the commands for both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import as_json, suffice, write_lines
from tests.service import running_app
from tests.stand_in_server import says, serving
from tests.test_adaptation import quick_fits, yes_no  # noqa: F401 - a fixture for this module
from tests.test_judge import HITS, QUESTION, StandIn, always, fast_gate

from suffice.datasets import read_labels
from suffice.datasets.labels import check_judged
from suffice.errors import InputError, ModelError
from suffice.evaluation import adapt_to_labels, adaptation
from suffice.evaluation.judging import ask_about_labels
from suffice.gate.gate import Gate
from suffice.service.settings import Settings
from suffice.types import Opinion


def knowing(examples: list[Any], accuracy: float) -> StandIn:
    rng = np.random.default_rng(0)
    truth = {one.question: bool(one.complete) ^ (rng.random() > accuracy) for one in examples}
    return StandIn(lambda one: Opinion(3.0 if truth[one[0]] else -3.0))


def test_adapting_fits_the_scale_of_a_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "labels_for_promise", lambda *_, **__: None)  # slow
    examples = yes_no(40, swapped=True)  # labels that the gate cannot know
    judge = knowing(examples, 0.9)
    found = adapt_to_labels(fast_gate(), examples, judge=judge)
    assert found.judged is not None
    assert len(judge.seen) == 40  # each label once
    assert found.judged.scale.slope > 0.2
    assert found.judged.sent > 0
    assert json.loads(json.dumps(found.as_json()))["judge"]["judge"] == "stand-in"
    found.judged.gate.save(tmp_path / "gate")
    opened = Gate.load(tmp_path / "gate", judge=judge)
    assert opened.judge_scale == found.judged.scale
    with pytest.raises(InputError, match="does not cover a judge"):
        adapt_to_labels(fast_gate(), examples, judge=judge, alpha=0.1)


def test_a_judge_that_never_answers_is_an_error_when_its_worth_is_to_be_learned() -> None:
    judge = always(None, error="down")
    with pytest.raises(ModelError, match="gave no usable answer: down"):
        ask_about_labels(judge, [("q", ["t"], ["x"])] * 50)
    assert len(judge.seen) == 8  # and is not asked fifty times


def test_a_judge_whose_server_is_down_is_noticed_before_anything_is_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fits(*_: Any) -> None:
        raise AssertionError("it cross-validates")

    monkeypatch.setattr(adaptation, "_cross_validate", fits)
    rows = [
        {"question": one.question, "hits": list(one.hits), "complete": one.complete}
        for one in yes_no(24)
    ]
    labels = write(tmp_path / "labels.jsonl", *rows)
    words = ("--out", tmp_path / "gate", "--gate", "fast", "--judge", "http://127.0.0.1:1/v1#m")
    result = suffice("adapt", labels, *words)
    assert "the judge m gave no usable answer" in result.stderr
    assert not (tmp_path / "gate").exists()


# ---- labels by a judge


def row(at: int, complete: bool, by: str) -> dict[str, Any]:
    hits = [{"id": f"h{at}", "title": "", "text": f"text {at}"}]
    return {"question": f"question {at}?", "hits": hits, "complete": complete, "by": by}


def write(path: Path, *some: dict[str, Any]) -> Path:
    return write_lines(path, some)


def test_a_person_counts_more_than_a_judge_whoever_came_last(tmp_path: Path) -> None:
    file = write(tmp_path / "l.jsonl", row(1, True, "ada"), row(1, False, "judge:m"),
                 row(2, False, "judge:m"))  # fmt: skip
    first, second = read_labels(file)
    assert (first.complete, first.by, first.judge_said) == (True, "ada", False)
    assert second.is_judged
    kept, found = check_judged([first, second])
    assert len(kept) == 2
    assert found is not None
    assert (found.given, found.compared, found.agreed) == (1, 1, 0)
    with pytest.raises(InputError, match="a promise needs people's"):
        check_judged([first, second], promise=True)
    assert check_judged([first])[1] is not None
    assert check_judged([]) == ([], None)


@pytest.mark.parametrize(("right", "kept"), [(18, 30), (10, 20)])
def test_a_judge_that_agrees_no_better_than_chance_teaches_nothing(
    tmp_path: Path, right: int, kept: int
) -> None:
    some = []
    for at in range(20):
        truth = at % 2 == 0
        some += [
            row(at, truth, "ada"),
            row(at, truth ^ (at // 2 % 2 == 1 if right == 10 else at >= right), "judge:m"),
        ]
    some += [row(at, at % 2 == 0, "judge:m") for at in range(20, 30)]
    labels, found = check_judged(read_labels(write(tmp_path / "l.jsonl", *some)))
    assert found is not None
    assert (found.compared, found.agreed) == (20, right)
    assert len(labels) == kept
    assert ("left out" in found.sentence) == (kept == 20)


def test_the_command_writes_labels_that_say_who_gave_them(tmp_path: Path) -> None:
    ask = write(tmp_path / "ask.jsonl", {"question": QUESTION, "hits": HITS, "complete": None})
    out = tmp_path / "labels.jsonl"
    with serving(says("no")) as (url, _):
        told = as_json(suffice("judge", ask, "--judge", f"{url}#m", "--out", out, "--json"))
        assert told["labels"] == 1
        again = suffice("judge", ask, "--judge", url, "--out", out)
    assert again.exit_code == 2
    assert "exists" in again.output
    (label,) = read_labels(out)
    assert label.is_judged
    assert label.complete is False
    assert label.by == "judge:m"
    nobody = suffice("judge", ask, "--out", tmp_path / "x")
    assert "--judge" in nobody.output


def write_unsure_gate(path: Path) -> Path:
    fast_gate().save(path)
    return path


def test_the_service_says_what_was_judged(tmp_path: Path) -> None:
    gates = {"default": str(write_unsure_gate(tmp_path / "gate"))}
    with serving(says("yes")) as (url, _):
        settings = Settings(gates=gates, judge=f"{url}#m")
        assert Settings.from_json(settings.as_json()) == settings
        with running_app(settings) as client:
            verdict = client.post("/v1/check", json={"question": QUESTION, "hits": HITS}).json()
            assert verdict["data"]["judged"]["judge"] == "m"
            (gate,) = client.get("/v1/gates").json()["data"]
            assert gate["judge"] == "m"
            metrics = client.get("/metrics").text
            assert 'suffice_judged_total{gate="default",result="changed"} 1.0' in metrics


def test_check_with_a_judge_says_what_it_did(tmp_path: Path) -> None:
    hits, batch = tmp_path / "hits.json", tmp_path / "log.jsonl"
    hits.write_text(json.dumps(HITS), encoding="utf-8")
    write(batch, *[{"question": QUESTION, "hits": HITS}] * 3)
    gate = ("--gate", write_unsure_gate(tmp_path / "gate"))
    with serving(says("yes")) as (url, _):
        one = suffice("check", QUESTION, "--hits", hits, *gate, "--judge", f"{url}#m", "--json")
        assert json.loads(one.stdout)["judged"]["judge"] == "m"
        many = suffice("check", "--batch", batch, *gate, "--judge", f"{url}#m")
        assert "the judge was asked about 3 of 3 (100%), which changed 3 actions" in many.output
    dead = suffice("check", QUESTION, "--hits", hits, *gate, "--judge", "http://127.0.0.1:9/v1")
    assert dead.exit_code == 0
    assert "note: the judge default gave no usable answer" in dead.output
    wrong = suffice("check", QUESTION, "--hits", hits, "--judge", url, "--judge-limit", "share=1")
    assert wrong.exit_code == 2
