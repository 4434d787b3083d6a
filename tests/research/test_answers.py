from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.stand_in_server import fails, says, serving
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.evaluation.metrics import exact_match, gold_contained, token_f1, word_overlap
from suffice.storage import BadRecords
from suffice.types import Question
from suffice_research.answers import AnswerRun, file_answers_table, judge_answers, read_answers


@pytest.mark.parametrize(
    ("answer", "gold", "em", "f1", "accuracy", "overlap"),
    [
        ("Sam Bankman-Fried", "Sam Bankman-Fried", 1, 1, 1, 1),
        ("the Sam Bankman-Fried.", "Sam Bankman-Fried", 1, 1, 1, 1),
        ("Sam", "Sam Bankman-Fried", 0, 2 / 3, 0, 1),
        ("It was Sam Smith.", "Sam Smith", 0, 2 / 3, 1, 1),
        ("Samson Smith", "Sam", 0, 0, 0, 0),  # a name inside a longer word is not held
        ("Yes", "yes", 1, 1, 1, 1),
        ("Yes.", "Yes", 1, 1, 1, 0),  # the papers' rule keeps the full stop
        ("No", "Yes", 0, 0, 0, 0),
        ("the end", "the beginning", 0, 0, 0, 1),  # ... and counts "the"
        ("", "Yes", 0, 0, 0, 0),
        ('Well. The answer to the question is "Yes"', "Yes", 0, 2 / 7, 1, 1),
        ("one two", "two one", 0, 1, 0, 1),
    ],
)
def test_four_ways_to_be_right(
    answer: str, gold: str, em: float, f1: float, accuracy: float, overlap: float
) -> None:
    measures = (exact_match, token_f1, gold_contained, word_overlap)
    assert [float(measure([answer], [[gold]])[0]) for measure in measures] == pytest.approx(
        [em, f1, accuracy, overlap]
    )


def example(name: str, text: str, answer: str | None, kind: str) -> GoldQuestion:
    return GoldQuestion(Question(name, text), Gold(name, frozenset(), answer=answer, kind=kind))


EXAMPLES = [
    example("q0", "Who?", "Sam", "inference"),
    example("q1", "Is it so?", "Yes", "comparison"),
    example("q2", "What else?", None, "inference"),
]


def test_answers_are_found_by_id_or_by_the_questions_words() -> None:
    run = judge_answers("news", EXAMPLES, {"q0": "Sam", "Is it so?": "No"}, system="mine")
    assert run.question_ids == ("q0", "q1")
    assert run.figure("mine", "em").value == 0.5
    assert run.figure("mine", "em", "inference").value == 1.0
    assert [row[0] for row in file_answers_table(run).rows] == ["all", "comparison", "inference"]
    summary = run.summary()["systems"]["mine"]
    assert summary["by_kind"]["comparison"]["token_f1"]["value"] == 0.0
    assert summary["figures"]["complete"]["value"] is None  # nobody knows what they were read from


def test_no_answer_is_a_wrong_answer_and_is_counted() -> None:
    run = judge_answers("news", EXAMPLES, {"q0": "Sam"}, system="mine")
    assert run.figure("mine", "word_overlap").value == 0.5
    assert run.figure("mine", "f1_of_answered").value == 1.0
    assert "1 questions have no answer" in file_answers_table(run).note


def test_answers_to_other_questions_and_questions_without_answers_are_refused() -> None:
    with pytest.raises(InputError, match="none of the answers"):
        judge_answers("news", EXAMPLES, {"q7": "Sam"}, system="mine")
    with pytest.raises(InputError, match="gold answer"):
        judge_answers("news", EXAMPLES[2:], {"q2": "Sam"}, system="mine")
    with pytest.raises(InputError, match="measure"):
        AnswerRun("news", (), (), (), (), {"mine": ()}).values("mine", "bleu")
    with pytest.raises(InputError, match="system"):
        AnswerRun("news", (), (), (), (), {"mine": ()}).values("yours", "em")


def test_files_of_answers_are_read_in_both_layouts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"question_id": "q0", "answer": "Sam"}\n')
    (tmp_path / "b.json").write_text('[{"query": "Who?", "model_answer": "Sam", "answer": "gold"}]')
    assert read_answers(tmp_path / "a.jsonl") == {"q0": "Sam"}
    assert read_answers(tmp_path / "b.json") == {"Who?": "Sam"}
    (tmp_path / "c.jsonl").write_text('{"question_id": "q0", "answer": 7}\n')
    with pytest.raises(InputError, match=r"c\.jsonl:1"):
        read_answers(tmp_path / "c.jsonl")
    bad = BadRecords(skip=True)
    assert read_answers(tmp_path / "c.jsonl", bad) == {}
    assert bad.count == 1


def test_ids_may_be_numbers_and_null_is_no_answer(tmp_path: Path) -> None:
    lines = ('{"question_id": 0, "answer": "Sam"}', '{"question_id": 7, "answer": null}')
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert read_answers(tmp_path / "a.jsonl") == {"0": "Sam"}
    (tmp_path / "b.jsonl").write_text('{"question_id": 7}\n{"answer": null}\n', encoding="utf-8")
    bad = BadRecords(skip=True)
    assert read_answers(tmp_path / "b.jsonl", bad) == {}
    assert bad.count == 2


