"""Soft clusters of claims: a mixture of Gaussians over their embeddings, with as many components as BIC asks for.

A claim belongs to every component that is likely enough to have made it. The mixture is fitted on a sample where there are many
claims, after a projection to a few dimensions, so that time and memory stay linear in the claims.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.benchmark.relation_patterns import alternative_names, object_kind
from suffice.benchmark.stage_protocols import Claim, Equivalence, ReasoningPath, Triple
from suffice.benchmark.triples import PageIndex
from suffice.benchmark.vocabulary import RANKS, base_title, without_rank
from suffice.datasets.gold import draw_key
from suffice.protocols import Encoder, Progress
from suffice.text import title_key, tokens

__all__ = [
    "MAX_HOPS",
    "MIN_HOPS",
    "KnowledgeGraph",
    "RuleEquivalences",
    "build_graph",
    "merge_equivalent_names",
    "sample_paths",
    "seeded_order",
    "shortest_paths",
    "soft_clusters",
]


Floats = npt.NDArray[np.floating[Any]]
DIMENSIONS = 24
SAMPLE = 6_000  # claims that a mixture is fitted on, at most
SIZES = (2, 4, 8, 16, 32, 64)
LIKELY = 0.1  # a component that is at least so likely has the claim
BLOCK = 8_192


def soft_clusters(
    texts: Sequence[str],
    encoder: Encoder,
    *,
    seed: int = 42,
    sizes: Sequence[int] = SIZES,
    progress: Progress | None = None,
) -> list[tuple[int, ...]]:
    """The clusters of each text, the likeliest first. Fewer texts than components make one cluster of all."""
    from sklearn.decomposition import PCA  # late: slow to import
    from sklearn.mixture import GaussianMixture

    if len(texts) < 4 * min(sizes):
        return [(0,)] * len(texts)
    blocks = []
    for start in range(0, len(texts), BLOCK):
        blocks.append(np.asarray(encoder.encode(texts[start : start + BLOCK]), dtype=np.float32))
        _tell(progress, "encoding claims", min(start + BLOCK, len(texts)), len(texts))
    vectors = np.concatenate(blocks)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE])
    projection = PCA(
        min(DIMENSIONS, len(chosen) // 2, vectors.shape[1]),
        random_state=seed,
        svd_solver="randomized",
    )
    sample = projection.fit_transform(vectors[chosen]).astype(np.float64)
    best, least = None, np.inf
    tried = [size for size in sizes if size * 4 <= len(sample)]
    for at, size in enumerate(tried):
        mixture = GaussianMixture(
            size, covariance_type="diag", random_state=seed, max_iter=40, reg_covar=1e-5
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # forty rounds are enough for a choice, converged or not
            mixture.fit(sample)
        bic = mixture.bic(sample)
        _tell(progress, "fitting clusters", at + 1, len(tried))
        if bic >= least:
            break
        best, least = mixture, bic
    if best is None:
        return [(0,)] * len(texts)
    found: list[tuple[int, ...]] = []
    for block in blocks:
        likely = best.predict_proba(projection.transform(block).astype(np.float64))
        for row in likely:
            order = np.argsort(-row, kind="stable")
            found.append(tuple(int(one) for one in order if row[one] >= LIKELY) or (int(order[0]),))
    return found


def _tell(progress: Progress | None, what: str, done: int, total: int) -> None:
    if progress is not None:
        progress(what, done, total)


# --- knowledge: The knowledge graph: triples as edges, and the links that the texts leave out.

_SMALL = frozenset("of the de von van der and in la le".split()) | {
    word.casefold().strip(".") for word in RANKS
}


class RuleEquivalences:
    """Equivalence by rules: the same words but for ranks, a name that the page itself gives, an acronym, a short form."""

    def __init__(self, titles: PageIndex) -> None:
        self.titles = titles
        self._same_words: dict[frozenset[str], set[str]] = defaultdict(set)
        self._opens: dict[str, set[str]] = defaultdict(set)
        for title in titles.page:
            key = title_key(title).split()
            if (
                base_title(title) == title or titles.kind(title) != "person"
            ):  # a parenthesis says that others have that name
                self._same_words[_content(title)].add(title)
            for length in range(2, len(key)):
                self._opens[" ".join(key[:length])].add(title)

    def equivalences(
        self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]
    ) -> list[Equivalence]:
        here = {one.subject for one in triples} | {
            claim.subject for claim in claims if claim.subject
        }
        stated = self._stated(claims)
        found = []
        for triple in triples:
            name = triple.object
            if name in self.titles.page or object_kind(triple.relation) not in ("person", ""):
                continue
            alike = {
                title
                for title in self._same_words.get(_content(name), ())
                if not _ranks_differ(name, title)
            }
            exact = (alike | stated.get(title_key(name), set())) & here
            if len(exact) == 1 and len(_content(name)) > 1:
                found.append(Equivalence((exact.pop(), name), always=True, cluster=cluster))
            elif not exact:
                short = self._opens.get(title_key(without_rank(name)), set())
                if (
                    len(short) == 1
                    and short <= here
                    and self.titles.kind(next(iter(short))) == "person"
                ):
                    found.append(
                        Equivalence((next(iter(short)), name), always=False, cluster=cluster)
                    )
        return list(dict.fromkeys(found))

    def _stated(self, claims: Sequence[Claim]) -> dict[str, set[str]]:
        """Other names that pages give their own subject: before the first verb, behind "known as", as an acronym."""
        stated: dict[str, set[str]] = defaultdict(set)
        for claim in claims:
            if claim.subject and claim.claim_id.endswith("#0"):
                for name in alternative_names(claim.text):
                    stated[title_key(name)].add(claim.subject)
        return stated


def _ranks_differ(name: str, other: str) -> bool:
    """A princess is not the duchess of the same name and place."""
    mine, theirs = (
        {word for word in re.split(r"[ ,]+", one) if word in RANKS} for one in (name, other)
    )
    return bool(mine and theirs and not mine & theirs)


def _content(name: str) -> frozenset[str]:
    return frozenset(tokens(base_title(name))) - _SMALL


# ------------------------------------------------------------------------------------------------------ links


def merge_equivalent_names(
    triples: Iterable[Triple],
    equivalences: Iterable[Equivalence],
    clusters: Mapping[str, Sequence[int]],
) -> list[Triple]:
    """The triples with equal names merged, and with the mirrored edges of names that are equal in their cluster."""
    always: dict[str, set[str]] = defaultdict(set)
    within: dict[tuple[int, str], set[str]] = defaultdict(set)
    for one in equivalences:
        for name in one.names[1:]:
            (always[name] if one.always else within[one.cluster, name]).add(one.names[0])
    merged = {name: next(iter(chosen)) for name, chosen in always.items() if len(chosen) == 1}
    found: dict[Triple, None] = {}
    for triple in triples:
        subject, object_ = (
            merged.get(triple.subject, triple.subject),
            merged.get(triple.object, triple.object),
        )
        moved = (subject, object_) != (triple.subject, triple.object)
        found.setdefault(
            replace(triple, subject=subject, object=object_, link="exact" if moved else triple.link)
        )
        for cluster in clusters.get(triple.claim_id, ()):
            mirrors = within.get((cluster, triple.object), set())
            if not moved and len(mirrors) == 1:
                found.setdefault(replace(triple, object=next(iter(mirrors)), link="context"))
    return list(found)


# ------------------------------------------------------------------------------------------------------ graph

_MIRRORED = {"husband": "wife", "wife": "husband", "spouse": "spouse", "sibling": "sibling"}


class KnowledgeGraph:
    """Edges by subject and relation, and which of them are the only ones."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._edges: dict[str, dict[str, list[Triple]]] = defaultdict(lambda: defaultdict(list))
        for triple in dict.fromkeys(triples):
            self._edges[triple.subject][triple.relation].append(triple)

    def __len__(self) -> int:
        return sum(
            len(held) for by_relation in self._edges.values() for held in by_relation.values()
        )

    @property
    def subjects(self) -> list[str]:
        return list(self._edges)

    def edges(self, subject: str, relation: str) -> list[Triple]:
        return list(self._edges.get(subject, {}).get(relation, ()))

    def only(self, subject: str) -> dict[str, Triple]:
        """Relation -> the one edge of this subject, for the relations in which it has exactly one object."""
        found = {}
        for relation, held in self._edges.get(subject, {}).items():
            chosen = _fullest(held)
            if chosen is not None:
                found[relation] = chosen
        return found

    def objects(self, subject: str) -> set[str]:
        """Everything that the subject has an edge to."""
        return {one.object for held in self._edges.get(subject, {}).values() for one in held}


