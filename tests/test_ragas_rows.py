"""Rows of ragas and deepeval, in and out, without either of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.bridge_question import DIRECTOR, FILM, QUESTION, WRONG
from tests.commands import write_lines

from suffice import datasets
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.errors import InputError
from suffice.gate.gate import Gate
from suffice.integrations.ragas_rows import (
    deepeval_rows,
    question_and_hits,
    ragas_rows,
    to_ragas_row,
)
from suffice.types import Document, Hit, Question

DOCUMENTS = {
    name: Document(name, pair[1], pair[0])
    for name, pair in (("film", FILM), ("wrong", WRONG), ("director", DIRECTOR))
}
EXAMPLES = [
    GoldQuestion(
        Question("q1", QUESTION),
        Gold("q1", frozenset({"film", "director"}), answer="Vienna", hops=2),
        (Hit("film"), Hit("wrong")),
    ),
    GoldQuestion(Question("q2", "Who?"), Gold("q2", frozenset({"gone"}), hops=1), None),
]


def test_rows_that_go_out_come_back_as_the_same_data_set(tmp_path: Path) -> None:
    rows = list(ragas_rows(EXAMPLES, DOCUMENTS))
    assert rows[0]["retrieved_contexts"] == [FILM[1], WRONG[1]]
    assert rows[0]["reference_context_ids"] == ["director", "film"]
    assert (rows[1]["retrieved_contexts"], rows[1]["reference_contexts"]) == ([], [""])
    write_lines(tmp_path / "rows.jsonl", rows)
    again = datasets.load("ragas", tmp_path / "rows.jsonl")
    found = list(again.questions())
    assert [one.question for one in found] == [one.question for one in EXAMPLES]
    assert [one.gold.doc_ids for one in found] == [one.gold.doc_ids for one in EXAMPLES]
    assert found[0].hits == EXAMPLES[0].hits
    assert {one.doc_id: one.text for one in again.documents()}["director"] == DIRECTOR[1]


def test_a_deepeval_case_goes_out_and_comes_back_as_the_ragas_row() -> None:
    for case, row in zip(
        deepeval_rows(EXAMPLES, DOCUMENTS), ragas_rows(EXAMPLES, DOCUMENTS), strict=True
    ):
        assert to_ragas_row(case) == {**row, "response": ""}
        assert to_ragas_row(SimpleNamespace(**case)) == {**row, "response": ""}
        assert to_ragas_row(json.loads(json.dumps(case))) == {**row, "response": ""}


@pytest.mark.parametrize(
    "case",
    [
        {"user_input": QUESTION, "retrieved_contexts": [FILM[1], DIRECTOR[1]]},
        {"question": QUESTION, "contexts": [FILM[1], DIRECTOR[1]], "ground_truth": "Vienna"},
        {"input": QUESTION, "retrievalContext": [FILM[1], DIRECTOR[1]]},
        SimpleNamespace(
            input=QUESTION,
            retrieval_context=[FILM[1], SimpleNamespace(context=DIRECTOR[1], source="wiki")],
        ),
    ],
)
def test_every_shape_is_the_same_to_the_gate(case: Any) -> None:
    question, hits = question_and_hits(case)
    assert (question, [hit["text"] for hit in hits]) == (QUESTION, [FILM[1], DIRECTOR[1]])
    assert len({hit["doc_id"] for hit in hits}) == 2


def test_rows_go_under_the_gate_also_without_contexts() -> None:
    rows = [*deepeval_rows(EXAMPLES, DOCUMENTS), {"user_input": QUESTION, "retrieved_contexts": []}]
    verdicts = Gate.load(preset="fast").check_batch(map(question_and_hits, rows))
    assert verdicts[0].missing == ("Fritz Lang",)
    assert [one.action for one in verdicts[1:]] == ["abstain", "abstain"]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({}, "no question"),
        ({"user_input": 3, "retrieved_contexts": []}, "user_input is of type int"),
        ({"user_input": "x"}, "no retrieved texts"),
        ({"user_input": "x", "retrieved_contexts": "y"}, "retrieved_contexts is of type str"),
        (
            {"user_input": "x", "retrieved_contexts": [None]},
            "retrieved_contexts is of type NoneType",
        ),
        (
            {"user_input": "x", "retrieved_contexts": ["y"], "retrieved_context_ids": ["a", "b"]},
            "2 retrieved_context_ids for 1",
        ),
        (None, "no question"),
    ],
)
def test_an_invalid_row_names_the_problem(row: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        question_and_hits(row)
