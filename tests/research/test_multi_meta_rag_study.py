"""The study on a small newsroom in MultiHop-RAG's layout; on the real data see tests/papers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InputError
from suffice.evaluation.significance import Interval
from suffice.integrations.openai import CachedModel
from suffice.registry import RERANKERS
from suffice.retrieval.builtin import DEFAULT_RERANKER
from suffice_research.multi_meta_rag.answering import score_answers
from suffice_research.multi_meta_rag.requests import (
    all_requests,
    read_answers,
    store_answers,
    store_scores,
)
from suffice_research.multi_meta_rag.study import study
from suffice_research.study import Study

SOURCES = ("The Verge", "Fortune", "Wired", None)
TOPICS = ("trial", "merger", "launch", "strike")


@pytest.fixture(scope="module")
def newsroom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen articles of four outlets on four topics; each question compares two outlets on one
    topic.
    """
    folder = tmp_path_factory.mktemp("data") / "multihop_rag"
    folder.mkdir()
    articles, queries, filters = [], [], []
    for place, topic in enumerate(TOPICS):
        for number, source in enumerate(SOURCES):
            fact = f"The {topic} of {source or 'nobody'} ended."
            day = f"2023-10-{1 + place * 4 + number:02}T12:00:00+00:00" if source else None
            articles.append(
                {
                    "title": f"{topic} {number}",
                    "body": f"All about it. {fact}",
                    "source": source,
                    "published_at": day,
                }
            )
    for kind in ("comparison", "temporal", "inference"):
        for topic in TOPICS:
            query = f"Do The Verge and Fortune agree on the {topic}, in a {kind} question?"
            evidence = [
                {"title": f"{topic} {at}", "fact": f"The {topic} of {SOURCES[at]} ended."}
                for at in (0, 1)
            ]
            queries.append(
                {
                    "query": query,
                    "answer": "Yes",
                    "question_type": f"{kind}_query",
                    "evidence_list": evidence,
                }
            )
            filters.append(
                {"query": query, "filter": {"source": {"$in": ["The Verge", "The Daily Prophet"]}}}
            )
    for name, value in (
        ("corpus", articles),
        ("MultiHopRAG", queries),
        ("query_metadata_filters", filters),
    ):
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


@pytest.fixture(scope="module")
def small(newsroom: Path) -> Study:
    return study(data=newsroom.parent, encoders=("wordllama",))


def test_every_table_is_there_and_the_words_follow_from_them(small: Study) -> None:
    titles = [table.title for table in small.tables]
    assert titles[:3] == [
        "Filters against the evidence's metadata",
        "Results that the filter empties",
        "Filters invented for questions that name no source",
    ]
    assert "Retrieval by wordllama" in titles
    ours, published, _ = small.table("Filters against").rows
    assert isinstance(ours[1], Interval)
    assert isinstance(published[1], Interval)
    assert (ours[1].value, published[1].value) == (1.0, 0.0)
    assert (
        "would empty 0." in small.table("Results that the filter empties").note
    )  # one of its two outlets is here
    assert small.summary[0].startswith("Holds: our filters name exactly")


def test_the_same_seed_gives_the_same_study_and_it_comes_back_from_its_file(
    small: Study, newsroom: Path, tmp_path: Path
) -> None:
    again = study(data=newsroom, encoders=("wordllama",))
    assert again.to_json(timings=False) == small.to_json(timings=False)
    assert Study.load(small.save(tmp_path / "study.json")).to_json() == small.to_json()


def test_the_cross_encoder_reads_each_pair_once_and_its_scores_can_come_from_another_machine(
    newsroom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, str]] = []

    class Length:
        name = DEFAULT_RERANKER

        def __init__(self, threads: int = 0) -> None:
            assert threads == 1  # two questions at a time

        def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
            read.extend((question, text) for text in texts)
            return np.array([len(text) for text in texts], dtype=np.float32)

    monkeypatch.setitem(RERANKERS._factories, DEFAULT_RERANKER, Length)
    here = tmp_path / "here"
    options: Any = {"data": newsroom, "encoders": ("wordllama",), "quality": True}
    options |= {"limit": 3, "workers": 2}
    slow = study(**options, cache=here)
    assert len(slow.table("With the cross-encoder, wordllama").rows) == 7
    assert len(read) == len(set(read)) > 0
    kinds = [
        next(kind for kind in ("comparison", "temporal", "inference") if kind in one)
        for one in {one for one, _ in read}
    ]
    assert sorted(kinds) == ["comparison", "inference", "temporal"]
    stored, there = tmp_path / "scores.npz", tmp_path / "there"
    assert list(store_scores(newsroom, here, take=None, keep=stored)) == [
        f"wrote {len(read)} scores to {stored}"
    ]
    (said,) = store_scores(newsroom, there, take=stored, keep=None)
    assert said.startswith(f"stored {len(read)} scores, made on ")
    read.clear()
    again = study(**options, cache=there)
    assert not read  # as after a run that was stopped at its end
    assert again.to_json(timings=False) == slow.to_json(timings=False)