def build_graph(triples: Iterable[Triple], titles: PageIndex) -> KnowledgeGraph:
    """The graph of the triples that can be true; marriages and siblings also lead back, on the word of the same document."""
    held = list(triples)
    years = _years(held)
    held = [one for one in held if _possible(one, years, titles)]
    back = []
    for one in held:
        if one.relation in _MIRRORED and one.object in titles.page and not one.several:
            relation = _MIRRORED[one.relation]
            back.append(replace(one, subject=one.object, relation=relation, object=one.subject))
    return KnowledgeGraph([*held, *back])


_Years = dict[tuple[str, str], int]
_AGES = {  # relation -> what of subject and object is compared, and how many years the object may be older
    "father": ("birth date", "birth date", 13, 80),
    "mother": ("birth date", "birth date", 12, 60),
    "child": ("birth date", "birth date", -80, -12),
    **dict.fromkeys(("husband", "wife", "spouse"), ("birth date", "birth date", -60, 60)),
    "sibling": ("birth date", "birth date", -40, 40),
    **dict.fromkeys(
        ("director", "screenwriter", "producer", "cast"), ("release date", "birth date", 8, 95)
    ),
}


def _years(triples: Iterable[Triple]) -> _Years:
    found: _Years = {}
    for one in triples:
        if object_kind(one.relation) == "date" and (
            match := re.search(r"\b\d{3,4}$|\b[12]\d{3}\b", one.object)
        ):
            found[one.subject, one.relation] = int(match.group())
    return found


