"""A small gate that several tests share: fitted once per process on some questions of the
controlled collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch

import numpy as np

from suffice.datasets.gold import GoldQuestion
from suffice.gate import model
from suffice.gate.gate import Gate
from suffice.gate.training import LabelledQuestion
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.memory import Bm25
from suffice.retrieval.ranking import make_hits, top_k
from suffice.types import Document, Hit
from suffice_research.controlled import controlled_collection

FITTED, K = 400, 6


@contextmanager
def few_trees() -> Iterator[None]:
    """Fit small models: most tests ask what a gate does with its models, not how good they are, and
    a fit grows six of each.
    """
    with (
        patch.multiple(model, HIT_TREES=40, ABSENT_TREES=15),
        patch.multiple(model, BOOSTED_TREES=30, EXTRA_TREES=25),
    ):
        yield


@cache
def collection() -> tuple[dict[str, Document], list[GoldQuestion]]:
    """Documents by id, and the questions that have an answer, mixed."""
    village = controlled_collection(documents=200)
    examples = sorted(
        (one for one in village.questions() if one.gold.doc_ids),
        key=lambda one: hash_of(one.question.text),
    )
    return {one.doc_id: one for one in village.documents()}, examples


def hash_of(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()


@cache
def labelled(k: int = K) -> list[LabelledQuestion]:
    """Every question with what BM25 finds for it; one more round is a list twice as long."""
    documents, examples = collection()
    corpus = Corpus(documents.values())
    scores = Bm25(corpus).scores([one.question.text for one in examples])
    found = make_hits(top_k(scores, 2 * k), [one.doc_id for one in corpus.documents], {})
    titles = {name: one.title for name, one in documents.items()}
    return [
        LabelledQuestion(
            one.question.text,
            hits[:k],
            one.gold.doc_ids,
            hits_after=hits,
            titles={name: titles[name] for name in one.gold.doc_ids},
            kind=one.gold.kind,
            documents=documents,
        )
        for one, hits in zip(examples, found, strict=True)
    ]


@cache
def small_gate() -> Gate:
    with few_trees():
        return Gate.fit(labelled()[:FITTED], seed=7, preset="fast")


def fresh() -> list[LabelledQuestion]:
    """Questions that the small gate has not seen."""
    return labelled()[FITTED:]


def shown(example: LabelledQuestion) -> list[dict[str, object]]:
    """The hits of an example as dicts with their texts."""
    found = [(example.documents[hit.doc_id], hit.score) for hit in example.hits]
    return [
        {"id": one.doc_id, "title": one.title, "text": one.text, "score": score}
        for one, score in found
    ]


def complete(example: LabelledQuestion) -> bool:
    return {hit.doc_id for hit in example.hits} >= set(example.needed or ())


def pairs(examples: list[LabelledQuestion]) -> list[tuple[str, Sequence[Hit]]]:
    return [(one.question, one.hits) for one in examples]


def p_of(gate: Gate, examples: list[LabelledQuestion]) -> np.ndarray:
    return gate.probabilities(pairs(examples), documents=collection()[0])


def auroc(p: np.ndarray, truth: np.ndarray) -> float:
    return float(
        (p[truth][:, None] > p[~truth]).mean() + (p[truth][:, None] == p[~truth]).mean() / 2
    )


def log_loss(p: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.log(np.where(truth, p, 1 - p)).mean())
