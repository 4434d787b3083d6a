"""Measuring answers: the loop beside readers that look once, and gates that have not seen what they
judge.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.small_gate import collection, few_trees
from tests.small_world import BRIDGE, COMPARISON, Says, Wants, write_2wiki
from tests.values import known
from typer.testing import CliRunner

from suffice.answering.budget import Budget
from suffice.cli.app import app
from suffice.datasets import load
from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import DataError, InputError, ModelError
from suffice.evaluation.gate_evaluation import count_seen
from suffice.types import FoundAnswer, Hit, Question
from suffice_research.answer_systems import (
    AnswerSetup,
    OutcomeFile,
    all_systems,
    draw_questions,
    gates_for_questions,
    open_corpus,
    parse_systems,
    run_systems,
)
from suffice_research.answers import (
    AnswerOutcome,
    AnswerRun,
    answer_tables,
    kinds_table,
    make_answer_run,
)
from suffice_research.par_rag.stopping import equal_coverage_table, ordered_answers
from suffice_research.par_rag.tables import risk_figure
from suffice_research.study import table_cell


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_2wiki(tmp_path_factory.mktemp("2wiki"), BRIDGE, COMPARISON)


@pytest.fixture(scope="module")
def village(folder: Path) -> Dataset:
    return load("2wikimultihopqa", folder)


@pytest.fixture(scope="module")
def bench(village: Dataset) -> AnswerSetup:
    return AnswerSetup(open_corpus(village, cached=True), k=2)


@pytest.fixture(scope="module")
def run(village: Dataset, bench: AnswerSetup) -> AnswerRun:
    examples = draw_questions(village)
    found = run_systems(examples, bench, [Wants()] * len(examples), systems=list(all_systems()))
    return make_answer_run("village", examples, found)


def test_the_loop_walks_where_one_look_does_not_reach(run: AnswerRun) -> None:
    f1 = {system: run.figure(system, "token_f1").value for system in run.systems}
    assert f1["ask"] == f1["always"] == f1["max rounds"] == 1.0
    assert known(f1["single passage"]) < 1.0
    assert run.figure("ask", "complete").value == 1.0
    assert run.figure("single passage", "documents").value == 1.0
    assert run.above("ask", "single passage", "token_f1").value > 0  # type: ignore[operator]


def test_what_was_not_said_is_still_known(village: Dataset, bench: AnswerSetup) -> None:
    """A gate that is never content lets nothing be answered; what would have been said can be
    judged all the same.
    """
    examples = draw_questions(village)
    found = run_systems(
        examples, bench, [Wants("no such document")] * len(examples), systems=["ask"]
    )
    run = make_answer_run("village", examples, found)
    assert run.figure("ask", "answered").value == 0.0
    assert run.figure("ask", "f1_of_answered").value is None
    assert [one.candidate for one in run.outcomes("ask")] == list(run.gold)
    ordered = ordered_answers(run, "ask", "gate", "right")
    assert ordered is not None
    assert ordered.labels.tolist() == [1.0, 1.0]


def test_the_tables_tell_all_systems_apart(run: AnswerRun) -> None:
    titles = [table.title for table in answer_tables(run)]
    assert [title.partition(" on ")[0] for title in titles] == [
        "Answers",
        "Evidence and cost",
        "Above naive",
        "Who knows best what to answer",
        "At equal coverage",
        "Complete at equal documents",
    ]  # two questions are too few for a table by kind
    assert table_cell(kinds_table(run, fewest=1), "comparison", "n") == 1
    assert [line.name for line in risk_figure(run, "complete").lines][:2] == [
        "ask, by gate",
        "always, by review",
    ]


def made(sure: list[float], complete: list[bool]) -> AnswerRun:
    """Everyone is right; some without evidence."""
    names = [f"q{at}" for at, _ in enumerate(sure)]
    outcomes = {
        "always": [
            AnswerOutcome(
                "yes",
                ("d",) if whole else (),
                candidate="yes",
                sure={"gate": gate, "review": 1 - gate},
            )
            for gate, whole in zip(sure, complete)
        ]
    }
    examples = [
        GoldQuestion(Question(name, name), Gold(name, frozenset({"d"}), answer="yes"))
        for name in names
    ]
    return make_answer_run("made", examples, outcomes)


def test_at_equal_coverage_the_better_order_has_less_without_evidence() -> None:
    run = made([0.9, 0.8, 0.2, 0.1], [True, True, False, False])
    row = next(
        row for row in equal_coverage_table(run).rows if row[1:3] == ("always, by review", 0.5)
    )
    assert (row[0], row[3], row[4]) == ("always, by gate", 0.0, 1.0)
    assert row[5].value == -1.0  # type: ignore[union-attr]
    assert (
        ordered_answers(run, "always", "first hit", "complete") is None
    )  # nobody told the hits' scores


def test_halves_share_no_question_and_the_draw_is_the_same_again(village: Dataset) -> None:
    even, odd = (draw_questions(village, part=part) for part in ("even", "odd"))
    assert {one.question.text for one in even}.isdisjoint(one.question.text for one in odd)
    assert len(even) + len(odd) == len(draw_questions(village))
    assert draw_questions(village, limit=1) == draw_questions(village, limit=1)
    (kept,) = draw_questions(village, limit=1, keep=lambda one: one.question.text == BRIDGE)
    assert kept.question.text == BRIDGE
    with pytest.raises(InputError, match="part"):
        draw_questions(village, part="third")


def test_questions_of_the_same_words_stay_in_one_half() -> None:
    twice = [
        GoldQuestion(
            Question(f"q{at}", f"Who is {at % 5}?"), Gold(f"q{at}", frozenset(), answer="x")
        )
        for at in range(10)
    ]
    dataset = Dataset("twice", documents=lambda _: iter(()), questions=lambda _: iter(twice))
    halves = [
        {one.question.text for one in draw_questions(dataset, part=part)}
        for part in ("even", "odd")
    ]
    assert halves[0].isdisjoint(halves[1])


def test_an_unknown_system_is_refused_with_the_nearest(bench: AnswerSetup) -> None:
    with pytest.raises(InputError) as caught:
        run_systems([], bench, [], systems=["asks"])
    assert "ask" in caught.value.hint
    assert "ask, any exemplars" not in parse_systems("all", with_model=False)
    assert parse_systems("ask, no gate; naive", with_model=False) == ("ask, no gate", "naive")


class Counts(Says):
    """Says who it was for how many tokens, as a client of one server does."""

    def complete(self, prompts, *, schema=None):
        self.last_tokens = (len(prompts[0]), 0)
        time.sleep(0.001)  # others get their turn
        return super().complete(prompts, schema=schema)


def test_questions_at_the_same_time_come_to_the_same_at_the_same_cost(
    village: Dataset, bench: AnswerSetup
) -> None:
    examples = draw_questions(village) * 4
    setup = replace(bench, model=Counts({"passages": {"answer": "Dog Law", "sentences": [1]}}))
    gates, systems = [Wants()] * len(examples), ["model alone", "naive", "gate, then loop"]
    alone, together = (
        run_systems(examples, setup, gates, systems=systems, workers=workers) for workers in (1, 4)
    )
    assert alone == together
    assert all(one.cost.tokens > 100 for one in together["naive"])


def test_the_gate_decides_whether_one_reading_is_enough(
    village: Dataset, bench: AnswerSetup
) -> None:
    examples = [one for one in draw_questions(village) if one.question.text == BRIDGE]
    answers = {"sentences": {"answer": "20 March 851", "sentences": [1]}, "know": {"answer": "851"}}
    for gate, once in ((Wants(), True), (Wants("no such document"), False)):
        setup = replace(bench, model=Says(answers))
        systems = ["gate, then loop", "model alone", "ask, reader"]
        found = run_systems(examples, setup, [gate], systems=systems)
        assert (found["gate, then loop"][0].cost.calls == 1) == once
        assert found["gate, then loop"][0].answer == "20 March 851"
        alone = found["model alone"][0]
        assert (alone.answer, alone.held, alone.cost.calls) == ("851", (), 1)
        assert found["ask, reader"][0].cost.calls == 0
    for said in ("unknown", "", 5, None):
        setup = replace(bench, model=Says({"know": {"answer": said}}))
        found = run_systems(examples, setup, [Wants()], systems=["model alone"])
        assert found["model alone"][0].answer is None


def test_outcomes_are_kept_and_a_run_goes_on_where_it_ended(
    village: Dataset, bench: AnswerSetup, tmp_path: Path
) -> None:
    examples, path = draw_questions(village), tmp_path / "new" / "outcomes.jsonl"
    model = Says({"passages": {"answer": "Dog Law", "sentences": [1]}})
    setup, gates = replace(bench, model=model), [Wants()] * len(examples)
    systems = ["naive", "along links", "ask, reader"]
    first = run_systems(examples, setup, gates, systems=systems, kept=OutcomeFile(path))
    asked = len(model.shown)
    assert len(OutcomeFile(path)) == 6
    assert run_systems(examples, setup, gates, systems=systems, kept=OutcomeFile(path)) == first
    assert len(model.shown) == asked
    whole = path.read_text()
    path.write_text(whole[:-40])  # killed while it wrote
    assert run_systems(examples, setup, gates, systems=systems, kept=OutcomeFile(path)) == first
    assert sorted(path.read_text().splitlines()) == sorted(whole.splitlines())
    path.write_text('{"system": "naive"}\n')
    with pytest.raises(DataError, match=r"outcomes.jsonl:1 is not an outcome"):
        OutcomeFile(path)

    def fails(prompt: str) -> str:
        raise ModelError("no server")

    broken = replace(bench, model=Says(fails))
    path.unlink()
    with pytest.raises(ModelError, match="answered nothing: no server"):  # though the reader did
        run_systems(examples, broken, gates, systems=systems, kept=OutcomeFile(path))
    assert len(OutcomeFile(path)) == 2  # a failure is not kept


def test_a_fitted_gate_has_not_seen_what_it_judges_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice_research.answer_systems.MAX_TRAINING_QUESTIONS", 60)
    documents, examples = collection()
    dataset = Dataset(
        "small",
        documents=lambda _: iter(documents.values()),
        questions=lambda _: (replace(one, gold=replace(one.gold, answer="x")) for one in examples),
    )
    nothing = FoundAnswer("", -1, 0, 0, 0.0)  # reading is slow, and no matter of gates
    corpus = open_corpus(dataset, retriever="bm25")
    bench = AnswerSetup(corpus, budget=Budget(documents=4), find=lambda *_: nothing)
    chosen = draw_questions(dataset, limit=6, part="odd")
    with few_trees():
        gates, seen = gates_for_questions(dataset, chosen, bench, cache=tmp_path)
    assert (len(gates), seen) == (6, 0)
    assert (
        count_seen(gates[0], [one.question.text for one in draw_questions(dataset, part="even")])
        > 0
    )
    (folder,) = tmp_path.iterdir()
    before = folder.stat().st_mtime_ns
    again, _ = gates_for_questions(dataset, chosen, bench, cache=tmp_path)
    assert folder.stat().st_mtime_ns == before
    question = (chosen[0].question.text, [Hit(one) for one in list(documents)[:3]])
    assert again[0].check_batch([question], documents=documents) == gates[0].check_batch(
        [question], documents=documents
    )


def test_the_command_prints_what_each_system_came_to(folder: Path) -> None:
    words = [
        "evaluate",
        "answers",
        "--dataset",
        "2wikimultihopqa",
        "--path",
        str(folder),
        "--retriever",
        "bm25",
        "--json",
    ]
    result = CliRunner().invoke(
        app, [*words, "--gate", "default", "--systems", "naive;fixed k;ask"]
    )
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert list(printed["systems"]) == ["naive", "fixed k", "ask"]
    assert printed["systems"]["ask"]["figures"]["seconds"]["value"] > 0
    assert set(printed["systems"]["ask"]["by_kind"]) == {"comparison", "compositional"}
