"""Data sets as a whole: names and places, bad files of every format, summaries, and splits that do
not leak.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from itertools import chain, combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import datasets
from suffice.datasets import Dataset, Gold, GoldQuestion
from suffice.errors import InputError, NotReadyError
from suffice.registry import Registry
from suffice.types import Document, Question

JSON_QUESTIONS = ("multihop_rag", "hotpotqa", "2wikimultihopqa", "musique", "ragas", "jsonl")


def gold_question(
    question_id: str, text: str = "", kind: str | None = None, gold: tuple[str, ...] = ("a",)
) -> GoldQuestion:
    return GoldQuestion(
        Question(question_id, text or question_id),
        Gold(question_id, frozenset(gold), kind=kind, hops=len(gold)),
    )


# -------------------------------------------------------------------------------------------- names


def test_an_unknown_name_is_answered_with_the_nearest_one():
    with pytest.raises(InputError, match="no format is named 'hotpot'") as caught:
        datasets.load("hotpot", "x.json")
    assert "'hotpotqa'" in caught.value.hint


@pytest.mark.parametrize("name", ["MultiHop-RAG", "multihop_rag", "multihoprag"])
def test_case_and_hyphens_in_a_name_do_not_matter(tmp_path, name):
    (tmp_path / "corpus.json").write_text('[{"title": "A", "body": "b"}]')
    dataset = datasets.load(name, tmp_path)
    assert dataset.name == "multihop_rag"
    assert [document.doc_id for document in dataset.documents()] == ["A"]


def test_a_part_that_was_not_given_is_asked_for(tmp_path):
    (tmp_path / "corpus.json").write_text('[{"title": "A", "body": "b"}]')
    dataset = datasets.load("multihop_rag", corpus=tmp_path / "corpus.json")
    assert dataset.has_documents
    assert not dataset.has_questions
    with pytest.raises(InputError, match="has no questions") as caught:
        list(dataset.questions())
    assert "--questions" in caught.value.hint


class EntryPoint:
    """An entry point of an installed package."""

    dist = None

    def __init__(self, name: str, load: Callable[[], object]) -> None:
        self.name, self.load = name, load


def test_an_installed_package_adds_a_collection(monkeypatch):
    made = EntryPoint("dataset.village", lambda: lambda seed: Dataset(f"village {seed}"))
    registry: Registry[object] = Registry("dataset")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [made])
    monkeypatch.setattr(datasets, "COLLECTIONS", registry)
    assert datasets.make_collection("village", seed=7).name == "village 7"
    with pytest.raises(InputError, match="no dataset is named 'vilage'") as caught:
        datasets.make_collection("vilage")
    assert "'village'" in caught.value.hint


def test_without_the_research_package_the_controlled_collection_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(metadata, "entry_points", lambda group: [])
    monkeypatch.setattr(datasets, "COLLECTIONS", Registry("dataset"))
    with pytest.raises(NotReadyError, match="part of suffice-research") as caught:
        datasets.make_collection("controlled")
    assert "pip install ./research" in caught.value.hint


# ---------------------------------------------------------------------------------------- bad files


def broken(folder: Path, content: bytes, *, suffix: str = ".json") -> Path:
    path = folder / f"broken{suffix}"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", [*JSON_QUESTIONS, "frames"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"\x7fELF\xff\xfe\x00\x01" * 50, "not UTF-8 text", id="binary"),
        pytest.param(
            '[{"question": "caf\u00e9"}]'.encode("latin-1"), "not UTF-8 text", id="not UTF-8"
        ),
    ],
)
def test_a_file_that_is_no_text_gives_one_clear_error(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        list(datasets.load(name, questions=broken(tmp_path, content)).questions())


@pytest.mark.parametrize("name", JSON_QUESTIONS)
@pytest.mark.parametrize(
    "content",
    [
        b'[{"question": "Who?", "gold": [',
        b'[{"a": 1}',
        b'{"question": "Who?"',
        b"[1, 2]",
        b'"text"',
    ],
)
def test_truncated_or_wrong_json_gives_one_clear_error_with_its_line(tmp_path, name, content):
    with pytest.raises(InputError, match=r"broken\.json:1: "):
        list(datasets.load(name, questions=broken(tmp_path, content)).questions())


@pytest.mark.parametrize("name", JSON_QUESTIONS)
def test_records_with_other_fields_say_which_field_was_expected(tmp_path, name):
    path = broken(tmp_path, b'[\n{"prompt": "Who?", "label": 1}\n]')
    with pytest.raises(
        InputError,
        match=r"broken\.json:2: field '\w+' is missing, expected .*it has: prompt, label",
    ):
        list(datasets.load(name, questions=path).questions())
    dataset = datasets.load(name, questions=path, skip_bad=True)
    assert list(dataset.questions()) == []
    assert dataset.bad.count == 1


@pytest.mark.parametrize("name", [*JSON_QUESTIONS, "frames"])
def test_a_folder_where_a_file_belongs_is_an_error(tmp_path, name):
    with pytest.raises(InputError, match="is a folder, expected a file"):
        datasets.load(name, questions=tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "multihop_rag",
        "hotpotqa",
        "2wikimultihopqa",
        "musique",
        "ragas",
        "jsonl",
        "frames",
        "beir",
        "trec",
    ],
)
def test_a_folder_without_the_files_and_a_missing_path_are_errors(tmp_path, name):
    (tmp_path / "notes.md").write_text("nothing here")
    with pytest.raises(InputError):
        datasets.load(name, tmp_path)
    with pytest.raises(InputError):
        datasets.load(name, tmp_path / "absent")


def line_of_a_gigabyte(folder: Path, start: bytes) -> Path:
    path = broken(folder, start + b'{"question": "')
    with path.open("r+b") as stream:
        stream.truncate(2**30)  # a sparse file: a gigabyte of zeros that costs no disk
    return path


# An array, lines of JSON and lines of a table: the three ways in which records are read.
@pytest.mark.parametrize(("name", "start"), [("jsonl", b"["), ("jsonl", b""), ("frames", b"")])
def test_a_line_of_a_gigabyte_is_refused_without_being_read(tmp_path, name, start):
    path = line_of_a_gigabyte(tmp_path, start)
    with pytest.raises(InputError, match="longer than 67,108,864 bytes"):
        list(datasets.load(name, questions=path).questions())


def test_a_question_with_half_a_surrogate_pair_is_a_bad_record(tmp_path):
    path = tmp_path / "examples.jsonl"
    path.write_text('{"question": "Who \\ud800?", "gold": []}\n')
    with pytest.raises(InputError, match="field 'question'"):
        list(datasets.load("jsonl", questions=path).questions())


# ---------------------------------------------------------------------------------------- summaries


def small(
    *, documents: tuple[str, ...], questions: tuple[GoldQuestion, ...], **options: bool
) -> Dataset:
    return Dataset(
        "small",
        documents=lambda bad: (Document(doc_id, "text") for doc_id in documents),
        questions=lambda bad: iter(questions),
        **options,
    )


def test_a_summary_counts_what_is_there():
    found = datasets.describe(
        small(
            documents=("a", "b", "c"),
            questions=(
                gold_question("1", "Who?", "bridge", ("a", "b")),
                gold_question("2", "Who?", "bridge", ("a", "b", "c")),
                gold_question("3", "Nobody?", "null", ()),
            ),
        )
    )
    assert (found.documents, found.questions, found.mentions, found.titles) == (3, 3, 5, 3)
    assert (found.null_questions, found.repeated_questions) == (1, 1)
    assert (found.hops_min, found.hops_mean, found.hops_max) == (2, 2.5, 3)
    assert found.by_hops == {2: 1, 3: 1}
    assert found.by_kind == {"bridge": 2, "null": 1}
    datasets.check_gold(found)


def test_gold_that_is_in_no_corpus_is_named():
    found = datasets.describe(
        small(
            documents=("a",),
            questions=(gold_question("q1", gold=("a", "x")), gold_question("q2", gold=("x",))),
        )
    )
    assert found.unresolved_count == 2
    with pytest.raises(
        InputError,
        match=r"question 'q1' needs document 'x', which is not in the corpus \(and 1 more",
    ):
        datasets.check_gold(found)


def test_skipped_records_are_counted_once_however_often_the_data_is_read(tmp_path):
    path = tmp_path / "examples.jsonl"
    path.write_text('{"question": "Who?", "gold": ["a"]}\n{"question": ""}\n')
    (tmp_path / "documents.jsonl").write_text(
        '{"doc_id": "a", "text": "Ada"}\n{"doc_id": "a", "text": "again"}\n'
    )
    dataset = datasets.load("jsonl", tmp_path, skip_bad=True)
    for _ in range(3):
        assert len(list(dataset.questions())) == len(list(dataset.documents())) == 1
    assert dataset.bad.count == 2
    assert datasets.describe(dataset).skipped == 2


# ------------------------------------------------------------------------------------------- splits


def questions_of(part: tuple[GoldQuestion, ...]) -> list[str]:
    return [one.question.question_id for one in part]


def test_each_part_has_the_same_mix_of_kinds():
    questions = [
        gold_question(f"{kind}-{at}", kind=kind)
        for kind, many in (("bridge", 600), ("null", 200))
        for at in range(many)
    ]
    parts = datasets.split(questions)
    for part, bridges, nulls in (
        (parts.fit, 420, 140),
        (parts.calibrate, 90, 30),
        (parts.test, 90, 30),
    ):
        kinds = [one.gold.kind for one in part]
        assert (kinds.count("bridge"), kinds.count("null")) == (bridges, nulls)


@given(
    st.lists(st.tuples(st.text(max_size=3), st.sampled_from(["x", "y", None])), max_size=60),
    st.integers(0, 5),
)
def test_a_split_loses_nothing_repeats_nothing_and_ignores_the_order(drawn, seed):
    questions = [gold_question(str(at), text, kind) for at, (text, kind) in enumerate(drawn)]
    parts = datasets.split(questions, seed=seed)
    ids = [questions_of(part) for part in (parts.fit, parts.calibrate, parts.test)]
    assert sorted(chain.from_iterable(ids)) == sorted(questions_of(tuple(questions)))
    assert parts == datasets.split(questions, seed=seed)


def test_a_repeated_question_stays_in_one_part():
    examples = [
        gold_question(f"{at}#{time}", f"question {at}") for at in range(40) for time in (1, 2)
    ]
    parts = datasets.split(examples)
    texts = [
        {one.question.text for one in part} for part in (parts.fit, parts.calibrate, parts.test)
    ]
    assert all(texts)
    assert all(one.isdisjoint(other) for one, other in combinations(texts, 2))


def test_the_parts_of_a_seed_never_change():
    parts = datasets.split([gold_question(str(at)) for at in range(20)])
    assert questions_of(parts.test) == ["14", "17", "18"]


@pytest.mark.parametrize(
    "shares", [(0.5, 0.5), (0.5, 0.5, 0.5), (1.2, -0.1, -0.1), (float("nan"), 0.5, 0.5)]
)
def test_shares_that_do_not_add_up_are_refused(shares):
    with pytest.raises(InputError, match="add up to 1"):
        datasets.split([], shares=shares)


# ----------------------------------------------------------------------------------------- fetching


def test_without_a_file_the_error_says_how_to_give_one():
    with pytest.raises(InputError, match="no file of 'jsonl'") as caught:
        datasets.load("jsonl")
    assert "--path" in caught.value.hint


def test_without_research_a_papers_data_set_says_how_to_get_its_loader(monkeypatch):
    monkeypatch.setattr(datasets.FORMATS, "names", lambda: ["jsonl"])
    with pytest.raises(NotReadyError, match="'frames' is part of suffice-research"):
        datasets.load("Frames", "test.tsv")


# --------------------------------------------------------------------------------------- real files


@pytest.mark.parametrize(
    ("name", "questions", "documents", "kinds"),
    [
        (
            "multihop_rag",
            2556,
            609,
            {"comparison": 856, "inference": 816, "null": 301, "temporal": 583},
        ),
        ("hotpotqa", 684, 9221, {"bridge": 550, "comparison": 134}),
        (
            "2wikimultihopqa",
            716,
            6119,
            {"bridge_comparison": 169, "comparison": 175, "compositional": 298, "inference": 74},
        ),
        (
            "musique",
            706,
            11656,
            {"2hop": 366, "3hop1": 168, "3hop2": 50, "4hop1": 77, "4hop2": 26, "4hop3": 19},
        ),
    ],
)
def test_the_real_files_have_the_counts_of_their_readme_and_all_gold_resolves(
    data_folder, name, questions, documents, kinds
):
    dataset = datasets.load(name, data_folder / name)
    found = datasets.describe(dataset)
    assert (found.questions, found.documents, found.by_kind) == (questions, documents, kinds)
    assert found.unresolved == ()
    assert found.skipped == 0
    ids = [one.question.question_id for one in dataset.questions()]
    assert len(set(ids)) == len(ids)