def _possible(triple: Triple, years: _Years, titles: PageIndex) -> bool:
    """Whether dates and professions of both ends allow it: a namesake of another time or trade is somebody else."""
    page = titles.page.get(triple.object)
    if page is None or page.kind != "person":
        return True
    trade = _TRADES.get(triple.relation)
    if trade is not None and trade.search(page.defined) is None:
        return False
    if triple.relation not in _AGES:
        return True
    mine, other, least, most = _AGES[triple.relation]
    first, second = years.get((triple.subject, mine)), years.get((triple.object, other))
    if first is None or second is None:
        # Two plain words may be anybody's name; ranks, places and numbers make a name one person's.
        return trade is not None or re.search(r",| of |[IVX]{2,}|\d", triple.object) is not None
    return least <= first - second <= most


_SCREEN = re.compile(
    r"director|film|act(?:or|ress)|writer|producer|cinema|animat|television|theat|comedian|editor|dramatist|playwright"
)
_MUSIC = re.compile(
    r"compos|music|sing|song|pianist|conductor|rapper|guitarist|band|lyricist|artist|producer"
)
_TRADES = {
    **dict.fromkeys(("director", "producer", "cast"), _SCREEN),
    "screenwriter": re.compile(f"{_SCREEN.pattern}|author|novelist|journalist|poet"),
    "author": re.compile(
        r"writer|author|novelist|poet|journalist|playwright|dramatist|songwriter|compos|sing|essayist|histor|philosoph"
    ),
    "composer": _MUSIC,
    "performer": _MUSIC,
}


def _fullest(held: Sequence[Triple]) -> Triple | None:
    """The edge whose object says most, if all others say the same with less: "1904" and "2 June 1904"; None otherwise."""
    if any(one.several for one in held):
        return None
    best = max(
        held, key=lambda one: (len(tokens(one.object)), one.link == "", one.doc_id, one.claim_id)
    )
    words = set(tokens(best.object))
    return best if all(_within(one.object, words) for one in held) else None


def _within(name: str, words: set[str]) -> bool:
    mine = set(tokens(name))
    return bool(mine) and mine <= words


# --- paths: Paths: the shortest chains of two to five facts from one name to another, each fact from a document of its own.

MIN_HOPS, MAX_HOPS = 2, 5
T = TypeVar("T")


def shortest_paths(
    graph: KnowledgeGraph, *, longest: int = MAX_HOPS, progress: Progress | None = None
) -> list[ReasoningPath]:
    """One shortest path for each pair of ends that are two to `longest` facts apart, in the order of the graph."""
    only = {subject: tuple(graph.only(subject).values()) for subject in graph.subjects}
    found: list[ReasoningPath] = []
    for done, start in enumerate(only):
        found += _from(start, only, longest)
        if progress is not None and (done % 1000 == 999 or done + 1 == len(only)):
            progress("walking paths", done + 1, len(only))
    return found


def _from(start: str, only: dict[str, tuple[Triple, ...]], longest: int) -> Iterator[ReasoningPath]:
    """Breadth first; a name that was reached by a shorter way is not reached again."""
    reached = {start}
    edge: list[tuple[Triple, ...]] = [()]
    for length in range(1, longest + 1):
        further: list[tuple[Triple, ...]] = []
        for held in edge:
            docs = {one.doc_id for one in held}
            for triple in only.get(held[-1].object if held else start, ()):
                # Dates and countries are no places to walk on from; the relation keeps a birth from being a death.
                end = (
                    triple.object
                    if triple.object in only
                    else f"{triple.relation}\0{triple.object}"
                )
                if triple.doc_id not in docs and end not in reached:
                    reached.add(end)
                    further.append((*held, triple))
        edge = further
        if length >= MIN_HOPS:
            yield from map(ReasoningPath, edge)


def sample_paths(
    paths: Iterable[ReasoningPath], per_hop: int, *, seed: int = 42
) -> list[ReasoningPath]:
    """At most `per_hop` paths of each length, drawn evenly over the chains of relations that occur."""
    by_length: dict[int, dict[tuple[str, ...], list[ReasoningPath]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for path in paths:
        by_length[len(path.triples)][tuple(one.relation for one in path.triples)].append(path)
    chosen: list[ReasoningPath] = []
    for length in sorted(by_length):
        groups = [
            seeded_order(held, lambda path: repr(path.ends), seed)
            for _, held in sorted(by_length[length].items())
        ]
        chosen += _in_turn(groups, per_hop)
    return chosen


def seeded_order(items: Sequence[T], key: Callable[[T], str], seed: int) -> list[T]:
    """The items in an order that follows from the seed and each one's key: the same wherever else it stands."""
    return sorted(items, key=lambda item: draw_key(seed, key(item)))


def _in_turn(groups: Sequence[Sequence[T]], most: int) -> list[T]:
    taken: list[T] = []
    for at in range(max(map(len, groups), default=0)):
        for group in groups:
            if at < len(group):
                taken.append(group[at])
                if len(taken) == most:
                    return taken
    return taken
