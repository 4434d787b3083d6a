"""The set scorer's training data: questions, held documents, and candidates that are needed next or
not.

A state is a question, some held documents (gold ones, and sometimes wrong ones, as in real use),
the gold documents that are still missing, and unneeded candidates from the question's pool, the
likeliest first. If a data set gives the order of its hops, the document of the next hop has full
weight and later ones half.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from suffice.datasets import load
from suffice.retrieval.corpus import searchable_text

__all__ = ["ScorerQuestion", "ScorerState", "load_questions", "training_states"]

WRONG = 12  # unneeded candidates per state
LATER = 0.5  # weight of a document of a later hop


@dataclass(frozen=True)
class ScorerQuestion:
    """One question: its gold in the order of the hops, if known, and its pool, best first. Texts
    include their titles.
    """

    set: str
    text: str
    gold: tuple[str, ...]
    ordered: bool
    pool: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScorerState:
    question: int
    held: tuple[str, ...]
    candidates: tuple[str, ...]
    needed: tuple[float, ...]  # 1 for the next hop, LATER for later ones, 0 if not needed


def load_questions(data: Path, name: str) -> list[ScorerQuestion]:
    """The questions of a data set, without pools."""
    found = load(name, data / name)
    texts = {document.doc_id: searchable_text(document) for document in found.documents()}
    order = musique_order(data / name) if name == "musique" else {}
    rows = []
    for example in found.questions():
        gold = [texts[doc_id] for doc_id in sorted(example.gold.doc_ids)]
        hops = order.get(example.question.question_id, [])
        known = len(hops) == len(gold) and set(hops) == set(gold)
        rows.append(
            ScorerQuestion(name, example.question.text, tuple(hops if known else gold), known)
        )
    return rows


def musique_order(folder: Path) -> dict[str, list[str]]:
    """The supporting paragraphs of each question in the order of its decomposition."""
    order = {}
    for path in sorted(folder.glob("*.json*")):
        rows = json.loads(path.read_text(encoding="utf-8"))
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and "question_decomposition" in row:
                paragraphs = {
                    one["idx"]: f"{one['title']}\n{one['paragraph_text']}"
                    for one in row["paragraphs"]
                }
                steps = [
                    paragraphs[one["paragraph_support_idx"]]
                    for one in row["question_decomposition"]
                ]
                order[row["id"]] = list(dict.fromkeys(steps))
    return order


def training_states(
    questions: Sequence[ScorerQuestion], *, rounds: int, seed: int
) -> list[ScorerState]:
    """Two states of each question per round: one with nothing held, one with some of its gold or
    with wrong documents.
    """
    draw = np.random.default_rng(seed)
    return [
        _lesson(at, one, held, draw)
        for _ in range(rounds)
        for at, one in enumerate(questions)
        for held in _states(one, draw)
    ]


def _states(one: ScorerQuestion, draw: np.random.Generator) -> list[list[str]]:
    wrong = [text for text in one.pool[:12] if text not in one.gold]
    count = int(draw.integers(0, len(one.gold)))
    gold = (
        list(one.gold[:count])
        if one.ordered and draw.random() < 0.7
        else _some(one.gold, count, draw)
    )
    others = (
        _some(wrong, int(draw.integers(1, 3)), draw) if draw.random() < 0.35 or not gold else []
    )
    held = [*gold, *others]
    draw.shuffle(held)
    return [[], held]


def _lesson(
    at: int, one: ScorerQuestion, held: Sequence[str], draw: np.random.Generator
) -> ScorerState:
    missing = [text for text in one.gold if text not in held]
    needed = [1.0 if place == 0 or not one.ordered else LATER for place in range(len(missing))]
    rest = [text for text in one.pool if text not in one.gold and text not in held]
    wrong = _some(rest[:16], WRONG * 2 // 3, draw)
    wrong += _some(rest[16:80], WRONG - len(wrong), draw)
    return ScorerState(at, tuple(held), (*missing, *wrong), (*needed, *([0.0] * len(wrong))))


def _some(texts: Sequence[str], count: int, draw: np.random.Generator) -> list[str]:
    return [texts[at] for at in draw.permutation(len(texts))[:count].tolist()]
