"""A gate for someone's own labels: by Python, command and HTTP, and what it says that it gains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import suffice, write_lines
from tests.values import known

from suffice.errors import InputError
from suffice.evaluation import adapt_to_labels
from suffice.evaluation.adaptation import _balanced_order, _curve_sizes, _figures, _look_ahead
from suffice.gate import training
from suffice.gate.gate import Gate
from suffice.gate.training import LabelledQuestion
from suffice.testing import sample_questions


@pytest.fixture(autouse=True)
def quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trees take a second for each of the sixteen gates of a cross-validation; and few
    penalties.
    """
    monkeypatch.setattr(training, "_fit_local_model", lambda *_: None)
    monkeypatch.setattr(training, "PENALTIES", (300.0, 10.0))


def yes_no(count: int, *, swapped: bool = False) -> list[LabelledQuestion]:
    """Made-up questions with yes or no; swapped, every second label is the wrong way round."""
    found = []
    for at, one in enumerate(sample_questions(count)):
        complete = {hit["doc_id"] for hit in one.hits} >= set(one.needed or ())
        said = complete ^ (swapped and at % 2 == 0)
        found.append(LabelledQuestion(one.question, one.hits, complete=said))
    return found


def rows(examples: list[LabelledQuestion]) -> list[dict[str, Any]]:
    return [{"question": x.question, "hits": x.hits, "complete": x.complete} for x in examples]


def write(path: Path, examples: list[LabelledQuestion]) -> Path:
    return write_lines(path, rows(examples))


def test_yes_and_no_move_the_gate_like_ids_do() -> None:
    gate, examples = Gate.load(preset="fast"), yes_no(60)
    by_ids, by_yes_no = gate.adapt(sample_questions(60)), gate.adapt(examples)
    some = [(one.question, one.hits) for one in examples]
    np.testing.assert_allclose(by_ids.probabilities(some), by_yes_no.probabilities(some))
    assert by_yes_no.card["history"] == ["adapted to 60 questions"]


def test_a_label_is_yes_no_or_ids() -> None:
    gate, examples = Gate.load(preset="fast"), yes_no(10)
    for wrong, problem in (
        (LabelledQuestion("Who?", ["text"]), "complete is None"),
        (LabelledQuestion("Who?", ["text"], complete="no"), "complete is 'no'"),  # type: ignore[arg-type]
        (LabelledQuestion("Who?", ["text"], ("a",), complete=True), "expected one of them"),
        (LabelledQuestion("Who?", [f"text {n}" for n in range(12)], complete=True), "of 12 hits"),
    ):
        with pytest.raises(InputError, match="example 11") as error:
            gate.adapt([*examples, wrong])
        assert problem in str(error.value)
    with pytest.raises(InputError, match="complete is None"):
        Gate.fit([LabelledQuestion("Who?", ["text"])], preset="fast")


def test_fitting_needs_to_know_which_documents() -> None:
    with pytest.raises(InputError, match="names no needed documents") as error:
        Gate.fit(yes_no(80), preset="fast")
    assert "adapt" in error.value.hint


def test_the_account_is_of_labels_the_gate_had_not_seen() -> None:
    gate = Gate.load(preset="fast")
    noise = adapt_to_labels(gate, yes_no(40, swapped=True))
    assert (noise.labels, noise.alpha) == (40, 0.1)
    assert known(noise.after.auroc.value) < 0.75  # a gate that knew them would rank them well
    assert 0 <= (noise.after.answered.low or 0) <= (noise.after.answered.value or 0) <= 1
    assert noise.gate.card["history"] == ["adapted to 40 questions"]
    json.dumps(noise.as_json(), allow_nan=False)


def test_too_few_labels_or_of_one_kind_say_how_many_more() -> None:
    gate = Gate.load(preset="fast")
    with pytest.raises(InputError, match="12 labels, expected at least 20") as error:
        adapt_to_labels(gate, yes_no(12))
    assert "8 more" in error.value.hint
    same = [LabelledQuestion(one.question, one.hits, complete=False) for one in yes_no(25)]
    with pytest.raises(InputError, match="all 25 labels say the same: none is complete") as error:
        adapt_to_labels(gate, same)
    assert "5 more" in error.value.hint


def test_a_learning_curve_is_followed_only_where_it_is_clear() -> None:
    rng = np.random.default_rng(0)
    complete = rng.random(400) < 0.5
    assert _curve_sizes(80) == [20, 40, 80]
    assert _curve_sizes(40)[0] == 10
    assert _curve_sizes(39) == [39]

    def at(size: int, gain: float) -> np.ndarray:
        signal = complete * (1.2 - gain / np.sqrt(size))
        return 1 / (1 + np.exp(-signal - np.random.default_rng(1).normal(size=400)))

    parts = np.array_split(np.arange(400), 5)
    rising = _look_ahead({size: at(size, 6.0) for size in (40, 80, 160)}, complete, parts)
    assert [one.labels for one in rising] == [800, 1600]
    assert known(rising[0].auroc.value) < known(rising[1].auroc.value) <= 1
    flat = {size: np.random.default_rng(size).random(400) for size in (40, 80, 160)}
    assert _look_ahead(flat, complete, parts) == ()


