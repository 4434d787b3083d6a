"""Soft filtering: a filter made from a question is a guess, so it orders the result and never empties it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from suffice.errors import InputError, ModelError
from suffice.protocols import Extractor, Retriever, Store, documents_by_id
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.filter_extraction import VocabularyExtractor
from suffice.retrieval.metadata import Mentions, Vocabulary, matching_metadata
from suffice.retrieval.ranking import cap_scores, check_search
from suffice.types import DocId, Document, Field, Filter, Hit

__all__ = ["PComplete", "SoftFilter", "SourceQuota", "StepwiseFilter", "relaxation_steps"]


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
        k = check_search(questions, k, filters)
        vocabulary = self._vocabulary()
        named = vocabulary.mentions(questions)
        chosen = (
            self._filters(questions, vocabulary)
            if filters is None
            else [one or Filter() for one in filters]
        )
        passing = self._retriever.search(questions, k=k, filters=chosen)
        asked = [at for at, one in enumerate(chosen) if one and not self._strict]
        free = (
            dict(zip(asked, self._retriever.search([questions[at] for at in asked], k=k)))
            if asked
            else {}
        )
        documents = documents_by_id(
            self._store.get, (hit.doc_id for hits in (*passing, *free.values()) for hit in hits)
        )
        return [
            _soften(hits, free.get(at, ()), k, _Cover(named[at], documents))
            for at, hits in enumerate(passing)
        ]

    def _filters(self, questions: Sequence[str], vocabulary: Vocabulary) -> list[Filter]:
        return [
            one.filter
            for one in (self._extractor or VocabularyExtractor(vocabulary)).extract(questions)
        ]

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
        return matching_metadata(self.mentions, document) if document else ()


def _soften(passing: Sequence[Hit], free: Sequence[Hit], k: int, cover: _Cover) -> tuple[Hit, ...]:
    kept = [replace(hit, matched=cover.of(hit)) for hit in passing]
    held = {hit.doc_id for hit in kept}
    others = [
        replace(hit, matched=cover.of(hit), relaxed=True) for hit in free if hit.doc_id not in held
    ]
    let_in: list[Hit] = []
    for other in others:
        covered = {thing for hit in (*kept, *let_in) for thing in hit.matched}
        if set(other.matched) - covered and (
            len(kept) + len(let_in) < k or _drop_last_spare(kept, let_in)
        ):
            let_in.append(other)
    fill = [other for other in others if other not in let_in][: max(0, k - len(kept) - len(let_in))]
    order = {other.doc_id: rank for rank, other in enumerate(others)}
    return cap_scores([*kept, *sorted((*let_in, *fill), key=lambda hit: order[hit.doc_id])])


def _drop_last_spare(kept: list[Hit], let_in: Sequence[Hit]) -> bool:
    """Take out the last hit whose named things others carry too; False if there is none. The first hit always stays."""
    for at in range(len(kept) - 1, 0, -1):
        elsewhere = {
            thing for hit in (*kept[:at], *kept[at + 1 :], *let_in) for thing in hit.matched
        }
        if set(kept[at].matched) <= elsewhere:
            del kept[at]
            return True
    return False


# --- relax: Soft filtering with a judge: relax the filter step by step while the evidence looks incomplete.

# Questions and their hits -> the probability that each is complete.
PComplete = Callable[[Sequence[str], Sequence[tuple[Hit, ...]]], Sequence[float]]
GIVEN_UP: tuple[Field, ...] = (
    "published_at",
    "category",
    "entities",
    "source",
)  # a date is wrong most often, a source least


def relaxation_steps(filter: Filter) -> list[Filter]:
    """The filter, then the same without one field after another, and at last nothing."""
    found = [filter]
    for field in GIVEN_UP:
        rest = tuple(one for one in found[-1].conditions if one.field != field)
        if rest != found[-1].conditions:
            found.append(replace(filter, conditions=rest))
    return found


class StepwiseFilter:
    """A retriever whose filter gives way. `retriever` must not be emptied by a filter itself: a SoftFilter around a plain one.

    A hit that does not pass the whole filter of its question is marked `relaxed`.
    """

    def __init__(
        self,
        retriever: Retriever,
        store: Store,
        extractor: Extractor,
        judge: PComplete,
        *,
        target: float = 0.7,
    ) -> None:
        if not 0 <= target <= 1:
            raise InputError(f"target is {target}, expected a probability from 0 to 1")
        self._retriever, self._store, self._extractor = retriever, store, extractor
        self._judge, self._target = judge, target

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        whole = (
            [one.filter for one in self._extractor.extract(questions)]
            if filters is None
            else list(filters)
        )
        ladders = [relaxation_steps(one or Filter()) for one in whole]
        kept: dict[int, tuple[Hit, ...]] = {}
        open_ = list(range(len(questions)))
        for step in range(max(map(len, ladders), default=0)):
            open_ = [at for at in open_ if step < len(ladders[at])]
            asked = [questions[at] for at in open_]
            found = self._retriever.search(asked, k=k, filters=[ladders[at][step] for at in open_])
            enough = self._enough(asked, found)
            for at, hits, one in zip(open_, found, enough):
                if step == 0 or one:
                    kept[at] = hits
            open_ = [at for at, one in zip(open_, enough) if not one]
        return [self._marked(kept[at], ladders[at][0]) for at in range(len(questions))]

    def _enough(self, questions: Sequence[str], found: Sequence[tuple[Hit, ...]]) -> list[bool]:
        p = list(self._judge(questions, found)) if questions else []
        if len(p) != len(questions) or not all(0 <= one <= 1 for one in p):
            raise ModelError(
                f"the judge gave {len(p)} values for {len(questions)} questions, or some outside 0 to 1"
            )
        return [one >= self._target for one in p]

    def _marked(self, hits: tuple[Hit, ...], filter: Filter) -> tuple[Hit, ...]:
        corpus = Corpus(documents_by_id(self._store.get, (hit.doc_id for hit in hits)).values())
        passing = dict(zip(corpus.ids, corpus.mask(filter).tolist()))
        return tuple(replace(hit, relaxed=not passing.get(hit.doc_id, True)) for hit in hits)


# --- quota: A share for each named source: when a question names several, each gets its best documents before the rest competes.


class SourceQuota:
    """The first `depth` hits of a retriever, reordered: the best `per_source` of every named source first, in their order.

    Only sources that the question names (and does not rule out) have a share; a question that names none keeps its order, and
    so does everything behind the shares. Scores are lowered where a hit falls behind one that it outscored.
    """

    def __init__(
        self,
        retriever: Retriever,
        store: Store,
        vocabulary: Vocabulary,
        *,
        per_source: int = 1,
        depth: int = 20,
    ) -> None:
        if per_source < 0:
            raise InputError(f"per_source is {per_source}, expected 0 or more")
        self._retriever, self._store, self._vocabulary = retriever, store, vocabulary
        self._per_source, self._depth = per_source, check_search([], depth)

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = check_search(questions, k, filters)
        found = self._retriever.search(questions, k=max(k, self._depth), filters=filters)
        documents = documents_by_id(self._store.get, (hit.doc_id for hits in found for hit in hits))
        named = self._vocabulary.mentions(questions)
        return [
            cap_scores(self._shared(hits, one, documents))[:k] for hits, one in zip(found, named)
        ]

    def _shared(
        self, hits: Sequence[Hit], mentions: Mentions, documents: Mapping[DocId, Document]
    ) -> list[Hit]:
        left = dict.fromkeys(mentions.sources, self._per_source)
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
