"""Soft filters: a filter made from a question is a guess, so it never empties the result.

`SoftFilter` prefers documents that pass. `SourceQuota` puts the best of each named source first.
`SpreadRetriever` only ensures that each named source and day is among the k hits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date

from suffice.errors import InputError
from suffice.protocols import Extractor, Retriever, Store, documents_by_id
from suffice.retrieval.filters import VocabularyExtractor
from suffice.retrieval.metadata import Mentions, Vocabulary, matching_metadata
from suffice.retrieval.ranking import Filters, HitLists, cap_scores, check_depth, check_search
from suffice.types import DocId, Document, Filter, Hit, LibraryHit


@dataclass(eq=False)
class SoftFilter:
    """A retriever that prefers what passes the question's filter, and hides nothing it names.

    Hits that pass come first. If there are fewer than k, the best others follow, marked `relaxed`.
    If the question names something (a source, category, entity, title or date) that no passing hit
    has but one of the k best unfiltered hits does, that one replaces the last hit that is not the
    only one to have something named. Each hit lists in `matched` what it has.

    With `strict`, only the filter decides. Without `filters`, the `extractor` makes them. Without a
    `vocabulary`, the store's is used, and read again when the store has changed. With `documents`,
    hits are returned with the documents that had to be fetched anyway.
    """

    retriever: Retriever
    store: Store
    vocabulary: Vocabulary | None = None
    _: KW_ONLY
    strict: bool = False
    extractor: Extractor | None = None
    documents: bool = False
    _cached: tuple[int, Vocabulary] | None = None  # and the store's generation

    @property
    def chooses_sets(self) -> bool:
        """Only if strict: a soft filter puts hits that pass first, whatever they add."""
        return self.strict and getattr(self.retriever, "chooses_sets", False)

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        vocabulary = self.vocabulary or self._store_vocabulary()
        mentions = vocabulary.mentions(questions)
        if filters is None:
            extractor = self.extractor or VocabularyExtractor(vocabulary)
            filters = [one.filter for one in extractor.extract(questions)]
        filters = [one or Filter() for one in filters]
        passing = self.retriever.search(questions, k=k, filters=filters)
        soft = [at for at, one in enumerate(filters) if one and not self.strict]
        free: dict[int, tuple[Hit, ...]] = {}
        if soft:
            free = dict(zip(soft, self.retriever.search([questions[at] for at in soft], k=k)))
        ids = (hit.doc_id for hits in (*passing, *free.values()) for hit in hits)
        documents = documents_by_id(self.store.get, ids)
        mark = _with_documents if self.documents else _mark_matches
        return [
            _soften(
                mark(hits, mentions[at], documents),
                mark(free.get(at, ()), mentions[at], documents),
                k,
            )
            for at, hits in enumerate(passing)
        ]

    def _store_vocabulary(self) -> Vocabulary:
        generation = self.store.generation
        if self._cached is None or self._cached[0] != generation:
            self._cached = (generation, Vocabulary.of_store(self.store))
        return self._cached[1]


def _mark_matches(
    hits: Sequence[Hit], mentions: Mentions, documents: Mapping[DocId, Document]
) -> list[Hit]:
    found = [documents.get(hit.doc_id) for hit in hits]
    return [
        replace(hit, matched=matching_metadata(mentions, document) if document else ())
        for hit, document in zip(hits, found)
    ]


def _with_documents(
    hits: Sequence[Hit], mentions: Mentions, documents: Mapping[DocId, Document]
) -> list[Hit]:
    return [
        LibraryHit(
            hit.doc_id,
            hit.score,
            hit.parts,
            hit.matched,
            hit.relaxed,
            documents.get(hit.doc_id),
        )
        for hit in _mark_matches(hits, mentions, documents)
    ]


def _soften(passing: list[Hit], free: Sequence[Hit], k: int) -> tuple[Hit, ...]:
    kept = list(passing)
    ids = {hit.doc_id for hit in kept}
    others = [replace(hit, relaxed=True) for hit in free if hit.doc_id not in ids]
    let_in: list[Hit] = []
    for other in others:
        covered = {thing for hit in (*kept, *let_in) for thing in hit.matched}
        room = len(kept) + len(let_in) < k
        if set(other.matched) - covered and (room or _drop_last_spare(kept, let_in)):
            let_in.append(other)
    fill = [other for other in others if other not in let_in][: max(0, k - len(kept) - len(let_in))]
    added = {hit.doc_id for hit in (*let_in, *fill)}
    return cap_scores([*kept, *(other for other in others if other.doc_id in added)])


def _drop_last_spare(kept: list[Hit], let_in: Sequence[Hit]) -> bool:
    """Drop the last hit, never the first, whose matches others also have; False if none is."""
    for at in range(len(kept) - 1, 0, -1):
        others = (*kept[:at], *kept[at + 1 :], *let_in)
        if set(kept[at].matched) <= {thing for hit in others for thing in hit.matched}:
            del kept[at]
            return True
    return False


@dataclass(eq=False)
class SourceQuota:
    """The first `depth` hits, reordered: the best `per_source` of every named source come first.

    A question that compares two reports needs both, but vectors and cross-encoders score documents
    one by one, and one report can take all places. If a question names no source, the order stays.
    """

    retriever: Retriever
    store: Store
    vocabulary: Vocabulary
    _: KW_ONLY
    per_source: int = 1
    depth: int = 20

    def __post_init__(self) -> None:
        if self.per_source < 0:
            raise InputError(f"per_source is {self.per_source}, expected 0 or more")
        self.depth = check_depth(self.depth)

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        found = self.retriever.search(questions, k=max(k, self.depth), filters=filters)
        documents = documents_by_id(self.store.get, (hit.doc_id for row in found for hit in row))
        mentions = self.vocabulary.mentions(questions)
        return [
            cap_scores(self._reorder(hits, one.sources, documents))[:k]
            for hits, one in zip(found, mentions)
        ]

    def _reorder(
        self, hits: Sequence[Hit], sources: Sequence[str], documents: Mapping[DocId, Document]
    ) -> list[Hit]:
        left = dict.fromkeys(sources, self.per_source)
        first, rest = [], []
        for hit in hits:
            document = documents.get(hit.doc_id)
            source = document.source if document else None
            if source is not None and left.get(source, 0) > 0:
                left[source] -= 1
                first.append(replace(hit, matched=hit.matched or (f"source: {source}",)))
            else:
                rest.append(hit)
        return [*first, *rest]


@dataclass(eq=False)
class SpreadRetriever:
    """The k best hits, spread over the sources and days that the question names.

    A question about several sources, or about reports of several days, needs a hit of each. If the
    first k lack one, the best of the first `depth` hits that has it replaces the last hit that is
    not the only one for something named; the first hit stays. A question that names fewer than two
    sources and fewer than two days keeps its hits, and is not searched deeper.
    """

    retriever: Retriever
    store: Store
    vocabulary: Vocabulary
    _: KW_ONLY
    depth: int = 30

    def __post_init__(self) -> None:
        self.depth = check_depth(self.depth)

    @property
    def chooses_sets(self) -> bool:
        return getattr(self.retriever, "chooses_sets", False)

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        named = [several_named(one) for one in self.vocabulary.mentions(questions)]
        found: dict[int, tuple[Hit, ...]] = {}
        for spread, depth in ((False, k), (True, max(k, self.depth))):
            some = [at for at, one in enumerate(named) if bool(one) is spread]
            if some:
                given = None if filters is None else [filters[at] for at in some]
                texts = [questions[at] for at in some]
                found |= dict(zip(some, self.retriever.search(texts, k=depth, filters=given)))
        wanted = (hit.doc_id for at, one in enumerate(named) if one for hit in found[at])
        documents = documents_by_id(self.store.get, wanted)
        return [
            spread_hits(found[at], one, documents, k) if one else found[at]
            for at, one in enumerate(named)
        ]


def several_named(mentions: Mentions) -> frozenset[str | date]:
    """The named sources and days, if there are several of either."""
    several = len(mentions.sources) > 1 or len(mentions.days) > 1
    return frozenset((*mentions.sources, *mentions.days)) if several else frozenset()


def spread_hits(
    hits: Sequence[Hit],
    named: frozenset[str | date],
    documents: Mapping[DocId, Document],
    k: int,
) -> tuple[Hit, ...]:
    """The k first hits, with a later one for each of the `named` that these lack."""

    def carried(hit: Hit) -> frozenset[object]:
        document = documents.get(hit.doc_id)
        return named & {document.source, document.published_at} if document else frozenset()

    kept = list(hits[:k])
    for other in hits[k:]:
        counts = Counter(thing for hit in kept for thing in carried(hit))
        if not carried(other) - counts.keys():
            continue
        spare = (
            at for at in range(k - 1, 0, -1) if all(counts[one] > 1 for one in carried(kept[at]))
        )
        if (at := next(spare, None)) is None:
            break
        del kept[at]
        kept.append(other)
    return cap_scores(kept)
