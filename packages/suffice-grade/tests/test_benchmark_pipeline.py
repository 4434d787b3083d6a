"""The pipeline: it goes on where it was, does again only what it must, and says why it cannot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from suffice.datasets import load
from suffice.errors import InputError
from suffice.types import Document
from suffice_grade.claims import RuleClaims
from suffice_grade.pipeline import BenchmarkSettings, Stages, build_benchmark
from suffice_grade.stage_protocols import Claim, Triple
from tests.benchmark_village import village

ALL = (
    "corpus",
    "claims",
    "triples",
    "clusters",
    "knowledge",
    "paths",
    "questions",
    "valid",
    "benchmark",
)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in sorted(folder.rglob("*"))
        if one.is_file()
    }


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_village_becomes_a_benchmark_that_data_sets_read(tmp_path: Path) -> None:
    told: dict[str, tuple[int, int | None]] = {}
    made = build_benchmark(
        village(),
        tmp_path / "b",
        progress=lambda what, done, total: told.update({what: (done, total)}),
    )
    assert made.done == ALL
    assert told["making claims"] == (11, 11)
    assert told["checking questions"][0] == told["checking questions"][1]
    assert set(made.by_hops) >= {2, 3, 4, 5}
    dataset = load("jsonl", tmp_path / "b")
    examples = list(dataset.questions())
    doc_ids = {document.doc_id for document in dataset.documents()}
    assert len(examples) == made.counts["valid"]
    assert all(example.gold.doc_ids <= doc_ids and example.gold.answer for example in examples)
    first = records(tmp_path / "b" / "questions.jsonl")[0]
    assert set(first["difficulty"]) == {"d_r", "quartile"}


def test_twins_ask_the_same_and_lack_a_needed_document(tmp_path: Path) -> None:
    build_benchmark(village(), tmp_path / "b", settings=BenchmarkSettings(twins=1.0, lookalikes=0))
    questions = {one["question_id"]: one for one in records(tmp_path / "b" / "questions.jsonl")}
    twins = records(tmp_path / "b" / "twins.jsonl")
    assert len(twins) == len(questions)
    for twin in twins:
        assert twin["question"] == questions[twin["twin_of"]]["question"]
        assert twin["without"] in twin["gold"]


def test_the_same_seed_gives_the_same_bytes_and_a_second_run_only_what_a_setting_changes(
    tmp_path: Path,
) -> None:
    build_benchmark(village(), tmp_path / "one")
    build_benchmark(village(), tmp_path / "b")
    assert content(tmp_path / "one") == content(tmp_path / "b")
    assert build_benchmark(village(), tmp_path / "b").done == ()
    assert build_benchmark(
        village(), tmp_path / "b", settings=BenchmarkSettings(twins=0.5)
    ).done == ("benchmark",)
    assert build_benchmark(
        village(), tmp_path / "b", settings=BenchmarkSettings(twins=0.5, per_hop=7)
    ).done == ("questions", "valid", "benchmark")
    assert (
        build_benchmark(
            village()[:-1], tmp_path / "b", settings=BenchmarkSettings(twins=0.5, per_hop=7)
        ).done
        == ALL
    )


class Dying(RuleClaims):
    """Reads the first documents and dies."""

    def claims(self, documents: Sequence[Document]) -> list[tuple[Claim, ...]]:
        raise KeyboardInterrupt


def test_killed_in_a_stage_it_goes_on_with_that_stage(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_benchmark(village(), tmp_path / "b", stages=Stages(claims=lambda pages: Dying()))
    assert [one.name for one in (tmp_path / "b" / "stages").iterdir()] == ["corpus"]
    assert build_benchmark(village(), tmp_path / "b").done == ALL[1:]
    build_benchmark(village(), tmp_path / "whole")
    assert content(tmp_path / "b") == content(tmp_path / "whole")


def test_a_damaged_stage_or_a_lost_file_is_made_anew(tmp_path: Path) -> None:
    build_benchmark(village(), tmp_path / "b")
    whole = content(tmp_path / "b")
    (tmp_path / "b" / "stages" / "paths" / "records.jsonl").write_text("{", encoding="utf-8")
    (tmp_path / "b" / "questions.jsonl").unlink()
    assert build_benchmark(village(), tmp_path / "b").done == ("paths", "benchmark")
    assert content(tmp_path / "b") == whole


def test_files_that_another_run_left_before_it_died_are_not_taken_for_this_ones(
    tmp_path: Path,
) -> None:
    build_benchmark(village(), tmp_path / "b")
    whole = content(tmp_path / "b")
    build_benchmark(village(), tmp_path / "other", settings=BenchmarkSettings(seed=7, per_hop=2))
    shutil.copy(
        tmp_path / "other" / "questions.jsonl", tmp_path / "b" / "questions.jsonl"
    )  # and then it died
    assert build_benchmark(village(), tmp_path / "b").done == ("benchmark",)
    assert content(tmp_path / "b") == whole


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ([], "the corpus is empty"),
        (village()[:1], "the corpus has one document"),
        (
            [Document(str(at), "beta " * 3, title=f"T{at}") for at in range(9)],
            "no sentence of these 9 documents",
        ),
        (
            [
                Document(
                    str(at), "Der Fluss fließt durch das weite grüne Tal.", title=f"Fluss {at}"
                )
                for at in range(9)
            ],
            "no relation",
        ),
        (
            [
                Document(
                    str(at), f"Rock {at} is a large grey stone in the garden.", title=f"Rock {at}"
                )
                for at in range(9)
            ],
            "no ",
        ),
    ],
)
def test_a_corpus_that_gives_nothing_is_told_so(
    documents: list[Document], says: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=says) as error:
        build_benchmark(documents, tmp_path / "b")
    assert error.value.hint


def test_who_let_a_model_read_in_vain_is_not_told_to_let_a_model_read(tmp_path: Path) -> None:
    class Blind:
        signature = "a small model"

        def triples(self, claims: Sequence[Claim]) -> list[tuple[Triple, ...]]:
            return [()] * len(claims)

    with pytest.raises(InputError, match="no relation") as error:
        build_benchmark(village(), tmp_path / "b", stages=Stages(triples=lambda pages: Blind()))
    assert "a larger model" in error.value.hint


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="no form is named 'riddle'"):
        BenchmarkSettings(forms=("riddle",))
    with pytest.raises(InputError, match="out of range"):
        BenchmarkSettings(longest=9)
