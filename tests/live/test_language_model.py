"""A real model server: llama.cpp with SmolLM2, started here, asked through the OpenAI protocol.
Weak answers, real protocol.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import typed

from suffice.integrations.judge import SAID, open_judge
from suffice.integrations.openai import CachedModel, OpenAIModel
from suffice.retrieval.filters import ModelExtractor, filter_schema
from suffice.retrieval.metadata import Vocabulary
from suffice.types import FIELDS

# One worker, one server: loading the model twice would cost more than it proves.
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("llm")]

VOCABULARY = Vocabulary(
    {
        "source": ["The Verge", "TechCrunch", "Fortune"],
        "published_at": ["2023-10-07", "2023-10-31", "2023-11-18"],
    }
)
QUESTIONS = (
    "What did Fortune and TechCrunch report about the trial?",
    "Who taught the teacher of Ada Lovelace?",
)


@pytest.fixture(scope="module")
def model(server: str) -> OpenAIModel:
    return OpenAIModel("smollm2", base_url=server, timeout_s=240, retries=0, max_tokens=160)


def test_every_answer_is_json_that_fits_the_schema_and_becomes_a_filter(
    model: OpenAIModel, tmp_path: Path
) -> None:
    schema = filter_schema(VOCABULARY)
    cached = CachedModel(model, tmp_path / "answers.db")
    extractor = ModelExtractor(cached, VOCABULARY)
    found = extractor.extract(QUESTIONS)
    for question, extraction in zip(QUESTIONS, found):
        assert extraction.by == "model", extraction.notes
        (answer,) = cached.complete(
            [extractor.prompt(question)], schema=schema
        )  # remembered: not asked again
        assert fits(json.loads(answer))
        for condition in extraction.filter.conditions:
            assert condition.field in FIELDS
            assert condition.field == "published_at" or set(condition.values) <= set(
                VOCABULARY.values["source"]
            )
    assert not found[1].filter  # whatever the model said, the question names no source and no date


def fits(answer: Any) -> bool:
    """The schema in plain words."""
    operators = {"source": {"$in", "$nin"}, "published_at": {"$in", "$nin", "$gte", "$lte"}}
    return isinstance(answer, dict) and all(
        field in operators and isinstance(wanted, dict) and set(wanted) <= operators[field]
        for field, wanted in answer.items()
    )


def test_a_server_that_is_too_slow_leaves_the_question_to_the_vocabulary(server: str) -> None:
    hurried = OpenAIModel("smollm2", base_url=server, timeout_s=0.01, retries=0, max_tokens=8)
    (found,) = ModelExtractor(hurried, VOCABULARY).extract(
        ["What did Fortune report, in a question that is new?"]
    )
    assert found.by == "vocabulary"
    assert found.filter.conditions[0].values == ("Fortune",)
    assert "within 0.01 s" in found.notes[0]


def test_it_judges_hits_by_its_log_probabilities(server: str) -> None:
    judge = open_judge(f"{server}#smollm2", timeout_s=240)
    opinions = judge.judge([("Who wrote Emma?", ["Emma"], ["Emma is a novel by Jane Austen."])] * 2)
    assert all(one.log_odds is not None and abs(one.log_odds) != SAID for one in opinions)


def test_it_answers_questions_about_what_a_retriever_finds(server: str, tmp_path: Path) -> None:
    article = {
        "title": "The trial",
        "body": "Sam Smith went to trial in October.",
        "source": "The Verge",
    }
    query = {
        "query": "Who went to trial?",
        "answer": "Sam Smith",
        "question_type": "inference_query",
    }
    (tmp_path / "corpus.json").write_text(json.dumps([article]))
    (tmp_path / "MultiHopRAG.json").write_text(
        json.dumps([{**query, "evidence_list": [{"title": "The trial"}]}])
    )
    server_options = f"--model smollm2 --base-url {server} --timeout-s 240 --json"
    result = typed(
        f"evaluate answers --dataset multihop_rag --path {tmp_path} {server_options} "
        "--retriever bm25 --systems naive --gate default"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["systems"]["naive"]["figures"]["calls"]["value"] == 1
