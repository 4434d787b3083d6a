from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.commands import write_lines

from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.evaluation.retrieval import evaluate_retrieval
from suffice.storage import BadRecords
from suffice.types import Hit, Question
from suffice_grade.difficulty_matrix import read_results

EXAMPLES = [
    GoldQuestion(
        Question("q1", "Who taught Ada's teacher?"),
        Gold("q1", frozenset({"ada", "mary"}), answer="John Playfair"),
    ),
    GoldQuestion(
        Question("q2", "Who taught Ada?"), Gold("q2", frozenset({"ada"}), answer="Mary Somerville")
    ),
]


def results(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "rag.jsonl"
    return write_lines(path, records)


def test_a_system_that_says_whether_it_was_right_is_believed(tmp_path: Path) -> None:
    path = results(
        tmp_path, {"question_id": "q1", "correct": True}, {"question_id": "q2", "correct": 0}
    )
    assert read_results(path, EXAMPLES) == {"rag": {"q1": 0.0, "q2": 1.0}}


def test_answers_are_judged_by_the_gold_answer(tmp_path: Path) -> None:
    path = results(
        tmp_path,
        {"question_id": "q1", "answer": "the John Playfair."},
        {"question_id": "q2", "answer": "Somerville"},
    )
    assert read_results(path, EXAMPLES) == {"rag": {"q1": 0.0, "q2": 1.0}}
    assert read_results(path, EXAMPLES, match="token_f1") == {"rag": {"q1": 0.0, "q2": 0.0}}


def test_what_was_retrieved_is_right_when_the_first_k_hold_all_gold(tmp_path: Path) -> None:
    path = results(
        tmp_path, {"question_id": "q1", "retrieved": ["ada", "cheese", {"doc_id": "mary"}]}
    )
    assert read_results(path, EXAMPLES, k=3) == {"rag": {"q1": 0.0}}
    assert read_results(path, EXAMPLES, k=2) == {"rag": {"q1": 1.0}}


def test_one_file_may_hold_several_systems_and_questions_of_others(tmp_path: Path) -> None:
    path = results(
        tmp_path,
        {"question_id": "q1", "system": "old", "correct": False},
        {"question_id": "q1", "system": "new", "correct": True},
        {"question_id": "elsewhere", "system": "new", "correct": True},
    )
    assert read_results(path, EXAMPLES) == {"old": {"q1": 1.0}, "new": {"q1": 0.0}}


def test_a_run_of_ours_is_a_results_file(tmp_path: Path) -> None:
    class Half:
        def search(self, questions: Any, *, k: int, filters: Any = None) -> list[tuple[Hit, ...]]:
            return [(Hit("cheese", 2.0), Hit("ada", 1.0))[:k] for _ in questions]

    run = evaluate_retrieval("village", EXAMPLES, {"half": Half()}, (1, 2))
    path = run.save(tmp_path / "run.json")
    assert read_results(path, EXAMPLES, k=2) == {"half": {"q1": 1.0, "q2": 0.0}}
    assert read_results(path, EXAMPLES, k=1) == {"half": {"q1": 1.0, "q2": 1.0}}
    with pytest.raises(InputError, match="2 deep"):
        read_results(path, EXAMPLES, k=10)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"question_id": "q9", "correct": True}, "no question"),
        ({"question_id": "q1"}, "correct, answer or retrieved"),
        ({"question_id": "q1", "correct": "yes"}, "with correct"),
        ({"question_id": "q1", "retrieved": "ada"}, "with retrieved"),
    ],
)
def test_what_cannot_be_judged_is_told_with_its_line(
    record: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=says):
        read_results(results(tmp_path, record), EXAMPLES)


def test_unknown_choices_are_told(tmp_path: Path) -> None:
    path = results(tmp_path, {"question_id": "q1", "correct": True})
    with pytest.raises(InputError, match="judged by"):
        read_results(path, EXAMPLES, by="vibes")
    with pytest.raises(InputError, match="answer metric"):
        read_results(path, EXAMPLES, match="bleu")


def test_a_broken_line_stops_the_reading_or_is_left_out_and_counted(tmp_path: Path) -> None:
    path = results(tmp_path, {"question_id": "q1", "correct": True})
    path.write_text(path.read_text(encoding="utf-8") + "{oops\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"rag\.jsonl:2"):
        read_results(path, EXAMPLES)
    bad = BadRecords(skip=True)
    assert read_results(path, EXAMPLES, bad=bad) == {"rag": {"q1": 0.0}}
    assert bad.count == 1


def test_a_second_result_does_not_replace_the_first(tmp_path: Path) -> None:
    rows = [{"question_id": "q1", "correct": right} for right in (True, True, False)]
    path = results(tmp_path, *rows)
    with pytest.raises(InputError, match="jsonl:3: question 'q1' already has another result"):
        read_results(path, EXAMPLES)
    bad = BadRecords(skip=True)
    assert read_results(path, EXAMPLES, bad=bad) == {"rag": {"q1": 0.0}}
    assert bad.count == 1