class Editor:
    """A model that names one outlet in every filter, and answers yes."""

    name = "editor"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def complete(self, prompts: Sequence[str], *, schema: object = None) -> list[str]:
        self.asked += prompts
        said = '{"source": {"$in": ["Fortune", "The Daily Prophet"]}}' if schema else "Yes."
        return [said] * len(prompts)


def test_a_model_extracts_and_answers_each_prompt_once_and_a_cache_is_asked_instead(
    newsroom: Path, tmp_path: Path
) -> None:
    editor = Editor()
    model = CachedModel(editor, tmp_path / "answers.db")
    by_model = study(data=newsroom, encoders=("wordllama",), model=model, limit=6)
    rows = {row[0]: row for row in by_model.table("A model's filters against").rows}
    recall = rows["model's filter (editor)"][3]
    assert recall == pytest.approx(0.5)  # Fortune of both; the Prophet is not in the corpus
    assert rows["our filter"][3] == 1.0
    exact = {row[1]: row[3] for row in by_model.table("Accuracy of answers, exact").rows}
    assert set(exact) == {"baseline", "published filter (GPT-3.5)", "our filter", "nothing read"}
    assert all(isinstance(one, Interval) and one.value == 1.0 for one in exact.values())
    paper = [row for row in by_model.table("Accuracy of answers, a word").rows if row[2] is None]
    assert len(paper) == 4
    assert len(editor.asked) == len(set(editor.asked)) > 6
    editor.asked.clear()
    again = study(data=newsroom, encoders=("wordllama",), model=model, limit=6)
    assert not editor.asked
    assert again.to_json(timings=False) == by_model.to_json(timings=False)


def test_answers_from_another_machine_take_the_models_place(newsroom: Path, tmp_path: Path) -> None:
    requests = [one for some in all_requests(newsroom).values() for one in some]
    lines = [json.loads(one.line()) for one in requests]
    assert set(lines[0]) == {"key", "messages", "max_tokens"}
    assert len({one["key"] for one in lines}) == len(lines)
    answers = tmp_path / "answers.jsonl"
    texts = ["{}" if one["key"].startswith("extract") else "no" for one in lines]
    answers.write_text(
        "".join(json.dumps({"key": one["key"], "text": "late"}) + "\n" for one in lines[:1])
        + "".join(
            json.dumps({"key": one["key"], "text": text, "prompt_tokens": 9}) + "\n"
            for one, text in zip(lines, texts, strict=True)
        )
    )
    said = read_answers(requests, [answers])
    assert len(said) == len(requests)
    store_answers(requests, said, model="editor", cache=tmp_path)
    editor = Editor()
    model = CachedModel(editor, tmp_path / "answers.db")
    by_model = study(data=newsroom, encoders=("wordllama",), model=model)
    assert not editor.asked
    assert "can be read: 0." in by_model.table("A model's filters against").note
    answers.write_text('{"key": "extract/q0", "text": 3}\n')
    with pytest.raises(InputError, match=r"answers\.jsonl:1: expected a key and a text"):
        read_answers(requests, [answers])
    first = {"key": requests[0].key, "prompt": "of another version", "text": "{}"}
    answers.write_text(json.dumps(first) + '\n{"key": "someone else\'s", "text": ""}\n')
    with pytest.raises(InputError, match="no line has a key"):
        read_answers(requests, [answers])


def test_answers_count_as_the_benchmark_counts_them_and_more_strictly() -> None:
    scores = score_answers(
        ["Yes, they do", "yes", "", "Insufficient information"],
        ["Yes"] * 3 + ["Insufficient information."],
    )
    assert scores.shares_word.tolist() == [1, 1, 0, 1]
    assert scores.exact.tolist() == [0, 1, 0, 1]


def test_missing_data_is_said_with_what_is_missing(tmp_path: Path, newsroom: Path) -> None:
    for data in (None, tmp_path):
        with pytest.raises(InputError) as caught:
            study(data=data)
        assert "query_metadata_filters.json" in caught.value.hint
    for name in ("corpus", "MultiHopRAG"):
        (tmp_path / f"{name}.json").write_text((newsroom / f"{name}.json").read_text())
    (tmp_path / "query_metadata_filters.json").write_text("[]")
    with pytest.raises(InputError, match="no filter for question q0"):
        study(data=tmp_path, encoders=())
