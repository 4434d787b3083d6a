"""An own ranker: `suffice fit-ranker` learns it from labelled questions, `suffice search
--ranker` uses it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import suffice

from suffice.library import Library
from suffice.types import Document
from suffice_research.training import bridge_training

FILMS = 24
SMALL = {
    "max_iter": 8,
    "max_bins": 16,
    "max_leaf_nodes": 4,
    "min_samples_leaf": 5,
    "learning_rate": 0.3,
}


def films() -> list[Document]:
    """Films whose directors have pages: a question names the film, and only the film leads to the
    director.
    """
    pairs = [(f"Tide of Harbour{at}", f"Jon Vale{at}") for at in range(FILMS)]
    rows = [
        Document(f"film{at}", f"{film} is a film directed by {person}.", film)
        for at, (film, person) in enumerate(pairs)
    ]
    return rows + [
        Document(f"person{at}", f"{person} was born in 19{at:02}.", person)
        for at, (_, person) in enumerate(pairs)
    ]


def write(folder: Path, questions: int) -> Path:
    documents = [{"doc_id": one.doc_id, "title": one.title, "text": one.text} for one in films()]
    examples = [
        {
            "question": f"When was the director of Tide of Harbour{at} born?",
            "gold": [f"film{at}", f"person{at}"],
        }
        for at in range(questions)
    ]
    folder.mkdir()
    for name, records in (("documents", documents), ("examples", examples)):
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(one) + "\n" for one in records), encoding="utf-8"
        )
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bridge_training, "TREES", SMALL)
        data = ("--dataset", "jsonl", "--path", write(folder / "data", FILMS))
        result = suffice("fit-ranker", *data, "--k", 2, "--out", folder / "ranker", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["questions"] == FILMS
    assert printed["complete@2"]["own"] > 0.8
    assert 0 <= printed["complete@2"]["shipped"] <= 1
    Library.build(folder / "library", films()).close()
    return folder


def test_a_search_with_the_own_ranker_is_a_bridge(own: Path) -> None:
    question = "When was the director of Tide of Harbour3 born?"
    result = suffice(
        "search", own / "library", question, "--ranker", own / "ranker", "--k", 2, "--json"
    )
    assert result.exit_code == 0, result.output
    assert {hit["doc_id"] for hit in json.loads(result.stdout)["hits"]} == {"film3", "person3"}


def test_only_the_bridge_takes_a_ranker(own: Path) -> None:
    result = suffice(
        "search", own / "library", "film", "--ranker", own / "ranker", "--retriever", "hybrid"
    )
    assert result.exit_code == 2
    assert "ranker" in result.output


def test_a_folder_without_a_ranker_is_told(own: Path) -> None:
    assert suffice("search", own / "library", "film", "--ranker", own / "library").exit_code == 2


def test_few_questions_are_refused(tmp_path: Path) -> None:
    few = write(tmp_path / "few", 5)
    result = suffice(
        "fit-ranker", "--dataset", "jsonl", "--path", few, "--out", tmp_path / "ranker"
    )
    assert result.exit_code == 2
    assert "a ranker needs 20" in result.output
    assert not (tmp_path / "ranker").exists()
