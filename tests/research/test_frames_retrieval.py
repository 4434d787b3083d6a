"""Tables 4 and 5 of the FRAMES paper, on the real file: coverage and strict correctness of the four
title retrievers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import suffice.retrieval.builtin  # noqa: F401 - registers the retrievers
from suffice.datasets import GoldQuestion, load
from suffice.registry import RETRIEVERS
from suffice.retrieval.memory import MemoryStore
from suffice_research.frames.published import TABLE_4, TABLE_5

TOLERANCE = 0.012
KS = (4, 8, 10, 15, 25)
NAMES = ("bm25-title", "tfidf-word", "tfidf-char", "hybrid-title-paper")


@pytest.fixture(scope="module")
def frames(data_folder: Path) -> tuple[MemoryStore, list[GoldQuestion]]:
    dataset = load("frames", data_folder / "frames" / "test.tsv")
    return MemoryStore(dataset.documents()), list(dataset.questions())


def found_gold(
    name: str, frames: tuple[MemoryStore, list[GoldQuestion]]
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the first 25 hits are gold, (questions, 25), and how many gold titles each question
    has.
    """
    store, examples = frames
    hits = RETRIEVERS.get(name)(store).search([example.question.text for example in examples], k=25)
    gold = np.zeros((len(examples), 25), dtype=bool)
    for row, (example, found) in enumerate(zip(examples, hits)):
        gold[row, : len(found)] = [hit.doc_id in example.gold.doc_ids for hit in found]
    return gold, np.array([len(example.gold.doc_ids) for example in examples])


@pytest.mark.parametrize("name", NAMES)
def test_coverage_and_strict_correctness_are_the_papers(
    name: str, frames: tuple[MemoryStore, list[GoldQuestion]]
) -> None:
    gold, needed = found_gold(name, frames)
    gold_found = {k: gold[:, :k].sum(axis=1) for k in KS}
    measured = {f"coverage@{k}": float((gold_found[k] / needed).mean()) for k in KS}
    measured |= {f"strict@{k}": float((gold_found[k] == needed).mean()) for k in KS}
    published = {**TABLE_4.figures[name], **TABLE_5.figures[name]}
    assert measured.keys() == published.keys()
    apart = {metric: round(measured[metric] - value, 4) for metric, value in published.items()}
    assert max(map(abs, apart.values())) <= TOLERANCE, apart


@pytest.mark.parametrize("name", ["bm25-title", "hybrid-title-paper"])
def test_the_first_relevant_title_stands_near_the_top(
    name: str, frames: tuple[MemoryStore, list[GoldQuestion]]
) -> None:
    gold, _ = found_gold(name, frames)
    first = np.where(gold.any(axis=1), 1 / (gold.argmax(axis=1) + 1), 0)
    assert first.mean() > 0.82
