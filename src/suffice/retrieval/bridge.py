"""The bridge retriever: a set of documents that together answer the question.

Candidates are the hits of text and vector search, documents that the question names, and documents
linked to the best of these by names. Each chosen document adds its own links. A ranker predicts
which candidate is needed next, given those already chosen ("held"), so the second document is
chosen for what the first does not say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from suffice.errors import NotReadyError
from suffice.protocols import Encoder, Store, StoreQuery, documents_by_id
from suffice.retrieval.candidate_pool import (
    COLUMN,
    FEATURES,
    TITLED_FEATURES,
    CandidatePool,
    question_terms,
)
from suffice.retrieval.corpus import Corpus
from suffice.retrieval.filters import filter_for
from suffice.retrieval.links import NAMESAKES
from suffice.retrieval.metadata import Mentions, Vocabulary
from suffice.retrieval.name_links import NameLinks
from suffice.retrieval.ranking import (
    Filters,
    HitLists,
    cap_scores,
    check_depth,
    check_search,
    name_parts,
)
from suffice.retrieval.search import VectorSearch
from suffice.retrieval.word_vectors import WordVectors
from suffice.storage import (
    check_replaceable,
    new_artefact,
    open_artefact,
    readable_file,
    write_atomically,
)
from suffice.storage.artefacts import OnnxTrees
from suffice.types import DocId, Document, Hit

Floats = npt.NDArray[np.floating[Any]]
# For each document to be added to a pool: which searches found it, with which score.
Reasons = dict[DocId, dict[str, float]]

KIND, VERSION, MODEL = "bridge-ranker", 1, "ranker.onnx"
SHIPPED = Path(__file__).parent.parent / "models" / "bridge-fast"
SHIPPED_UNTITLED = SHIPPED.with_name("bridge-untitled")
RETRAIN = "python -m suffice_research.training.bridge"
REFIT = "fit it again: suffice fit-ranker … --out {path}"

EXPANDED = 6  # candidates whose links are added to the pool at the start
OUT = 24  # documents named by a candidate, at most
SHARED = 16  # documents that mention the same rare names, at most
INTO = 6  # documents that name the candidate, at most
RARE = 8  # follow a name only if at most this many documents mention it
ASKED = 24  # hits of the query made from a held document
CHOSEN_SINGLY = 10  # documents chosen one by one

WEIGHTS: Mapping[str, float] = {
    "bm25": 1.0,
    "dense": 1.0,
    "named_best": 1.0,
    "adds": 1.0,
    "bridge": 0.7,
    "support_out": 0.4,
    "into_held": 0.2,
}


@runtime_checkable
class Ranker(Protocol):
    def p(self, rows: Floats) -> Floats:
        """The probability that each candidate is needed next: (rows, features) -> (rows,)."""
        ...


class WeightedRanker:
    """A fixed weighted sum of a few features, used to collect training states."""

    def __init__(self, weights: Mapping[str, float] = WEIGHTS) -> None:
        self._weights = np.zeros(len(FEATURES))
        for name, weight in weights.items():
            self._weights[COLUMN[name]] = weight

    def p(self, rows: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(3 - rows @ self._weights)))


class TreeRanker(OnnxTrees):
    """Boosted trees over FEATURES, or over the first `columns` of them."""

    def __init__(self, content: bytes, columns: int = len(FEATURES)) -> None:
        super().__init__(content, columns=columns, hint=REFIT.format(path="PATH"))
        self.columns = columns

    def p(self, rows: Floats) -> Floats:
        return super().p(rows[:, : self.columns])

    def save(
        self, path: Path, *, card: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> None:
        """Write the ranker as an artefact folder; `card` says what it was fitted on."""
        settings = {**(card or {}), "schema": features_hash(self.columns)}
        columns = [
            {"name": one.name, "description": one.description, "direction": one.direction}
            for one in FEATURES[: self.columns]
        ]
        path = Path(path)
        check_replaceable(path, kind=KIND)
        with new_artefact(path, kind=KIND, version=VERSION, settings=settings, seed=seed) as folder:
            write_atomically(folder / MODEL, self.content)
            write_atomically(folder / "features.json", json.dumps(columns, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path = SHIPPED) -> TreeRanker:
        """The ranker in this folder, by default the shipped one for documents with titles."""
        folder = Path(path)
        refit = RETRAIN if folder in (SHIPPED, SHIPPED_UNTITLED) else REFIT.format(path=folder)
        manifest = open_artefact(folder, kind=KIND, version=VERSION, rebuild=refit)
        schema = manifest.settings.get("schema")
        for columns in (len(FEATURES), len(TITLED_FEATURES)):
            if schema == features_hash(columns):
                content = np.fromfile(readable_file(folder / MODEL), dtype=np.uint8).tobytes()
                return cls(content, columns)
        raise NotReadyError(f"{folder} was fitted on other features", hint=refit)


def features_hash(columns: int) -> str:
    """A hash of the first feature names: a ranker fitted on others cannot be used."""
    named = [one.name for one in FEATURES[:columns]]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()


class RankerByTitles:
    """One ranker for questions whose candidates have titles, and one for the others.

    A title that is a name is the strongest signal if there is one. A single ranker for both kinds
    of text trusts it too little in one kind and misses it in the other.
    """

    def __init__(self, titled: Ranker, untitled: Ranker) -> None:
        self._rankers = titled, untitled

    @classmethod
    def load(cls) -> RankerByTitles:
        """Load the two shipped rankers."""
        return cls(TreeRanker.load(SHIPPED), TreeRanker.load(SHIPPED_UNTITLED))

    def p(self, rows: Floats) -> Floats:
        untitled = rows[:, COLUMN["untitled"]] > 0
        p = np.zeros(len(rows))
        if not untitled.any():
            return self._rankers[0].p(rows)
        for ranker, which in zip(self._rankers, (~untitled, untitled)):
            if which.any():
                p[which] = ranker.p(rows[which])
        return p


class BridgeRetriever:
    """Chooses documents one by one. `hops` is how often chosen documents add their links.

    With `asks`, each chosen document also yields the next query, whose hits become candidates. The
    links of the `expanded` best candidates are added before anything is chosen.
    """

    chooses_sets = True  # each document complements those before it: see `Library.complete`

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
        hops: int = 2,
        expanded: int = EXPANDED,
        asks: bool = True,
    ) -> None:
        self.store, self.links, self.ranker, self.vocabulary = store, links, ranker, vocabulary
        self.depth, self.hops = check_depth(depth), hops
        self.near = near or self.depth
        self.expanded, self.asks, self.encoder = expanded, asks, encoder
        self._vectors = VectorSearch(store, encoder)
        self._words = WordVectors.of(encoder)

    def search(self, questions: Sequence[str], *, k: int, filters: Filters = None) -> HitLists:
        k = check_search(questions, k, filters)
        return self.choose(self.build_pools(questions, filters=filters), k=k, filters=filters)

    def choose(
        self, pools: Sequence[CandidatePool], *, k: int, filters: Filters = None
    ) -> HitLists:
        """k candidates of each pool: CHOSEN_SINGLY one by one, the rest in one ranking."""
        scores: list[list[float]] = [[] for _ in pools]
        for step in range(min(k, CHOSEN_SINGLY + 1)):
            if 0 < step <= self.hops:
                self.follow(pools, filters)
            for pool, p, chosen in zip(pools, self.rank(pools), scores):
                wanted = 1 if step < CHOSEN_SINGLY else k - CHOSEN_SINGLY
                count = min(wanted, len(pool) - len(pool.held))
                for best in np.argsort(-p, kind="stable")[:count].tolist():
                    pool.hold(best)
                    chosen.append(float(p[best]))
        return [
            cap_scores([pool.hit(at, score) for at, score in zip(pool.held, chosen)])
            for pool, chosen in zip(pools, scores)
        ]

    def with_ranker(self, ranker: Ranker) -> BridgeRetriever:
        """The same retriever with another ranker."""
        other = copy(self)
        other.ranker = ranker
        return other

    def build_pools(
        self, questions: Sequence[str], *, filters: Filters = None
    ) -> list[CandidatePool]:
        """The candidates of each question before any is held, with two queries to the store."""
        names = self.links.question_names(questions)
        metadata: Sequence[Mentions | None] = [None] * len(questions)
        if self.vocabulary is not None:
            metadata = self.vocabulary.mentions(questions)
        bearers = [self._bearers(one.tolist()) for one in names]
        ids = [self.links.ids[row] for one in bearers for row in one]
        lists, documents = self._query_store(questions, metadata, filters, ids)
        pools, reasons = [], []
        for at, (question, text, near, agreeing) in enumerate(zip(questions, *lists)):
            near = self._rescale(near)
            terms = question_terms(question, names[at], self.links, metadata[at])
            pools.append(CandidatePool(terms, self.links, text, near, self._words))
            found: Reasons = {}
            sources = (("bm25", text), ("dense", near[: self.near]), ("metadata", agreeing))
            for name, hits in sources:
                for hit in hits:
                    found.setdefault(hit.doc_id, {})[name] = hit.score or 0.0
            for row, worth in bearers[at].items():
                found.setdefault(self.links.ids[row], {})["named"] = worth
            reasons.append(found)
        self._join(pools, reasons, filters, documents)
        best = [
            np.argsort(-pool.quality, kind="stable")[: self.expanded].tolist() for pool in pools
        ]
        self.expand(pools, filters, best)
        for pool in pools:
            pool.mark()
        return pools

    def _query_store(
        self,
        questions: Sequence[str],
        metadata: Sequence[Mentions | None],
        filters: Filters,
        ids: Sequence[DocId],
    ) -> tuple[list[HitLists], dict[DocId, Document]]:
        """Hits by words, by vectors, and by words restricted to the named sources and dates."""
        count, depth = len(questions), self.depth
        given = filters or [None] * count
        own = [
            filter_for(one) if one and not filter else None for one, filter in zip(metadata, given)
        ]
        queries = [
            *(StoreQuery(depth, text=text, filter=one) for text, one in zip(questions, given)),
            *self._vectors.queries(questions, k=max(2 * depth, self.near), filters=given),
            *(
                StoreQuery(depth, text=text if one else None, filter=one)
                for text, one in zip(questions, own)
            ),
        ]
        result = self.store.query(queries, ids)
        lists = [
            name_parts(name, result.hits[part * count : (part + 1) * count])
            for part, name in enumerate(("bm25", "dense", "bm25"))
        ]
        return lists, result.documents

    def _rescale(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """The vector hits, rescaled to what the ranker was fitted with."""
        return hits

    def _bearers(self, names: Sequence[int]) -> dict[int, float]:
        """The documents that bear these names; a name shared by n documents counts 1 / n."""
        found: dict[int, float] = {}
        for name in names:
            bearers = self.links.bearers.row(name)[:NAMESAKES].tolist()
            found.update((row, 1 / len(bearers)) for row in bearers)
        return found

    def expand(
        self, pools: Sequence[CandidatePool], filters: Filters, chosen: Sequence[Sequence[int]]
    ) -> None:
        """Add the links of the chosen candidates to their pools, with one query to the store."""
        self._join(pools, self._links_of(pools, chosen), filters)

    def follow(self, pools: Sequence[CandidatePool], filters: Filters = None) -> None:
        """Add what newly held documents lead to: their links, and hits of their next queries."""
        reasons = self._links_of(pools, [pool.held for pool in pools])
        asked: list[tuple[int, str]] = []
        for at, pool in enumerate(pools):
            if self.asks:
                written = map(pool.next_query, pool.held[pool.asking :])
                asked += [(at, query) for query in written if query]
            pool.asking = len(pool.held)
        texts = [query for _, query in asked]
        given = [filters[at] if filters else None for at, _ in asked]
        queries = [StoreQuery(ASKED, text=text, filter=one) for text, one in zip(texts, given)]
        ids = list(dict.fromkeys(doc_id for found in reasons for doc_id in found))
        result = self.store.query(queries, ids)
        for (at, _), hits in zip(asked, result.hits):
            pools[at].add_asked(hits)
            for hit in hits:
                reasons[at].setdefault(hit.doc_id, {})["asked"] = hit.score or 0.0
        self._join(pools, reasons, filters, result.documents)

    def _links_of(
        self, pools: Sequence[CandidatePool], chosen: Sequence[Sequence[int]]
    ) -> list[Reasons]:
        """For each pool, the documents outside it that the chosen candidates link to."""
        reasons: list[Reasons] = []
        for pool, positions in zip(pools, chosen):
            found: Reasons = {}
            for at in positions:
                if at not in pool.expanded:
                    pool.expanded.add(at)
                    for row, worth in self._linked(self.links.position.get(pool.ids[at], -1)):
                        doc_id = self.links.ids[row]
                        if doc_id not in pool.at:
                            found.setdefault(doc_id, {"link": worth})
            reasons.append(found)
        return reasons

    def _linked(self, row: int) -> Iterator[tuple[int, float]]:
        """The documents that a document's names lead to, and the weight of each link."""
        if row < 0:
            return
        links = self.links
        found: dict[int, float] = {}
        mentioned = links.mentioned.row(row)
        borne = links.bearing[mentioned] > 0
        for name in mentioned[borne].tolist():
            if len(found) >= OUT:
                break
            bearers = links.bearers.row(name)[:NAMESAKES].tolist()
            for other in bearers:
                found.setdefault(other, 1 / len(bearers))
        # A name that no document bears leads to the few documents that mention it, rarest first.
        unborne = mentioned[~borne]
        sizes = np.diff(links.mentioners.starts)[unborne]
        for name in unborne[np.argsort(sizes, kind="stable")].tolist():
            mentioners = links.mentioners.row(name)
            if len(mentioners) > RARE or len(found) >= OUT + SHARED:
                break
            for other in mentioners.tolist():
                found.setdefault(other, 1 / len(mentioners))
        for name in links.borne.row(row)[:2].tolist():
            mentioners = links.mentioners.row(name)
            if len(mentioners) <= RARE:
                for other in mentioners[:INTO].tolist():
                    found.setdefault(other, 1 / (1 + len(mentioners)))
        found.pop(row, None)
        yield from found.items()

    def _join(
        self,
        pools: Sequence[CandidatePool],
        reasons: Sequence[Reasons],
        filters: Filters,
        documents: Mapping[DocId, Document] | None = None,
    ) -> None:
        """Add candidates that pass the filter to their pools; without `documents`, fetch them."""
        ids = (doc_id for found in reasons for doc_id in found)
        known = documents or documents_by_id(self.store.get, ids)
        for at, (pool, found) in enumerate(zip(pools, reasons)):
            new = [known[doc_id] for doc_id in found if doc_id in known]
            if new and filters is not None and filters[at]:
                passing = Corpus(new).mask(filters[at]).tolist()
                new = [one for one, passes in zip(new, passing) if passes]
            pool.join(new, found)

    def rank(self, pools: Sequence[CandidatePool]) -> list[Floats]:
        """How likely each candidate of each pool is needed next; -1 for those held."""
        return self._rank_rows(pools, [pool.features() for pool in pools])

    def _rank_rows(self, pools: Sequence[CandidatePool], rows: Sequence[Floats]) -> list[Floats]:
        if not rows:
            return []
        ends = np.cumsum([len(one) for one in rows])[:-1]
        parts = np.split(np.array(self.ranker.p(np.concatenate(rows)), dtype=float), ends)
        for pool, part in zip(pools, parts):
            part[pool.held] = -1
        return parts
