"""Training and evaluation data for the ranker of `bridge`, with titles and without.

A data set without titles has the same questions over the same texts. Questions with the same text
are in the same fold, so neither form trains on what the other is evaluated on. Our everyday texts
are pooled into one corpus without titles. The ranker is trained on questions in the parts `learn`
and `stack` over the texts of those parts, and evaluated on `test` and `unseen` over all texts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from suffice.datasets.dataset import Dataset
from suffice.datasets.gold import Gold, GoldQuestion
from suffice.storage import BadRecords
from suffice.types import DocId, Document, Question
from suffice_research.training.cases import (
    LEARN,
    PARTS,
    STACK,
    TEST,
    UNSEEN,
    Case,
    everyday_cases,
)

__all__ = ["EVERYDAY", "UNTITLED", "everyday_judged", "everyday_learned", "family", "untitled"]

EVERYDAY, UNTITLED = "everyday", ", no titles"


def family(name: str) -> str:
    """The data set that both forms come from."""
    return name.removesuffix(UNTITLED)


def untitled(dataset: Dataset) -> Dataset:
    """The data set with all titles removed."""

    def documents(bad: BadRecords) -> Iterator[Document]:
        return (replace(one, title="") for one in dataset.documents())

    return Dataset(
        dataset.name + UNTITLED, documents=documents, questions=lambda bad: dataset.questions()
    )


def everyday_learned(folder: Path) -> Dataset:
    """Everyday questions to train the ranker on, over texts that no evaluated case adds."""
    return _pooled(list(everyday_cases(folder)), shown=(LEARN, STACK), asked=(LEARN, STACK))


def everyday_judged(folder: Path) -> Dataset:
    """Everyday questions that nothing was trained on, over all everyday texts."""
    return _pooled(list(everyday_cases(folder)), shown=PARTS, asked=(TEST, UNSEEN))


def _pooled(cases: Collection[Case], *, shown: Collection[str], asked: Collection[str]) -> Dataset:
    """One corpus of the texts in some parts, without duplicates and titles."""
    ids: dict[str, DocId] = {}
    questions: dict[str, GoldQuestion] = {}  # some occur twice
    for case in cases:
        if case.part in shown:
            for passage in (*case.needed, *case.distractors):
                ids.setdefault(passage.text, f"{EVERYDAY}-{len(ids)}")
    for case in cases:
        if case.part in asked and case.needed:
            name = f"{EVERYDAY}-question-{len(questions)}"
            needed = frozenset(ids[one.text] for one in case.needed)
            gold = Gold(name, doc_ids=needed, kind=case.source.partition("/")[2])
            questions.setdefault(case.group, GoldQuestion(Question(name, case.question), gold))
    texts: Mapping[str, DocId] = ids
    return Dataset(
        EVERYDAY,
        documents=lambda bad: (Document(doc_id, text) for text, doc_id in texts.items()),
        questions=lambda bad: iter(questions.values()),
    )
