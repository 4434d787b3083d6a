"""PAR-RAG's tables are copied right, and a small study of it runs from a folder to a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docs.generators.results import study_page, study_path, with_rows
from tests.small_world import BRIDGE, COMPARISON, Says, write_2wiki
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.datasets import load
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.gate.gate import FAST, SHIPPED_MODELS
from suffice.gate.training import LabelledQuestion
from suffice.types import Action, Estimate, Question, Verdict
from suffice_research.answer_systems import (
    AnswerExperiment,
    AnswerSettings,
    AnswerSetup,
    draw_questions,
    open_corpus,
)
from suffice_research.answers import AnswerOutcome, make_answer_run
from suffice_research.local_model import serve_gguf
from suffice_research.par_rag import choices, complexity
from suffice_research.par_rag import study as par_rag
from suffice_research.par_rag.model_study import READER_SYSTEMS, Unseen, reader_study
from suffice_research.par_rag.study import study
from suffice_research.study import Study, table_cell

STUDY = study_path("par-rag")
SETS = ("2wikimultihopqa", "hotpotqa", "musique")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A village of films in 2WikiMultiHopQA's layout, asked about in several words so that both
    halves have both kinds.
    """
    folder = tmp_path_factory.mktemp("data") / "2wikimultihopqa"
    folder.mkdir()
    other = "When did the mother of Lothair II die?"
    write_2wiki(folder, BRIDGE, other, f"{BRIDGE} ", COMPARISON, f"{COMPARISON} ")
    return folder.parent


