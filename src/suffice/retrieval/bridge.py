"""Which candidate next: a small learned model over the features of (question, documents held, candidate).

`TreeRanker` is boosted trees as ONNX, fitted by `suffice_research.training.bridge`; one ships, fitted on five data sets.
`HandRanker` is a weighted sum that was never fitted: it leads the paths along which training states are gathered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, InputError, NotReadyError
from suffice.protocols import Encoder, Store, StoreQuery, StoreResult, documents_by_id
from suffice.retrieval.candidate_pool import (
    COLUMN,
    FEATURES,
    CandidatePool,
    Feature,
    question_terms,
)
from suffice.retrieval.corpus import Corpus, searchable_text
from suffice.retrieval.dense import VectorSearch
from suffice.retrieval.filters import filter_for
from suffice.retrieval.links import NAMESAKES
from suffice.retrieval.metadata import Mentions, Vocabulary
from suffice.retrieval.name_links import NameLinks
from suffice.retrieval.ranking import cap_scores, check_search, name_parts
from suffice.storage import new_artefact, open_artefact, readable_file, write_atomically
from suffice.storage.artefacts import open_onnx
from suffice.types import DocId, Document, Filter, Hit

__all__ = [
    "QUALITY_FEATURES",
    "READ_FIRST",
    "READ_LATER",
    "SHIPPED",
    "UNREAD",
    "WEIGHTS",
    "BridgeRetriever",
    "QualityBridgeRetriever",
    "Ranker",
    "SetScorer",
    "TreeRanker",
    "WeightedRanker",
    "log_odds",
    "quality_rows",
    "read_count",
    "shortlist",
]


Floats = npt.NDArray[np.floating[Any]]

KIND, VERSION, MODEL = "bridge-ranker", 1, "ranker.onnx"
SHIPPED = Path(__file__).parent.parent / "models" / "bridge-fast"
REFIT = "fit it again: suffice fit --bridge … --out {path}"
AT_ONCE = 256  # rows of one run: beyond some 1,000, onnxruntime takes far longer for each

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
        """How likely each candidate is needed next: (rows, features) -> (rows,), from 0 to 1."""
        ...


class WeightedRanker:
    """A weighted sum of a few features, put between 0 and 1."""

    def __init__(self, weights: Mapping[str, float] = WEIGHTS) -> None:
        self._weights = np.zeros(len(FEATURES))
        for name, weight in weights.items():
            self._weights[COLUMN[name]] = weight

    def p(self, rows: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(3 - rows @ self._weights)))


class TreeRanker:
    """Boosted trees, run by onnxruntime on one thread: a question is too short to share."""

    def __init__(self, content: bytes) -> None:
        """`content` are the bytes of an ONNX file; DataError where they are damaged or want other columns."""
        self.content = content
        self._session = open_onnx(content, threads=1, hint=REFIT.format(path="PATH"))
        shapes = [(one.name, one.shape[1:]) for one in self._session.get_inputs()]
        if shapes != [("rows", [len(FEATURES)])] or [
            one.name for one in self._session.get_outputs()
        ] != ["p"]:
            raise DataError(
                f"a ranker takes {shapes}, expected 'rows' of {len(FEATURES)} columns",
                hint="fit it again",
            )

    def p(self, rows: Floats) -> Floats:
        given = np.ascontiguousarray(rows, dtype=np.float32)
        try:
            parts = [
                self._session.run(["p"], {"rows": given[at : at + AT_ONCE]})[0]
                for at in range(0, len(given), AT_ONCE)
            ]
            return np.concatenate(parts).reshape(len(given)).astype(float) if parts else np.zeros(0)
        except Exception as error:  # onnxruntime raises classes of its own that it does not export
            raise DataError(f"a ranker fails: {error}", hint=REFIT.format(path="PATH")) from error

    def save(
        self, path: Path, *, card: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> None:
        """Write the ranker as an artefact folder; `card` says what it was fitted on."""
        settings = {**(card or {}), "schema": features_hash()}
        with new_artefact(
            Path(path), kind=KIND, version=VERSION, settings=settings, seed=seed
        ) as folder:
            write_atomically(folder / MODEL, self.content)
            columns = [
                {"name": one.name, "says": one.says, "direction": one.direction} for one in FEATURES
            ]
            write_atomically(folder / "features.json", json.dumps(columns, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path | None = None) -> TreeRanker:
        """The ranker in this folder; the one that ships unless told. NotReadyError where it looks at other features."""
        folder = SHIPPED if path is None else Path(path)
        refit = (
            "python -m suffice_research.training.bridge"
            if path is None
            else REFIT.format(path=folder)
        )
        if (
            open_artefact(folder, kind=KIND, version=VERSION, rebuild=refit).settings.get("schema")
            != features_hash()
        ):
            raise NotReadyError(
                f"{folder} was fitted with other features than this suffice has", hint=refit
            )
        return cls(np.fromfile(readable_file(folder / MODEL), dtype=np.uint8).tobytes())


def features_hash() -> str:
    """A hash of the features: a ranker fitted on others cannot be used."""
    return hashlib.sha256(json.dumps([one.name for one in FEATURES]).encode()).hexdigest()


# --- bridge: The bridge retriever: a set of documents that together answer the question, chosen along the names that link them.

Ints = npt.NDArray[np.int64]

EXPANDED = 10  # candidates whose links join the pool at the start
OUT, INTO, RARE, SHARED = (
    24,
    6,
    8,
    16,
)  # links of one candidate that join: names it has, documents that name it, if so few do
SET = 10  # documents that are chosen one by one


class BridgeRetriever:
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
        k = check_search(questions, k, filters)
        return self.choose(self.pools(questions, filters=filters), k=k, filters=filters)

    def choose(
        self,
        pools: Sequence[CandidatePool],
        *,
        k: int,
        filters: Sequence[Filter | None] | None = None,
    ) -> list[tuple[Hit, ...]]:
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
        return [
            cap_scores([pool.hit(at, score) for at, score in zip(pool.held, kept)])
            for pool, kept in zip(pools, scores)
        ]

    def ranked_by(self, ranker: Ranker) -> BridgeRetriever:
        """The same retriever with another ranker."""
        other = copy(self)
        other.ranker = ranker
        return other

    # -------------------------------------------------------------------------------------------------- the pool

    def pools(
        self, questions: Sequence[str], *, filters: Sequence[Filter | None] | None = None
    ) -> list[CandidatePool]:
        """The candidates of each question before anything is held: one look at the store, and one for what is linked."""
        named, metadata = self.links.asked(questions), self._metadata(questions)
        bearers = [dict(self._named(one)) for one in named]
        seen = self._look(
            questions, metadata, filters, [self.links.ids[row] for one in bearers for row in one]
        )
        pools, wanted = [], []
        for at, question in enumerate(questions):
            text, near, agreeing = (seen.hits[at + part * len(questions)] for part in range(3))
            near = self._judged_near(near)
            asked = question_terms(question, named[at], self.links, metadata[at])
            pools.append(CandidatePool(asked, self.links, text, near))
            why: dict[DocId, dict[str, float]] = {}
            for name, hits in (
                ("bm25", text),
                ("dense", near[: self.near]),
                ("metadata", agreeing),
            ):
                for hit in hits:
                    why.setdefault(hit.doc_id, {})[name] = hit.score or 0.0
            for row, worth in bearers[at].items():
                why.setdefault(self.links.ids[row], {})["named"] = worth
            wanted.append(why)
        self._join(pools, wanted, filters, seen.documents)
        self.grow(
            pools,
            filters,
            [np.argsort(-pool.good, kind="stable")[:EXPANDED].tolist() for pool in pools],
        )
        for pool in pools:
            pool.mark()
        return pools

    def _look(
        self,
        questions: Sequence[str],
        metadata: Sequence[Mentions | None],
        filters: Sequence[Filter | None] | None,
        named: Sequence[DocId],
    ) -> StoreResult:
        """For all questions by words, then by vectors, then by words among the documents of the sources and dates they name."""
        given = filters or [None] * len(questions)
        own = [
            filter_for(one) if one and not filter else None for one, filter in zip(metadata, given)
        ]
        looks = [
            StoreQuery(self.depth, text=question, filter=filter)
            for question, filter in zip(questions, given)
        ]
        looks += self._near.queries(questions, k=max(2 * self.depth, self.near), filters=given)
        looks += [
            StoreQuery(self.depth, text=question if one else None, filter=one)
            for question, one in zip(questions, own)
        ]
        seen = self.store.query(looks, named)
        text, near, agreeing = (
            seen.hits[part * len(questions) : (part + 1) * len(questions)] for part in range(3)
        )
        return StoreResult(
            [*name_parts("bm25", text), *name_parts("dense", near), *name_parts("bm25", agreeing)],
            seen.documents,
        )

    def _judged_near(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """What the vectors found, on the scale that the ranker was fitted with."""
        return hits

    def _metadata(self, questions: Sequence[str]) -> Sequence[Mentions | None]:
        return (
            [None] * len(questions)
            if self.vocabulary is None
            else self.vocabulary.mentions(questions)
        )

    def _named(self, names: Ints) -> Iterator[tuple[int, float]]:
        for name in names.tolist():
            bearers = self.links.bearers.row(name)[:NAMESAKES].tolist()
            yield from ((row, 1 / len(bearers)) for row in bearers)

    def grow(
        self,
        pools: Sequence[CandidatePool],
        filters: Sequence[Filter | None] | None,
        chosen: Sequence[Sequence[int]],
    ) -> None:
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
        pools: Sequence[CandidatePool],
        wanted: Sequence[dict[DocId, dict[str, float]]],
        filters: Sequence[Filter | None] | None,
        seen: Mapping[DocId, Document] | None = None,
    ) -> None:
        """Candidates come into their pools, if they pass the filter: the documents `seen`, or else got for the purpose."""
        held = seen or documents_by_id(self.store.get, (doc_id for why in wanted for doc_id in why))
        for at, (pool, why) in enumerate(zip(pools, wanted)):
            documents = [held[doc_id] for doc_id in why if doc_id in held]
            if documents and filters is not None and filters[at]:
                passing = Corpus(documents).mask(filters[at])
                documents = [one for one, passes in zip(documents, passing.tolist()) if passes]
            pool.join(documents, why)

    # -------------------------------------------------------------------------------------------------- the choice

    def judged(self, pools: Sequence[CandidatePool]) -> list[Floats]:
        """How likely each candidate of each pool is needed next; what is held already counts -1."""
        return self._ranked(pools, [pool.features() for pool in pools])

    def _ranked(self, pools: Sequence[CandidatePool], rows: Sequence[Floats]) -> list[Floats]:
        """The ranker's word on all candidates of all pools in one go."""
        if not rows:
            return []
        ends = np.cumsum([len(one) for one in rows])[:-1]
        parts = np.split(np.array(self.ranker.p(np.concatenate(rows)), dtype=float), ends)
        for pool, part in zip(pools, parts):
            part[pool.held] = -1
        return parts


