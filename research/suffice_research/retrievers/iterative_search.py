"""Iterative query expansion: search, read the best hit, and search again with the question and what it says.

The plainest way to reach a second document that the question does not name, and the yardstick for everything cleverer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suffice.errors import InputError
from suffice.lexicon import STOP_WORDS
from suffice.protocols import Retriever, Store, documents_by_id
from suffice.retrieval.ranking import check_search
from suffice.text import sentences, tokens
from suffice.types import DocId, Filter, Hit

__all__ = ["IterativeSearch", "best_sentence"]

DIGITS = 5
READ = 20_000  # characters of a hit that are read for its best sentence


class IterativeSearch:
    """The last of several searches, each with one more sentence: the best one of the best hit that was not read before."""

    def __init__(self, inner: Retriever, store: Store, *, rounds: int = 2) -> None:
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 2:
            raise InputError(f"rounds is {rounds!r}, expected a whole number of at least 2")
        self.inner, self.store, self.rounds = inner, store, rounds

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        texts = list(questions)
        read: list[set[DocId]] = [set() for _ in questions]
        for turn in range(1, self.rounds):
            found = self.inner.search(texts, k=turn, filters=filters)
            fresh = [
                next((hit.doc_id for hit in hits if hit.doc_id not in one), None)
                for hits, one in zip(found, read)
            ]
            known = documents_by_id(
                self.store.get, (doc_id for doc_id in fresh if doc_id is not None)
            )
            for at, doc_id in enumerate(fresh):
                if doc_id is not None:
                    read[at].add(doc_id)
                    said = (
                        best_sentence(questions[at], known[doc_id].text) if doc_id in known else ""
                    )
                    texts[at] = f"{texts[at]} {said}".rstrip() if said else texts[at]
        return [_steady(hits) for hits in self.inner.search(texts, k=k, filters=filters)]


def _steady(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Scores without their last digits, in which a question alone differs from the same one among others."""
    return tuple(
        hit if hit.score is None else replace(hit, score=round(hit.score, DIGITS)) for hit in hits
    )


def best_sentence(question: str, text: str) -> str:
    """The sentence that shares most words with the question, stop words aside; the first of equals, "" without a sentence."""
    asked = set(tokens(question)) - STOP_WORDS
    return max(sentences(text[:READ]), key=lambda one: len(asked & set(tokens(one))), default="")