@pytest.fixture(scope="module", autouse=True)
def few_questions_and_no_bert() -> Iterator[None]:
    """The loop with every count takes eight times as long as once; the real encoder takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(par_rag, "LOOPS", ("always", "always, no review", "ask", "ask, no gate"))
        patch.setattr(complexity, "FORCED", 1)
        patch.setattr(complexity, "small_bert", lambda: (None, "Left out the small BERT: a test"))
        patch.setattr(choices, "ANSWERS", 2)
        patch.setattr(choices, "cross_encoder", lambda: (Overlap(), ""))
        yield


class Overlap:
    """A cross-encoder that counts common words."""

    def score(self, question, texts):
        return [float(len(set(question.split()) & set(text.split()))) for text in texts]


class Agreeable:
    """A gate that is as sure of every set."""

    def __init__(self, p: float) -> None:
        self.p = p

    def check_batch(self, pairs, **_):
        action = Action.ANSWER if self.p > 0.5 else Action.ABSTAIN
        return [Verdict(Estimate(self.p, self.p, self.p), action) for _ in pairs]


FAST_GATE = str(SHIPPED_MODELS / f"gate-{FAST}")  # reading takes most of the standard one's time


@pytest.fixture(scope="module")
def done(data: Path) -> Study:
    return study(data=data, datasets=SETS[:1], gate=FAST_GATE)


def test_ours_stand_beside_the_papers(done: Study) -> None:
    row = next(row for row in done.table("Table 2").rows if row[0] == "PAR RAG")
    assert row[1] == "always"
    assert row[2].paper == 0.73  # type: ignore[union-attr]
    assert table_cell(done.table("Relative gain"), "2wikimultihopqa", "the paper's") == 0.1639
    assert {row[0] for row in done.table("What each part").rows} == {"2wikimultihopqa"}


def test_without_model_and_bert_the_study_says_what_it_left_out(done: Study) -> None:
    assert [note.split()[2] for note in done.notes if note.startswith("Left out")] == [
        *("exemplars", "the", "one-hop"),
    ]
    assert {row[0] for row in done.table("Every count forced").rows} == {"2wikimultihopqa"}
    shares = done.table("Kinds of errors").rows[0][3:]
    assert len(shares) == len(complexity.ERROR_KINDS)
    assert done.table("Does a cross-encoder").rows[0][0] == "2wikimultihopqa"


def test_a_gate_of_lists_is_compared_on_what_the_loop_held(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = load("2wikimultihopqa", data / "2wikimultihopqa")
    settings = AnswerSettings(part="odd")
    questions = draw_questions(dataset, part="odd")
    setup = AnswerSetup(open_corpus(dataset))
    gates = [Agreeable(0.9)] * len(questions)
    experiment = AnswerExperiment("village", settings, questions, setup, gates, 0)  # type: ignore[arg-type]
    held = [AnswerOutcome(None, tuple(one.gold.doc_ids)) for one in questions]
    run = make_answer_run("village", questions, {"always": held})
    taught: list[LabelledQuestion] = []

    def fit(examples: list[LabelledQuestion]) -> Agreeable:
        taught.extend(examples)
        return Agreeable(0.1)

    monkeypatch.setattr(choices, "gate_fitter", lambda *_, **__: fit)
    found = choices.measure_held_sets(experiment, dataset, run)
    assert found is not None
    assert {one.question for one in taught}.isdisjoint(one.question.text for one in questions)
    row: Any = choices.agreement_table({"village": found}).rows[0]
    assert row[:4] == ("village", "all", len(questions), len(questions))
    assert (row[4].value, row[6].value) == (1.0, 0.0)
    whole = replace(experiment, settings=AnswerSettings(part="all"))
    assert choices.measure_held_sets(whole, dataset, run) is None  # no other half to learn from


def test_the_same_seed_gives_the_same_bytes_and_a_page(data: Path, done: Study) -> None:
    again = study(data=data, datasets=SETS[:1], gate=FAST_GATE)
    assert again.to_json(timings=False) == done.to_json(timings=False)
    assert done.timings  # seconds stand apart
    text = study_page(done)
    assert "suffice reproduce par-rag --data $DATA" in text
    assert "What is not held out" in text


def test_a_study_with_a_model_is_kept_and_shown_beside_the_papers(
    data: Path, tmp_path: Path
) -> None:
    model = Says({"passages": {"answer": "Dog Law", "sentences": [1]}, "know": {"answer": "851"}})
    options: Any = {"data": data, "datasets": SETS[:1], "limit": 1, "workers": 2, "cache": tmp_path}
    done = study(model=model, **options)
    assert done.settings["model"] == "says"
    assert done.settings["questions"] == {SETS[0]: 1}
    naive, always = (
        next(row for row in done.table(name).rows if row[0] == theirs)
        for name, theirs in (("Table 2", "Vanilla RAG"), ("Table 4", "PAR RAG"))
    )
    assert (naive[1], naive[2].paper) == ("naive", 0.45)  # type: ignore[union-attr]
    assert (always[1], always[2].paper) == ("always", 10132.81)  # type: ignore[union-attr]
    assert table_cell(done.table("What the gate saves"), SETS[0], "n") == 1
    costs = done.table("Evidence and cost")
    assert table_cell(costs, "model alone", "calls") == 1.0
    assert table_cell(costs, "ask, reader", "tokens") == 0.0
    again = study(model=Says({}), **options)  # it is not asked again
    assert again.to_json(timings=False) == done.to_json(timings=False)
    page = study_page(Study.load(STUDY), done)
    assert "## With a language model, beside the paper" in page
    assert "--model" in page


def test_rows_of_the_reader_are_measured_without_a_model(data: Path, tmp_path: Path) -> None:
    options: Any = {"data": data, "datasets": SETS[:1], "limit": 1}
    model = Says({"passages": {"answer": "Dog Law", "sentences": [1]}})
    stored = study(model=model, cache=tmp_path, **options)
    newer = reader_study(**options)
    assert newer.settings["asked"] == stored.settings["asked"]
    told = replace(newer, summary=("F1 of today.",), commit="0123456789")
    renewed = with_rows(stored, told)
    for title in ("Answers on", "Evidence and cost"):
        rows = {row[0]: row for row in renewed.table(title).rows}
        assert [*rows] == [*stored.settings["systems"]]
        measured = {row[0]: row for row in newer.table(title).rows}
        row = measured["ask, reader"]
        assert rows["ask, reader"][: len(row)] == row
        assert rows["naive"] == next(one for one in stored.table(title).rows if one[0] == "naive")
    assert {row[0] for row in renewed.table("Above naive").rows}.isdisjoint(READER_SYSTEMS)
    assert sum("reader instead" in one for one in stored.summary) == 1
    assert not any("reader instead" in one for one in renewed.summary)
    page = study_page(Study.load(STUDY), stored, told)
    assert "They were measured at commit 01234567" in page
    assert "- F1 of today." in page
    others = replace(newer, settings={**newer.settings, "asked": {}})
    with pytest.raises(InputError, match="other questions"):
        with_rows(stored, others)


def test_no_question_that_taught_the_gate_or_its_reader_is_asked() -> None:
    def question(dataset: str, at: int) -> GoldQuestion:
        return GoldQuestion(Question(f"q{at}", f"Who is {at}?"), Gold(f"q{at}", frozenset("d")))

    taught = "Who is 3?"
    for dataset, share in (("hotpotqa", 1.0), ("musique", 0.25), ("multihop_rag", 0.08)):
        unseen = Unseen(dataset, lambda text: text == taught)
        asked = [one for one in (question(dataset, at) for at in range(2000)) if unseen(one)]
        assert len(asked) / 2000 == pytest.approx(share, abs=0.03)
        assert all(one.question.text != taught for one in asked)
        null = replace(asked[0], gold=replace(asked[0].gold, doc_ids=frozenset()))
        assert not unseen(null)


def test_a_model_file_that_cannot_be_served_says_why(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["reproduce", "par-rag", "--data", str(data), "--limit", "1", "--model"]
    path = tmp_path / "model.gguf"
    with pytest.raises(InputError, match="does not exist"), serve_gguf(path):
        pass
    path.write_bytes(b"GGUF")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="xllamacpp") as caught, serve_gguf(path):
        pass
    assert "--base-url" in caught.value.hint
    result = CliRunner().invoke(app, [*words, str(path)])
    assert result.exit_code == 2
    assert "does not hold hotpotqa/" in result.output


def test_a_folder_without_the_data_is_refused_and_so_is_a_model_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2wikimultihopqa"):
        study(data=tmp_path)
    result = CliRunner().invoke(app, ["reproduce", "magaf", "--limit", "3"])
    assert result.exit_code == 2
    assert "leave --limit out" in result.output