# --- bridge_reading: The bridge that reads: a set scorer looks at the best candidates before each choice.

READ_FIRST, READ_LATER = 20, (5, 3, 2, 2)
UNREAD = -20.0  # below every log-odds, so that trees tell it from what was read

QUALITY_FEATURES = (
    *FEATURES,
    Feature("alone", "The scorer's log-odds with nothing held.", 1),
    Feature("now", "The scorer's log-odds given what is held.", 1),
    Feature("alone_behind", "How far that is behind the best candidate not held.", -1),
    Feature("now_behind", "How far that is behind the best candidate not held.", -1),
)


@runtime_checkable
class SetScorer(Protocol):
    def score(self, question: str, held: Sequence[str], candidates: Sequence[str]) -> Floats:
        """The probability that each candidate is needed next, given the texts already held: (candidates,)."""
        ...


class QualityBridgeRetriever(BridgeRetriever):
    """A Bridge whose `ranker`, one over the columns READING, chooses whom the scorer reads and then whom to hold."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        links: NameLinks,
        ranker: Ranker,
        *,
        scorer: SetScorer,
        first: int = READ_FIRST,
        again: int | Sequence[int] = READ_LATER,
        **options: Any,
    ) -> None:
        super().__init__(store, encoder, links, ranker, **options)
        rounds = [again] if isinstance(again, int) else list(again)
        if first < 1 or min(rounds, default=-1) < 0:
            raise InputError(f"first is {first}, again is {again}: too few to read")
        self.scorer, self.first, self.again = scorer, first, again
        self._alone: WeakKeyDictionary[CandidatePool, Floats] = WeakKeyDictionary()

    def judged(self, pools: Sequence[CandidatePool]) -> list[Floats]:
        """How likely each candidate of each pool is needed next; what is held already counts -1."""
        features = [pool.features() for pool in pools]
        alone = [self._remembered(pool) for pool in pools]
        unread = [np.full(len(pool), UNREAD) for pool in pools]
        guess = self._ranked(pools, _beside(pools, features, alone, unread))
        now = self.read(
            pools,
            [
                shortlist(p, read_count(len(pool.held), self.first, self.again))
                for pool, p in zip(pools, guess)
            ],
        )
        for pool, read in zip(pools, now):
            if not pool.held:
                self._alone[pool] = read
        return self._ranked(
            pools, _beside(pools, features, [self._remembered(pool) for pool in pools], now)
        )

    def read(self, pools: Sequence[CandidatePool], chosen: Sequence[Sequence[int]]) -> list[Floats]:
        """The scorer's log-odds of the chosen candidates, UNREAD for the others: (candidates,) each."""
        found = []
        for pool, at in zip(pools, chosen):
            texts = [searchable_text(document) for document in pool.documents]
            said = self.scorer.score(
                pool.asked.text, [texts[one] for one in pool.held], [texts[one] for one in at]
            )
            row = np.full(len(pool), UNREAD)
            row[list(at)] = log_odds(np.asarray(said, dtype=float))
            found.append(row)
        return found

    def _judged_near(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        return _stretched(hits)

    def _remembered(self, pool: CandidatePool) -> Floats:
        """What was read with nothing held; candidates that joined since then are unread."""
        known = self._alone.get(pool, np.zeros(0))
        return np.concatenate([known, np.full(len(pool) - len(known), UNREAD)])


def _stretched(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Scores from 1 (best) to 0 (last): a good encoder's lie close together."""
    scores = np.array([hit.score or 0.0 for hit in hits])
    if not len(scores) or scores[0] <= scores[-1]:
        return hits
    spread = (scores - scores[-1]) / (scores[0] - scores[-1])
    return tuple(replace(hit, score=float(score)) for hit, score in zip(hits, spread))


def _beside(
    pools: Sequence[CandidatePool],
    features: Sequence[Floats],
    alone: Sequence[Floats],
    now: Sequence[Floats],
) -> list[Floats]:
    """The rows of each pool's candidates, with what was read."""
    return [quality_rows(*one) for one in zip(features, alone, now, [pool.held for pool in pools])]


def quality_rows(features: Floats, alone: Floats, now: Floats, held: Sequence[int]) -> Floats:
    """The bridge's features with what was read beside them: (candidates, READING)."""
    free = np.ones(len(features), bool)
    free[list(held)] = False
    behind = [
        np.where(one > UNREAD, one[free].max(initial=UNREAD) - one, -UNREAD) for one in (alone, now)
    ]
    return np.column_stack([features, alone, now, *behind]).astype(np.float32)


def read_count(held: int, first: int = READ_FIRST, again: int | Sequence[int] = READ_LATER) -> int:
    """How many are read when so many are held; `again` for every round, or for one, two, three ... held and more."""
    if not held:
        return first
    return again if isinstance(again, int) else again[min(held, len(again)) - 1]


def shortlist(p: Floats, count: int) -> list[int]:
    """Where the best `count` stand that are not held."""
    return [at for at in np.argsort(-p, kind="stable")[:count].tolist() if p[at] >= 0]


def log_odds(p: Floats) -> Floats:
    """Of a probability; 0 and 1 count as -15 and 15."""
    clipped = np.clip(p, 3e-7, 1 - 3e-7)
    return np.asarray(np.log(clipped / (1 - clipped)))
