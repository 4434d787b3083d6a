"""The curve of expanding: what a fixed k would need, what a gate is taught, and a small study end
to end.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.small_gate import collection
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import InputError
from suffice.evaluation.gate_evaluation import with_seen_questions
from suffice.gate.gate import Gate
from suffice.types import Hit
from suffice_research.answer_systems import PREFIXES, SETS, THINNED, partial_sets
from suffice_research.controlled import controlled_collection
from suffice_research.expansion import ExpansionSettings, Point, documents_saved
from suffice_research.study import Study


def point(name: str, k: int, counts: list[int], complete: list[int]) -> Point:
    return Point(name, k, np.array(counts, float), np.array(complete, float))


def curve(*shares: list[int]) -> list[Point]:
    return [point("list", k, [k] * len(one), one) for k, one in enumerate(shares, start=1)]


def test_a_fixed_k_needs_what_its_curve_says() -> None:
    fixed = {"list": curve([0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1])}
    saved, beyond = documents_saved(fixed, point("gate", 3, [2, 1, 1, 1], [1, 1, 0, 0]))
    assert saved.value == pytest.approx(2 - 1.25)
    assert not beyond
    between, _ = documents_saved(fixed, point("gate", 3, [1, 1, 1, 1], [1, 1, 1, 0]))
    assert between.value == pytest.approx(2.5 - 1)  # half way between k = 2 and k = 3


def test_the_best_retriever_is_the_one_to_beat() -> None:
    slow, fast = curve([0, 0], [0, 0], [1, 1]), curve([1, 1], [1, 1], [1, 1])
    saved, _ = documents_saved({"slow": slow, "fast": fast}, point("gate", 2, [2, 2], [1, 1]))
    assert saved.value == pytest.approx(-1)


def test_what_no_fixed_k_reaches_is_said() -> None:
    saved, beyond = documents_saved(
        {"list": curve([0, 0], [1, 0])}, point("gate", 2, [1, 1], [1, 1])
    )
    assert (saved.value, beyond) == (1.0, True)


def test_a_gate_is_taught_on_sets_as_they_are_held_on_the_way() -> None:
    documents, examples = collection()
    lists = [tuple(Hit(doc_id, 1.0) for doc_id in list(documents)[:10])] * 20
    labelled = partial_sets(examples[:20], lists, documents, seed=1)
    assert len(labelled) == 20 * 2 * SETS
    assert {len(one.hits) for one in labelled} <= set(PREFIXES)
    assert all(hit.score is None for one in labelled for hit in one.hits)
    assert all(one.hits[0] == Hit(lists[0][0].doc_id) for one in labelled)
    assert {hit.doc_id for one in labelled for hit in one.hits} <= set(
        list(documents)[: max(THINNED, *PREFIXES)]
    )
    assert labelled == partial_sets(examples[:20], lists, documents, seed=1)


@pytest.mark.parametrize(
    "wrong", [{"most": ()}, {"fixed": (0, 1)}, {"answer_at": (1.5,)}, {"answer_at": ()}]
)
def test_settings_must_make_sense(wrong: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(InputError):
        ExpansionSettings(**wrong)  # type: ignore[arg-type]


def test_the_command_writes_a_study_and_draws_it(tmp_path: Path) -> None:
    words = (
        "evaluate expansion --collection controlled --retriever tfidf --others bm25 "
        "--limit 15 --k 2,4 --answer-at 0.5"
    )
    collected = [one.question.text for one in controlled_collection(seed=42).questions()]
    with_seen_questions(Gate.load(preset="fast"), collected).save(tmp_path / "gate")
    files = [
        "--gate",
        str(tmp_path / "gate"),
        "--out",
        str(tmp_path / "x.json"),
        "--plot",
        str(tmp_path / "x.png"),
    ]
    result = CliRunner().invoke(app, [*words.split(), *files, "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["settings"]["questions"] <= 15
    assert printed["settings"]["seen"] > 0  # the gate learned from this collection, and says so
    study = Study.load(tmp_path / "x.json")
    names = [str(row[0]) for row in study.tables[0].rows]
    assert {"bm25", "tfidf", "expand tfidf, answer at 0.5"} == set(names)
    sizes = [row[2] for row in study.tables[0].rows if str(row[0]).startswith("expand")]
    for documents, most in zip(sizes, (2, 4)):
        assert isinstance(documents, int | float)
        assert documents <= most
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_has_a_format_and_thresholds_are_numbers() -> None:
    words = "evaluate expansion --collection controlled --plot x.gif".split()
    assert CliRunner().invoke(app, words).exit_code == 2
    assert (
        CliRunner()
        .invoke(app, "evaluate expansion --collection controlled --answer-at high".split())
        .exit_code
        == 2
    )
