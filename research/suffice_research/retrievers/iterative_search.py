"""Iterative query expansion: search, read the best hit, and search again with its best sentence.

The simplest way to reach a second document that the question does not name, and the baseline for
all other methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suffice.errors import InputError
from suffice.lexicon import STOP_WORDS
from suffice.protocols import Retriever, Store, documents_by_id
from suffice.retrieval.ranking import Filters, HitLists, check_search
from suffice.text import sentences, tokens
from suffice.types import DocId, Hit

__all__ = ["IterativeSearch", "best_sentence"]

DIGITS = 5
MAX_CHARS = 20_000  # read per hit for its best sentence


class IterativeSearch:
    """The last of several searches, each adding one more sentence: the best of the next hit."""

    def __init__(self, inner: Retriever, store: Store, *, rounds: int = 2) -> None:
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 2:
            raise InputError(f"rounds is {rounds!r}, expected a whole number of at least 2")
        self.inner, self.store, self.rounds = inner, store, rounds

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        texts = list(questions)
        read: list[set[DocId]] = [set() for _ in questions]
        for turn in range(1, self.rounds):
            hits = self.inner.search(texts, k=turn, filters=filters)
            fresh = [
                next((hit.doc_id for hit in row if hit.doc_id not in seen), None)
                for row, seen in zip(hits, read)
            ]
            ids = (doc_id for doc_id in fresh if doc_id is not None)
            documents = documents_by_id(self.store.get, ids)
            for at, doc_id in enumerate(fresh):
                if doc_id is None:
                    continue
                read[at].add(doc_id)
                if doc_id in documents:
                    sentence = best_sentence(questions[at], documents[doc_id].text)
                    texts[at] = f"{texts[at]} {sentence}".rstrip() if sentence else texts[at]
        return [
            tuple(map(_round_score, row)) for row in self.inner.search(texts, k=k, filters=filters)
        ]


def _round_score(hit: Hit) -> Hit:
    """Round off the last digits, which differ between single questions and batches."""
    return hit if hit.score is None else replace(hit, score=round(hit.score, DIGITS))


def best_sentence(question: str, text: str) -> str:
    """The first sentence that shares the most words with the question; "" without a sentence."""
    words = set(tokens(question)) - STOP_WORDS
    found = sentences(text[:MAX_CHARS])
    return max(found, key=lambda one: len(words & set(tokens(one))), default="")