def test_a_second_answer_does_not_replace_the_first(tmp_path: Path) -> None:
    first = '{"question_id": "q0", "answer": "Sam"}\n'
    file = tmp_path / "answers.jsonl"
    file.write_text(first + first)
    assert read_answers(file) == {"q0": "Sam"}
    file.write_text(first + '{"question_id": "q0", "answer": "Ada"}\n')
    with pytest.raises(
        InputError, match="jsonl:2: question 'q0' already has another answer: 'Sam'"
    ):
        read_answers(file)
    bad = BadRecords(skip=True)
    assert read_answers(file, bad) == {"q0": "Sam"}
    assert bad.count == 1


# ---- the command


@pytest.fixture
def newsroom(tmp_path: Path) -> Path:
    folder = tmp_path / "news"
    folder.mkdir()
    article = {
        "title": "The trial",
        "body": "Sam Smith went to trial.",
        "source": "The Verge",
        "published_at": "2023-10-04",
    }
    (folder / "corpus.json").write_text(
        json.dumps([article, {"title": "Ski", "body": "Snow fell.", "source": "Wired"}])
    )
    evidence = [{"title": "The trial", "fact": "Sam Smith went to trial."}]
    query = {
        "query": "Who went to trial, says The Verge?",
        "answer": "Sam Smith",
        "question_type": "inference_query",
    }
    (folder / "MultiHopRAG.json").write_text(json.dumps([{**query, "evidence_list": evidence}]))
    return folder


def command(newsroom: Path, *more: str) -> tuple[int, str]:
    result = CliRunner().invoke(
        app, ["evaluate", "answers", "--dataset", "multihop_rag", "--path", str(newsroom), *more]
    )
    return result.exit_code, result.output


def test_a_file_of_answers_is_judged(newsroom: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text('{"question_id": "q0", "answer": "Sam Jones"}\n')
    code, output = command(newsroom, "--answers", str(tmp_path / "answers.jsonl"), "--json")
    assert code == 0
    figures = json.loads(output)["systems"]["answers"]["figures"]
    assert (
        figures["em"]["value"],
        figures["token_f1"]["value"],
        figures["word_overlap"]["value"],
    ) == (0, 0.5, 1)
    code, output = command(
        newsroom, "--answers", str(tmp_path / "answers.jsonl"), "--systems", "ask"
    )
    assert (code, "hint: leave out --model and --systems" in output) == (2, True)


def test_a_run_of_answers_is_reported_and_its_errors_are_shown_by_difficulty(
    newsroom: Path, tmp_path: Path
) -> None:
    (tmp_path / "answers.jsonl").write_text('{"question_id": "q0", "answer": "Sam Jones"}\n')
    run, page = str(tmp_path / "run.json"), tmp_path / "page.html"
    code, output = command(newsroom, "--answers", str(tmp_path / "answers.jsonl"), "--out", run)
    assert code == 0
    report = CliRunner().invoke(app, ["report", run])
    assert report.exit_code == 0, report.output
    assert "Answers of answers on multihop_rag" in report.stdout
    assert report.stdout.splitlines()[0] in output  # the table that the run printed itself
    assert CliRunner().invoke(app, ["report", run, "--out", str(page)]).exit_code == 0
    assert "Answers of answers on multihop_rag" in page.read_text(encoding="utf-8")
    words = ["evaluate", "difficulty", run, "--dataset", "multihop_rag"]
    difficulty = CliRunner().invoke(app, [*words, "--benchmark", str(newsroom)])
    assert difficulty.exit_code == 0, difficulty.output


NAIVE = (
    "--systems",
    "naive",
    "--retriever",
    "filtered",
    "--chunk-tokens",
    "256",
    "--gate",
    "default",
)


def test_a_model_reads_what_the_retriever_finds(newsroom: Path, tmp_path: Path) -> None:
    with serving(says('{"answer": "Sam Smith", "sentences": [1]}')) as (url, seen):
        more = [
            *NAIVE,
            "--model",
            "stand-in",
            "--base-url",
            url,
            "--out",
            str(tmp_path / "run.json"),
        ]
        code, output = command(newsroom, *more, "--cache", str(tmp_path / "kept"))
        assert code == 0, output
        assert command(newsroom, *more, "--cache", str(tmp_path / "kept"))[0] == 0
    assert len(seen) == 1  # the second time it was remembered
    assert "Sam Smith went to trial." in seen[0]["messages"][0]["content"]
    (outcome,) = json.loads((tmp_path / "run.json").read_text())["systems"]["naive"]
    assert (outcome["answer"], outcome["cost"]["calls"], outcome["error"]) == ("Sam Smith", 1, None)


def test_a_model_that_never_answers_is_an_error_with_a_hint(newsroom: Path) -> None:
    with serving(fails(404)) as (url, _):
        code, output = command(newsroom, *NAIVE, "--model", "stand-in", "--base-url", url)
    assert code == 1
    assert "hint: check the server" in output
