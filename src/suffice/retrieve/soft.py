"""Soft filtering: a filter made from a question is a guess, so it orders the result and never empties it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from suffice.ports import Extractor, Retriever, Store, by_id
from suffice.retrieve.extract import VocabularyExtractor
from suffice.retrieve.metadata import Mentions, Vocabulary, matched
from suffice.retrieve.ranking import checked, falling
from suffice.types import DocId, Document, Filter, Hit

__all__ = ["SoftFilter"]


class SoftFilter:
    """A retriever that prefers what passes the question's filter, and never lets the filter hide what it should not.

    Hits that pass come first. If they are fewer than k, the best of the others fill up, marked `relaxed`. If something the
    question names (a source, category, entity, title or date) is carried by none of the passing hits but by one of the k best
    unfiltered ones, that one takes the place of the last hit that is not itself the only cover of something named. Each hit
    says in `matched` what it carries. A relaxed hit's score never stands above the hit before it; its parts keep their scores.

    With `strict`, the filter alone decides. Without `filters`, the `extractor` makes them, or what each question names does.
    Without a `vocabulary`, it is the store's, read again when the store has changed.
    """

    def __init__(
        self,
        retriever: Retriever,
        store: Store,
        vocabulary: Vocabulary | None = None,
        *,
        strict: bool = False,
        extractor: Extractor | None = None,
    ) -> None:
        self._retriever, self._store, self._given = retriever, store, vocabulary
        self._strict, self._extractor = strict, extractor
        self._read_at: tuple[int, Vocabulary] | None = None

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        vocabulary = self._vocabulary()
        named = vocabulary.mentions(questions)
        chosen = self._filters(questions, vocabulary) if filters is None else [one or Filter() for one in filters]
        passing = self._retriever.search(questions, k=k, filters=chosen)
        asked = [at for at, one in enumerate(chosen) if one and not self._strict]
        free = dict(zip(asked, self._retriever.search([questions[at] for at in asked], k=k))) if asked else {}
        documents = by_id(self._store.get, (hit.doc_id for hits in (*passing, *free.values()) for hit in hits))
        return [_soften(hits, free.get(at, ()), k, _Cover(named[at], documents)) for at, hits in enumerate(passing)]

    def _filters(self, questions: Sequence[str], vocabulary: Vocabulary) -> list[Filter]:
        return [one.filter for one in (self._extractor or VocabularyExtractor(vocabulary)).extract(questions)]

    def _vocabulary(self) -> Vocabulary:
        if self._given is not None:
            return self._given
        generation = self._store.generation
        if self._read_at is None or self._read_at[0] != generation:
            self._read_at = (generation, Vocabulary.of_store(self._store))
        return self._read_at[1]


class _Cover:
    """Which named things a hit carries."""

    def __init__(self, mentions: Mentions, documents: Mapping[DocId, Document]) -> None:
        self.mentions, self.documents = mentions, documents

    def of(self, hit: Hit) -> tuple[str, ...]:
        document = self.documents.get(hit.doc_id)
        return matched(self.mentions, document) if document else ()


def _soften(passing: Sequence[Hit], free: Sequence[Hit], k: int, cover: _Cover) -> tuple[Hit, ...]:
    kept = [replace(hit, matched=cover.of(hit)) for hit in passing]
    held = {hit.doc_id for hit in kept}
    others = [replace(hit, matched=cover.of(hit), relaxed=True) for hit in free if hit.doc_id not in held]
    let_in: list[Hit] = []
    for other in others:
        covered = {thing for hit in (*kept, *let_in) for thing in hit.matched}
        if set(other.matched) - covered and (len(kept) + len(let_in) < k or _drop_last_spare(kept, let_in)):
            let_in.append(other)
    fill = [other for other in others if other not in let_in][: max(0, k - len(kept) - len(let_in))]
    order = {other.doc_id: rank for rank, other in enumerate(others)}
    return falling([*kept, *sorted((*let_in, *fill), key=lambda hit: order[hit.doc_id])])


def _drop_last_spare(kept: list[Hit], let_in: Sequence[Hit]) -> bool:
    """Take out the last hit whose named things others carry too; False if there is none. The first hit always stays."""
    for at in range(len(kept) - 1, 0, -1):
        elsewhere = {thing for hit in (*kept[:at], *kept[at + 1 :], *let_in) for thing in hit.matched}
        if set(kept[at].matched) <= elsewhere:
            del kept[at]
            return True
    return False