def test_gates_of_different_folds_are_not_ranked_against_each_other() -> None:
    complete = np.arange(40) % 2 == 0
    p = np.where(complete, 0.4, 0.3) + 0.5 * (np.arange(40) >= 20)  # the second gate is surer
    parts = np.array_split(np.arange(40), 2)
    assert _figures(complete, p, complete, parts).auroc.value == 1
    assert _figures(complete, p, complete, [np.arange(40)]).auroc.value == pytest.approx(0.75)


def test_every_beginning_of_the_order_has_both_labels() -> None:
    complete = np.arange(40) % 5 == 0
    order = _balanced_order(complete, 1)
    assert sorted(order) == list(range(40))
    assert complete[order[:10]].sum() == 2


def test_the_command_writes_a_better_gate_and_says_what_is_next(tmp_path: Path) -> None:
    labels = write(tmp_path / "labels.jsonl", yes_no(40))
    done = suffice("adapt", labels, "--gate", "fast", "--out", tmp_path / "gate", "--force")
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) < 25
    for part in ("40 labels:", "AUROC", "share answered", "a promise of at most 10%", "next: "):
        assert part in done.output
    gate = Gate.load(tmp_path / "gate")
    assert gate.card["history"] == ["adapted to 40 questions"]
    assert len(gate.card["seen"]) == 40


def test_the_command_says_how_many_labels_a_promise_takes_or_that_it_is_kept(
    tmp_path: Path,
) -> None:
    said = {}
    for count in (30, 100):
        labels = write(tmp_path / "labels.jsonl", yes_no(count))
        words = ("--gate", "fast", "--out", tmp_path / "gate", "--alpha", 0.1, "--force")
        said[count] = suffice("adapt", labels, *words).output
    assert "2,000 labels, as far as these 30 tell" in said[30]
    assert "Never answers: no threshold keeps the promise" in said[30]
    assert "next: adapt again with more labels" in said[30]
    assert "incomplete answers: these 100 labels support it" in said[100]
    assert "Answers from p_complete" in said[100]
    assert "next: suffice check" in said[100]


def test_the_command_refuses_a_gate_that_is_not_better(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    Gate.load(preset="fast").adapt(yes_no(60)).save(gate)
    before = (gate / "manifest.json").read_bytes()
    labels = write(tmp_path / "noise.jsonl", yes_no(40))
    done = suffice("adapt", labels, "--gate", gate, "--out", gate, "--json")
    assert done.exit_code == 3, done.output
    record = json.loads(done.stdout)
    assert (record["path"], record["is_better"]) == (None, False)
    assert (gate / "manifest.json").read_bytes() == before


def test_marks_of_hits_alone_are_no_labels(tmp_path: Path) -> None:
    marks = [
        {**row, "complete": None, "needed": {row["hits"][0]["doc_id"]: True}}
        for row in rows(yes_no(2))
    ]
    path = write_lines(tmp_path / "marks.jsonl", marks)
    done = suffice("adapt", path, "--out", tmp_path / "gate", "--gate", "fast")
    assert (done.exit_code, "per-hit labels alone" in done.output) == (2, True)


def test_the_service_adapts_with_a_key_and_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")
    from tests.service import running_app

    from suffice.service.keys import ApiKeys
    from suffice.service.settings import Settings

    keys, folder = tmp_path / "keys.json", tmp_path / "gates"
    token, _ = ApiKeys(keys).create("shop", ("read", "write"))
    headers = {"authorization": f"Bearer {token}"}
    form: dict[str, Any] = {"name": "shop", "labels": rows(yes_no(30)), "force": True}
    with running_app(Settings(preset="fast")) as client:
        assert client.post("/v1/adapt", json=form).status_code == 403
    with running_app(Settings(preset="fast", keys=str(keys))) as client:
        refused = client.post("/v1/adapt", json=form, headers=headers)
        assert refused.status_code == 409
        assert "--gate-folder" in refused.json()["error"]["hint"]
    with running_app(Settings(preset="fast", keys=str(keys), gate_folder=str(folder))) as client:
        done = client.post("/v1/adapt", json=form, headers=headers)
        assert done.status_code == 200, done.text
        data = done.json()["data"]
        assert (data["name"], data["written"], data["labels"]) == ("shop", True, 30)
        assert Gate.load(folder / "shop").card["history"] == ["adapted to 30 questions"]
        few = client.post("/v1/adapt", json={**form, "labels": form["labels"][:3]}, headers=headers)
        assert few.status_code == 422
        assert "17 more" in few.json()["error"]["hint"]
        away = client.post("/v1/adapt", json={**form, "name": "../shop"}, headers=headers)
        assert away.status_code == 422
        lacking = [*form["labels"], {"question": "Who?", "hits": []}]
        named = client.post("/v1/adapt", json={**form, "labels": lacking}, headers=headers)
        assert "labels[30]: field 'complete' is missing" in named.json()["error"]["message"]
        for value, problem in ((True, "complete is yes, but there are no hits"), (7, "is 7,")):
            wrong = [*form["labels"], {"question": "Who?", "hits": [], "complete": value}]
            odd = client.post("/v1/adapt", json={**form, "labels": wrong}, headers=headers)
            error = odd.json()["error"]
            assert problem in error["message"]
            # Over HTTP there is no --skip-bad to pass.
            assert error["hint"].endswith("or leave it out (on the command line: --skip-bad)")
