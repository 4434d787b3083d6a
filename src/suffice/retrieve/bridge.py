"""The bridge retriever: a set of documents that together answer the question, chosen along the names that link them.

Candidates are what text and vector search find, what the question names, and whatever is linked with the best of those; each
chosen document brings its own links in. The ranker says which candidate is needed next, given those already held, so that the
second document is chosen for what the first does not say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.ports import Encoder, Look, Seen, Store, by_id
from suffice.retrieve.corpus import Corpus
from suffice.retrieve.dense import VectorSearch
from suffice.retrieve.filters import filter_for
from suffice.retrieve.links import NAMESAKES
from suffice.retrieve.metadata import Mentions, Vocabulary
from suffice.retrieve.name_links import NameLinks
from suffice.retrieve.pool import Pool, read_question
from suffice.retrieve.ranker import Ranker
from suffice.retrieve.ranking import checked, falling, found_by
from suffice.types import DocId, Document, Filter, Hit

__all__ = ["Bridge"]

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]

EXPANDED = 10  # candidates whose links join the pool at the start
OUT, INTO, RARE, SHARED = 24, 6, 8, 16  # links of one candidate that join: names it has, documents that name it, if so few do
SET = 10  # documents that are chosen one by one


class Bridge:
    """Retriever port. `hops` is how often chosen documents bring their links in."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        links: NameLinks,
        ranker: Ranker,
        *,
        vocabulary: Vocabulary | None = None,
        depth: int = 30,
        near: int | None = None,
        hops: int = 3,
    ) -> None:
        self.store, self.links, self.ranker, self.vocabulary = store, links, ranker, vocabulary
        self.depth, self.near, self.hops = depth, near or depth, hops
        self._near = VectorSearch(store, encoder)

    def search(
        self, questions: Sequence[str], *, k: int, filters: Sequence[Filter | None] | None = None
    ) -> list[tuple[Hit, ...]]:
        k = checked(questions, k, filters)
        return self.choose(self.pools(questions, filters=filters), k=k, filters=filters)

    def choose(self, pools: Sequence[Pool], *, k: int, filters: Sequence[Filter | None] | None = None) -> list[tuple[Hit, ...]]:
        """k candidates of each pool, one by one; each brings its links in while there are hops left.

        Behind the first SET the rest follows in one go: nobody chooses a hundredth document for what ninety-nine do not say.
        """
        scores: list[list[float]] = [[] for _ in pools]
        for step in range(min(k, SET + 1)):
            if 0 < step <= self.hops:
                self.grow(pools, filters, [pool.held[-1:] for pool in pools])
            for pool, p, kept in zip(pools, self.judged(pools), scores):
                count = min(1 if step < SET else k - SET, len(pool) - len(pool.held))
                for best in np.argsort(-p, kind="stable")[:count].tolist():
                    pool.hold(best)
                    kept.append(float(p[best]))
        return [falling([pool.hit(at, score) for at, score in zip(pool.held, kept)]) for pool, kept in zip(pools, scores)]

    def ranked_by(self, ranker: Ranker) -> Bridge:
        """The same retriever with another ranker."""
        other = copy(self)
        other.ranker = ranker
        return other

    # -------------------------------------------------------------------------------------------------- the pool

    def pools(self, questions: Sequence[str], *, filters: Sequence[Filter | None] | None = None) -> list[Pool]:
        """The candidates of each question before anything is held: one look at the store, and one for what is linked."""
        named, metadata = self.links.asked(questions), self._metadata(questions)
        bearers = [dict(self._named(one)) for one in named]
        seen = self._look(questions, metadata, filters, [self.links.ids[row] for one in bearers for row in one])
        pools, wanted = [], []
        for at, question in enumerate(questions):
            text, near, agreeing = (seen.hits[at + part * len(questions)] for part in range(3))
            near = self._judged_near(near)
            asked = read_question(question, named[at], self.links, metadata[at])
            pools.append(Pool(asked, self.links, text, near))
            why: dict[DocId, dict[str, float]] = {}
            for name, hits in (("bm25", text), ("dense", near[: self.near]), ("metadata", agreeing)):
                for hit in hits:
                    why.setdefault(hit.doc_id, {})[name] = hit.score or 0.0
            for row, worth in bearers[at].items():
                why.setdefault(self.links.ids[row], {})["named"] = worth
            wanted.append(why)
        self._join(pools, wanted, filters, seen.documents)
        self.grow(pools, filters, [np.argsort(-pool.good, kind="stable")[:EXPANDED].tolist() for pool in pools])
        for pool in pools:
            pool.mark()
        return pools

    def _look(
        self,
        questions: Sequence[str],
        metadata: Sequence[Mentions | None],
        filters: Sequence[Filter | None] | None,
        named: Sequence[DocId],
    ) -> Seen:
        """For all questions by words, then by vectors, then by words among the documents of the sources and dates they name."""
        given = filters or [None] * len(questions)
        own = [filter_for(one) if one and not filter else None for one, filter in zip(metadata, given)]
        looks = [Look(self.depth, text=question, filter=filter) for question, filter in zip(questions, given)]
        looks += self._near.looks(questions, k=max(2 * self.depth, self.near), filters=given)
        looks += [Look(self.depth, text=question if one else None, filter=one) for question, one in zip(questions, own)]
        seen = self.store.look(looks, named)
        text, near, agreeing = (seen.hits[part * len(questions) : (part + 1) * len(questions)] for part in range(3))
        return Seen([*found_by("bm25", text), *found_by("dense", near), *found_by("bm25", agreeing)], seen.documents)

    def _judged_near(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """What the vectors found, on the scale that the ranker was fitted with."""
        return hits

    def _metadata(self, questions: Sequence[str]) -> Sequence[Mentions | None]:
        return [None] * len(questions) if self.vocabulary is None else self.vocabulary.mentions(questions)

    def _named(self, names: Ints) -> Iterator[tuple[int, float]]:
        for name in names.tolist():
            bearers = self.links.bearers.row(name)[:NAMESAKES].tolist()
            yield from ((row, 1 / len(bearers)) for row in bearers)

    def grow(self, pools: Sequence[Pool], filters: Sequence[Filter | None] | None, chosen: Sequence[Sequence[int]]) -> None:
        """The links of these candidates join, in one look at the store."""
        wanted: list[dict[DocId, dict[str, float]]] = []
        for pool, ats in zip(pools, chosen):
            why: dict[DocId, dict[str, float]] = {}
            for at in ats:
                if at not in pool.expanded:
                    pool.expanded.add(at)
                    for row, worth in self._linked(self.links.position.get(pool.ids[at], -1)):
                        doc_id = self.links.ids[row]
                        if doc_id not in pool.at:
                            why.setdefault(doc_id, {"link": worth})
            wanted.append(why)
        self._join(pools, wanted, filters)

    def _linked(self, row: int) -> list[tuple[int, float]]:
        if row < 0:
            return []
        links = self.links
        found: dict[int, float] = {}
        own = links.borne.row(row)
        mentioned = links.mentioned.row(row)
        for name in mentioned.tolist():
            if len(found) >= OUT:
                break
            bearers = links.bearers.row(name)[:NAMESAKES].tolist()
            for other in bearers:
                found.setdefault(other, 1 / len(bearers))
        # A name that nobody bears leads to the few who mention it, the rarest first.
        shared = mentioned[links.bearing[mentioned] == 0]
        sizes = np.diff(links.mentioners.starts)[shared]
        for name in shared[np.argsort(sizes, kind="stable")].tolist():
            mentioners = links.mentioners.row(name)
            if len(mentioners) > RARE or len(found) >= OUT + SHARED:
                break
            for other in mentioners.tolist():
                found.setdefault(other, 1 / len(mentioners))
        for name in own[:2].tolist():
            if len(mentioners := links.mentioners.row(name)) <= RARE:
                for other in mentioners[:INTO].tolist():
                    found.setdefault(other, 1 / (1 + len(mentioners)))
        found.pop(row, None)
        return list(found.items())

    def _join(
        self,
        pools: Sequence[Pool],
        wanted: Sequence[dict[DocId, dict[str, float]]],
        filters: Sequence[Filter | None] | None,
        seen: Mapping[DocId, Document] | None = None,
    ) -> None:
        """Candidates come into their pools, if they pass the filter: the documents `seen`, or else got for the purpose."""
        held = seen or by_id(self.store.get, (doc_id for why in wanted for doc_id in why))
        for at, (pool, why) in enumerate(zip(pools, wanted)):
            documents = [held[doc_id] for doc_id in why if doc_id in held]
            if documents and filters is not None and filters[at]:
                passing = Corpus(documents).mask(filters[at])
                documents = [one for one, passes in zip(documents, passing.tolist()) if passes]
            pool.join(documents, why)

    # -------------------------------------------------------------------------------------------------- the choice

    def judged(self, pools: Sequence[Pool]) -> list[Floats]:
        """How likely each candidate of each pool is needed next; what is held already counts -1."""
        return self._ranked(pools, [pool.features() for pool in pools])

    def _ranked(self, pools: Sequence[Pool], rows: Sequence[Floats]) -> list[Floats]:
        """The ranker's word on all candidates of all pools in one go."""
        if not rows:
            return []
        ends = np.cumsum([len(one) for one in rows])[:-1]
        parts = np.split(np.array(self.ranker.p(np.concatenate(rows)), dtype=float), ends)
        for pool, part in zip(pools, parts):
            part[pool.held] = -1
        return parts
